//go:build !nobench

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/studies"
)

const (
	pointsRows   = 1_000_000 // rows of 1 kB, which make 1 GB
	pointsTime   = 9 * time.Second
	pointsRounds = 18 // many, because the latencies that are compared differ by little
)

func newBenchPoints() *cobra.Command {
	s := bench.Defaults()
	s.Rows, s.Each, s.Rounds, s.Clients, s.StatisticsWait = pointsRows, pointsTime, pointsRounds, []int{1, 8, 32}, 0
	c := &cobra.Command{Use: "points", Short: "A point read and a single-row commit against their floors"}
	return benchCommand(c, &s, these(studies.Points()))
}
