//go:build !nobench

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/studies"
)

const (
	schemaRows   = 1_000_000 // rows of 1 kB, which make 1 GB
	schemaTime   = 60 * time.Second
	schemaRounds = 6 // the fewest rounds that give a confidence interval of 95%
)

func newBenchSchema() *cobra.Command {
	s := bench.Defaults()
	s.Rows, s.Each, s.Rounds, s.StatisticsWait = schemaRows, schemaTime, schemaRounds, 0
	c := &cobra.Command{Use: "schema", Short: "CREATE INDEX beside writes, constraints, and many databases"}
	return benchCommand(c, &s, these(studies.Schema()))
}
