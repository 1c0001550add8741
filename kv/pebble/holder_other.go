//go:build !unix

package pebble

// lockHolder returns 0, which means that the holder is unknown: on Windows, a process cannot open a file that a server
// has locked.
func lockHolder(uintptr) int32 { return 0 }
