//go:build !linux

package bench

import (
	"errors"
	"time"
)

// cpu is known on Linux only.
func (pid) cpu() (time.Duration, error) {
	return 0, errors.New("the CPU time of another process is known on Linux only")
}
