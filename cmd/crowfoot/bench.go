package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"time"

	"github.com/crowfoot-db/crowfoot/bench"
)

// runBench runs one benchmark.
func runBench(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("bench needs a name: points")
	}
	switch args[0] {
	case "points":
		b := bench.Points{Clients: []int{1, 8, 32}, Out: os.Stdout}
		flags := flag.NewFlagSet("crowfoot bench points", flag.ExitOnError)
		flags.IntVar(&b.Rows, "rows", 1_000_000, "rows of 1 kB in the table")
		flags.DurationVar(&b.Seconds, "time", 9*time.Second, "how long each measure takes")
		flags.StringVar(&b.Dir, "dir", "", "directory for the data (default: a temporary one)")
		flags.Parse(args[1:])
		if b.Rows < 1 || b.Seconds <= 0 {
			return errors.New("-rows and -time must be positive")
		}
		return b.Run(ctx)
	case "ceiling": // the other end of points, in a process of its own
		return bench.Ceiling(ctx)
	}
	return errors.New("unknown benchmark " + args[0] + ": there is points")
}
