// Command crowfoot is the database server and its tools. It turns the command line into settings of packages and does
// nothing else. Each command has a file of its own.
//
// Imports of this module: ., bench, memory, otlp, version.
package main

import (
	"errors"
	"fmt"
	"os"
)

// Exit statuses. Shells and the standard library's flag package use 2 for a command line that is wrong.
const (
	exitFailure = 1
	exitUsage   = 2
	exitStorage = 3 // the storage failed while it served
)

// usageError is a command line, or an environment variable, that is wrong.
type usageError struct{ error }

func usageErrorf(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	root := newRoot()
	root.SetArgs(doubleDashes(os.Args[1:]))
	err := root.ExecuteContext(untilSignal())
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "crowfoot:", err)
	if errors.As(err, new(usageError)) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailure)
}
