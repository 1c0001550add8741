//go:build !unix

package pebble

import "math"

// fileLimit is the number of files that the process may have open: Windows has no limit that counts.
func fileLimit() int { return math.MaxInt32 }
