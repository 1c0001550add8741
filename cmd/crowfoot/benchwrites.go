//go:build !nobench

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/studies"
	"github.com/crowfoot-db/crowfoot/bench/watchers"
)

func newBenchWrites() *cobra.Command {
	s := bench.Defaults()
	c := &cobra.Command{Use: "writes", Short: "DML and mutations: one row per commit, and several"}
	studyFlag(c.Flags(), &s)
	writesFlags(c.Flags(), &s)
	var stream, columnar bool
	c.Flags().BoolVar(&stream, "change-stream", false, "compare commits to a table that a change stream watches with commits to one that none does, instead")
	c.Flags().BoolVar(&columnar, "columnar", false, "compare commits to a table that has a columnar copy with commits to one that has none, instead")
	c.MarkFlagsMutuallyExclusive("change-stream", "columnar")
	return benchCommand(c, &s, func() ([]harness.Benchmark, error) {
		if (stream || columnar) && s.Study {
			return nil, usageErrorf("--change-stream and --columnar do not go with --study")
		}
		if stream {
			return []harness.Benchmark{watchers.StreamWrites()}, nil
		}
		if columnar {
			return []harness.Benchmark{studies.ColumnarWrites()}, nil
		}
		return []harness.Benchmark{studies.Writes()}, nil
	})
}

func writesFlags(flags *pflag.FlagSet, s *bench.Settings) {
	flags.Var((*numbers)(&s.Batches), "batch", "rows of a commit; the inserts are repeated for each number of a list 1,2,4,8,16")
}
