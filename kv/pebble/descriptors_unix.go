//go:build unix

package pebble

import (
	"math"

	"golang.org/x/sys/unix"
)

// fileLimit is the number of files that the process may have open. Go raises it to the hard limit when a program begins.
func fileLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}
