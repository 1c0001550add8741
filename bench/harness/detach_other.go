//go:build !unix

package harness

import "os/exec"

// Detach does nothing: only Unix has process groups.
func Detach(*exec.Cmd) {}
