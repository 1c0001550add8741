//go:build nobench

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// newBench returns a command that only says that this program has no benchmarks. The build tag nobench leaves the
// benchmarks out of the program, together with the drivers of other databases that the benchmarks use.
func newBench() *cobra.Command {
	return &cobra.Command{
		Use:                "bench",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("this program was built without its benchmarks (build tag nobench)")
		},
	}
}
