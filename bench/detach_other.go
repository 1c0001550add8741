//go:build !unix

package bench

import "os/exec"

// detach does nothing: process groups are Unix's.
func detach(*exec.Cmd) {}
