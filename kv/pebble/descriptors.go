package pebble

// mostFiles is the number of table files that Pebble keeps open by default. Pebble raises a smaller limit to
// leastFiles. Pebble cannot continue once the process has reached its own limit of open files, so Files gives a store
// half of that limit, but at least leastFiles.
const (
	mostFiles  = 1000
	leastFiles = 74
)

// Files returns the number of files that the process may have open, and how many of them a store may use.
func Files() (limit, store int) {
	limit = fileLimit()
	return limit, min(mostFiles, max(leastFiles, limit/2))
}
