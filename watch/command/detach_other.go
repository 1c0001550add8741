//go:build !unix

package command

import (
	"os"
	"os/exec"
)

// detach does nothing, since only Unix has process groups.
func detach(*exec.Cmd) {}

// kill kills the command.
func kill(p *os.Process) { p.Kill() }
