//go:build !nobench

package main

import (
	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/bench/retrieval"
)

// newBenchCeiling returns the command that runs a server without a database, which answers every read with the same
// bytes. The benchmarks points and retrieval run this command in a separate process, to compare Crowfoot with such a
// server.
func newBenchCeiling() *cobra.Command {
	var frames, batches string
	c := &cobra.Command{
		Use:    "ceiling",
		Short:  "Answer every read with the same bytes",
		Hidden: true,
		Args:   noArguments,
		RunE:   func(c *cobra.Command, _ []string) error { return retrieval.Ceiling(c.Context(), frames, batches) },
	}
	c.Flags().StringVar(&frames, "frames", "", "`FILE` of the messages of a reply (default: one row)")
	c.Flags().StringVar(&batches, "batches", "", "`FILE` of the messages of record batches, for Flight SQL")
	return c
}
