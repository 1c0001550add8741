package pebble

// mostFiles is the number of table files that Pebble keeps open by default. leastFiles is the smallest number that
// Pebble accepts; it raises a smaller one to leastFiles. Pebble cannot continue once the process has as many open files
// as the operating system allows. So Files gives a store at most half of the files that the process may open, but never
// fewer than leastFiles.
const (
	mostFiles  = 1000
	leastFiles = 74
)

// Files returns the number of files that the process may have open, and how many of them a store may use.
func Files() (limit, store int) {
	limit = fileLimit()
	return limit, min(mostFiles, max(leastFiles, limit/2))
}
