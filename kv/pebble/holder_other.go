//go:build !unix

package pebble

// lockHolder returns 0, since the holder is not known: on Windows a file that a server has locked cannot be opened.
func lockHolder(uintptr) int32 { return 0 }
