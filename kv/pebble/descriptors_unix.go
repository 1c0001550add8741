//go:build unix

package pebble

import (
	"math"

	"golang.org/x/sys/unix"
)

// fileLimit returns the number of files that the process may have open. At the start of a program, Go raises this soft
// limit to the hard limit.
func fileLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}
