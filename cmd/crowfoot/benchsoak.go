//go:build !nobench

package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/bench/soak"
)

// newBenchSoak returns the command "bench soak", a test of Crowfoot alone that takes an hour. It fails if a client gets
// a wrong error, if commits are lost or repeated, or if the server's memory, goroutines or connections keep growing.
func newBenchSoak() *cobra.Command {
	s := soak.Settings{Out: os.Stdout, Progress: os.Stderr}
	c := &cobra.Command{
		Use:   "soak [flags]",
		Short: "Run a server for an hour under mixed load, with restarts",
		Long: `Starts a server and sends it reads, queries, commits, DML, schema changes and clients that come and go. Every few minutes it ends the
server, by kill -9 and by SIGTERM in turn, and starts it again, while the clients stay connected.

It fails if a client meets an error that it should not, if a commit is lost or takes effect twice, or if memory, goroutines or
connections grow from one life of the server to the next.`,
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			forgetVariables(newStart().Flags())
			return soak.Run(c.Context(), s)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.DurationVar(&s.For, "for", time.Hour, "how long it takes")
	flags.DurationVar(&s.Life, "life", 5*time.Minute, "how long the server lives before it is ended")
	flags.StringVar(&s.Memory, "memory", "1GiB", "`SIZE` that the server may take")
	flags.StringVar(&s.Server, "server", "", "`PATH` of the server's executable (default: this one)")
	flags.StringVar(&s.Dir, "dir", "", "`DIR` for the server's data (default: a temporary one)")
	nameVariables(flags, "CROWFOOT_BENCH")
	cobra.CheckErr(c.MarkFlagDirname("dir"))
	return c
}
