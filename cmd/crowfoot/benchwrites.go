package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/bench"
)

func newBenchWrites() *cobra.Command {
	s := bench.Defaults()
	c := &cobra.Command{Use: "writes", Short: "DML and mutations: one row per commit, and several"}
	studyFlag(c.Flags(), &s)
	writesFlags(c.Flags(), &s)
	return benchCommand(c, &s, these(bench.Writes()))
}

func writesFlags(flags *pflag.FlagSet, s *bench.Settings) {
	flags.Var((*numbers)(&s.Batches), "batch", "rows of a commit; the inserts are repeated for each number of a list 1,2,4,8,16")
}
