package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/bench"
)

func newBenchAccess() *cobra.Command {
	s := bench.Defaults()
	c := &cobra.Command{Use: "access", Short: "SQL and READ: one key, a range, scattered keys over splits"}
	accessFlags(c.Flags(), &s)
	return benchCommand(c, &s, these(bench.Access()))
}

func newBenchWrites() *cobra.Command {
	s := bench.Defaults()
	c := &cobra.Command{Use: "writes", Short: "DML and mutations: one row per commit, and several"}
	writesFlags(c.Flags(), &s)
	return benchCommand(c, &s, these(bench.Writes()))
}

func newBenchAll() *cobra.Command {
	s := bench.Defaults()
	c := &cobra.Command{Use: "all", Short: "Both access and writes"}
	accessFlags(c.Flags(), &s)
	writesFlags(c.Flags(), &s)
	return benchCommand(c, &s, these(bench.Access(), bench.Writes()))
}

func accessFlags(flags *pflag.FlagSet, s *bench.Settings) {
	flags.IntVar(&s.Keys, "keys", s.Keys, "rows of a range, and scattered keys of a read")
	flags.IntVar(&s.Splits, "splits", s.Splits, "splits over which the scattered keys lie")
}

func writesFlags(flags *pflag.FlagSet, s *bench.Settings) {
	flags.IntVar(&s.Batch, "batch", s.Batch, "rows of the larger commit")
}
