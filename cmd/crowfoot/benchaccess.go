//go:build !nobench

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/studies"
)

func newBenchAccess() *cobra.Command {
	s := bench.Defaults()
	s.Clients = []int{1, 8} // one client, as in the study that --study repeats; then eight at once
	c := &cobra.Command{Use: "access", Short: "SQL and READ: one key, a range, scattered keys over splits"}
	studyFlag(c.Flags(), &s)
	accessFlags(c.Flags(), &s)
	return benchCommand(c, &s, these(studies.Access()))
}

func accessFlags(flags *pflag.FlagSet, s *bench.Settings) {
	flags.IntVar(&s.Keys, "keys", s.Keys, "rows of a range, and scattered keys of a read")
	flags.IntVar(&s.Splits, "splits", s.Splits, "splits over which the scattered keys lie")
	flags.StringVar((*string)(&s.Interval), "interval", string(s.Interval), "`INTERVAL` of the server's statistics that each workload of --study has for itself: minute or 10minute")
}
