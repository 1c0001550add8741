//go:build !unix

package command

import (
	"os"
	"os/exec"
)

// detach does nothing: process groups are Unix's.
func detach(*exec.Cmd) {}

// kill ends the command.
func kill(p *os.Process) { p.Kill() }
