package pebble

// mostFiles is how many table files Pebble keeps open by its own choice, leastFiles what it makes of any smaller number. It fails
// for good if it cannot open one more.
const (
	mostFiles  = 1000
	leastFiles = 74
)

// Files says how many files the process may have open, and how many of them a store takes for itself.
func Files() (limit, store int) {
	limit = fileLimit()
	return limit, min(mostFiles, max(leastFiles, limit/2))
}
