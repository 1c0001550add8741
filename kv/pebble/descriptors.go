package pebble

// mostFiles is the number of table files that Pebble keeps open by default. Pebble raises smaller numbers to leastFiles. It fails
// for good if it cannot open one more.
const (
	mostFiles  = 1000
	leastFiles = 74
)

// Files returns the number of files that the process may have open, and how many of them a store takes for itself.
func Files() (limit, store int) {
	limit = fileLimit()
	return limit, min(mostFiles, max(leastFiles, limit/2))
}
