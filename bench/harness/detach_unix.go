//go:build unix

package harness

import (
	"os/exec"
	"syscall"
)

// Detach puts the command into its own process group.
func Detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
