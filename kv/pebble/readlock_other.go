//go:build !unix

package pebble

// lockForReading does nothing: on Windows, a process cannot even open a file that a server has locked.
func lockForReading(uintptr) error { return nil }
