//go:build !linux

package pebble

// machineMemory is not known here.
func machineMemory() uint64 { return 0 }
