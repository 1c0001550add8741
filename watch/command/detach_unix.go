//go:build unix

package command

import (
	"os"
	"os/exec"
	"syscall"
)

// detach puts the command into a process group of its own: an interrupt at the keyboard ends the watcher, which then lets the command end.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// kill ends the command with what it has started.
func kill(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }
