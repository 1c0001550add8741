//go:build !unix

package bench

import "os/exec"

// detach does nothing: only Unix has process groups.
func detach(*exec.Cmd) {}
