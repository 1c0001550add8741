//go:build !nobench

package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/bench/retrieval"
)

// newBenchStreams returns the command "bench streams", a test of Crowfoot alone that takes minutes. It fails if the
// server takes too much memory.
func newBenchStreams() *cobra.Command {
	s := retrieval.StreamsSettings{Out: os.Stdout, Progress: os.Stderr}
	c := &cobra.Command{
		Use:   "streams [flags]",
		Short: "The server's memory while millions of rows stream out",
		Long: `Has a server with little memory stream the rows of a table out, by READ, by SQL and by Flight SQL, while many other streams have clients
that hardly read.

It fails if the server takes more memory than --memory says, or more and more.`,
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			forgetVariables(newStart().Flags())
			return retrieval.Streams(c.Context(), s)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.IntVar(&s.Rows, "rows", 30_000_000, "rows to stream by each way, at least")
	flags.IntVar(&s.TableRows, "table-rows", retrievalRows, "rows in the table, TPC-H's customer: each stream has so many")
	flags.IntVar(&s.Slow, "slow", 16, "streams of each way, at once, whose clients read a message a second")
	flags.StringVar(&s.Memory, "memory", "1GiB", "`SIZE` that the server may take")
	flags.StringVar(&s.Server, "server", "", "`PATH` of the server's executable (default: this one)")
	flags.StringVar(&s.Dir, "dir", "", "`DIR` for the server's data (default: a temporary one)")
	nameVariables(flags, "CROWFOOT_BENCH")
	cobra.CheckErr(c.MarkFlagDirname("dir"))
	return c
}
