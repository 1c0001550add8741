//go:build !unix

package pebble

// lockHolder does not tell: on Windows a file that a server has locked cannot be opened.
func lockHolder(uintptr) int32 { return 0 }
