//go:build unix

package bench

import (
	"os/exec"
	"syscall"
)

// detach puts the command into a process group of its own.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
