//go:build unix

package bench

import (
	"os/exec"
	"syscall"
)

// detach puts the command into its own process group.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
