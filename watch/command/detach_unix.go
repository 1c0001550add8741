//go:build unix

package command

import (
	"os"
	"os/exec"
	"syscall"
)

// detach puts the command into a process group of its own. Then Ctrl-C ends only the watcher, and the watcher closes
// the command in an orderly way.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// kill kills the command and all processes of its group.
func kill(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }
