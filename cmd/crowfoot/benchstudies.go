package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/bench"
)

func newBenchAccess() *cobra.Command {
	s := bench.Defaults()
	c := &cobra.Command{Use: "access", Short: "SQL and READ: one key, a range, scattered keys over splits"}
	studyFlag(c.Flags(), &s)
	accessFlags(c.Flags(), &s)
	return benchCommand(c, &s, these(bench.Access()))
}

func newBenchWrites() *cobra.Command {
	s := bench.Defaults()
	c := &cobra.Command{Use: "writes", Short: "DML and mutations: one row per commit, and several"}
	studyFlag(c.Flags(), &s)
	writesFlags(c.Flags(), &s)
	return benchCommand(c, &s, these(bench.Writes()))
}

func newBenchAll() *cobra.Command {
	s := bench.Defaults()
	c := &cobra.Command{Use: "all", Short: "Both access and writes"}
	studyFlag(c.Flags(), &s)
	accessFlags(c.Flags(), &s)
	writesFlags(c.Flags(), &s)
	return benchCommand(c, &s, these(bench.Access(), bench.Writes()))
}

// studyFlag is that of the re-runs.
func studyFlag(flags *pflag.FlagSet, s *bench.Settings) {
	flags.BoolVar(&s.Study, "study", false, "re-run the study as it was: its calls alone, and reads at its rates, without tags, by its statistics queries")
}

func accessFlags(flags *pflag.FlagSet, s *bench.Settings) {
	flags.IntVar(&s.Keys, "keys", s.Keys, "rows of a range, and scattered keys of a read")
	flags.IntVar(&s.Splits, "splits", s.Splits, "splits over which the scattered keys lie")
	flags.StringVar((*string)(&s.Interval), "interval", string(s.Interval), "`INTERVAL` of the server's statistics that each workload of --study has for itself: minute or 10minute")
}

func writesFlags(flags *pflag.FlagSet, s *bench.Settings) {
	flags.Var((*numbers)(&s.Batches), "batch", "rows of a commit; the inserts are repeated for each number of a list 1,2,4,8,16")
}
