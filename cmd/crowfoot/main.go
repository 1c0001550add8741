// Command crowfoot is the database server and its tools. It translates the command line into settings of packages,
// which do the work. Each command has its own file.
//
// Imports of this module: ., arrowtype, bench, bench/harness, bench/own, bench/retrieval, bench/soak, bench/studies, bench/watchers, bulk, bulk/file, bulk/transfer, memory, otlp, resultset, stats/cpu, version, watch, watch/avro, watch/cloudevents, watch/command, watch/jsonlines, watch/pubsub.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/crowfoot-db/crowfoot/bench"
)

// Exit statuses of the command. 2 is not used, because Go's runtime ends a process with 2 after a panic or SIGQUIT.
// Those above 63 are from sysexits, https://man.freebsd.org/cgi/man.cgi?query=sysexits, which begins at 64 so that its
// statuses differ from others.
const (
	exitFailure = 1
	exitStorage = 3  // the storage failed while the server ran
	exitUsage   = 64 // EX_USAGE
	exitDamaged = 65 // EX_DATAERR: crowfoot check has found damage
	// exitIncomplete is EX_TEMPFAIL: a signal, or a server that was no longer available, has ended an import or export.
	// The user can start the same command again to continue.
	exitIncomplete = 75
)

// statusError is an error that determines the exit status of the command.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// usageErrorf returns the error for a wrong command line or environment variable.
func usageErrorf(format string, args ...any) error {
	return statusError{fmt.Errorf(format, args...), exitUsage}
}

func main() {
	root := newRoot()
	args := doubleDashes(os.Args[1:])
	root.SetArgs(args)
	err := checkHelp(root, args)
	if err == nil {
		err = root.ExecuteContext(untilSignal())
	}
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "crowfoot:", err)
	status := exitFailure
	if own := (statusError{}); errors.As(err, &own) {
		status = own.status
	} else if errors.As(err, &bench.UsageError{}) {
		status = exitUsage
	}
	os.Exit(status)
}
