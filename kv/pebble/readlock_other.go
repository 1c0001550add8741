//go:build !unix

package pebble

// lockForReading does nothing: on Windows a file that a server has locked cannot be opened.
func lockForReading(uintptr) error { return nil }
