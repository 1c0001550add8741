//go:build !unix

package pebble

import "math"

// fileLimit returns the number of files that the process may have open. Windows has no limit that matters.
func fileLimit() int { return math.MaxInt32 }
