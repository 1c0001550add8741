//go:build !linux

package memory

// Machine returns 0, because the memory of the machine is not known on this system.
func Machine() int64 { return 0 }
