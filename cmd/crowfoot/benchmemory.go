//go:build !nobench

package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/bench/soak"
)

// newBenchMemory returns the command "bench memory", a test of Crowfoot alone that takes minutes. It fails if the
// server ends, takes too much memory, or answers wrongly or late.
func newBenchMemory() *cobra.Command {
	s := soak.MemorySettings{Out: os.Stdout, Progress: os.Stderr}
	c := &cobra.Command{
		Use:   "memory [flags]",
		Short: "Press a server with the heaviest requests of each kind",
		Long: `Starts a server with little memory and sends it the heaviest requests of each kind, many at once, beside small ones: large commits
over gRPC and REST, compressed and not, sorts, joins, aggregations, streams that are not read, long texts, sessions, batches of DML.

It fails if the server ends or takes more memory than --memory says, if a request is answered anything but success or
RESOURCE_EXHAUSTED, or if one of a hundred small requests takes longer than a second.`,
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			forgetVariables(newStart().Flags())
			return soak.Memory(c.Context(), s)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.DurationVar(&s.For, "for", 10*time.Minute, "how long requests are sent")
	flags.IntVar(&s.Heavy, "heavy", 32, "heavy requests at once")
	flags.StringVar(&s.Memory, "memory", "2GiB", "`SIZE` that the server may take")
	flags.StringVar(&s.Server, "server", "", "`PATH` of the server's executable (default: this one)")
	flags.StringVar(&s.Dir, "dir", "", "`DIR` for the server's data (default: a temporary one)")
	flags.StringSliceVar(&s.Kinds, "kinds", nil, "`NAMES` of the kinds of heavy requests, as the report shows them (default: all)")
	nameVariables(flags, "CROWFOOT_BENCH")
	cobra.CheckErr(c.MarkFlagDirname("dir"))
	return c
}
