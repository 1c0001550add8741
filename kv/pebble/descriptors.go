package pebble

// mostFiles is the number of table files that Pebble keeps open by default. Pebble raises a smaller limit to
// leastFiles. Pebble cannot go on if the process may not open one more file, so the limit must fit.
const (
	mostFiles  = 1000
	leastFiles = 74
)

// Files returns the number of files that the process may have open, and how many of them a store may use.
func Files() (limit, store int) {
	limit = fileLimit()
	return limit, min(mostFiles, max(leastFiles, limit/2))
}
