// Command crowfoot is the database server and its tools. It wires flags to
// packages and does nothing else.
//
// Imports of this module: ., bench, otlp.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `crowfoot is a database server that speaks Cloud Spanner's API.

  crowfoot start [flags]        serve (crowfoot start -h lists the flags)
  crowfoot bench NAME  [flags]  compare access paths (crowfoot bench -h lists the names)
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crowfoot:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	switch args[0] {
	case "start":
		return start(ctx, args[1:])
	case "bench":
		return runBench(ctx, args[1:])
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	return fmt.Errorf("unknown command %q\n\n%s", args[0], usage)
}
