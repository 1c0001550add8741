package main

import (
	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/bench"
)

// newBenchCeiling makes the command that points runs in a process of its own: a server without a database.
func newBenchCeiling() *cobra.Command {
	return &cobra.Command{
		Use:    "ceiling",
		Short:  "Answer every read with the same row",
		Hidden: true,
		Args:   noArguments,
		RunE:   func(c *cobra.Command, _ []string) error { return bench.Ceiling(c.Context()) },
	}
}
