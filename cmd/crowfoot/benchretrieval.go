package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/bench"
)

const (
	retrievalRows   = 1_500_000
	retrievalTime   = 12 * time.Second
	retrievalRounds = 3
)

func newBenchRetrieval() *cobra.Command {
	s := bench.Defaults()
	s.Rows, s.Each, s.Rounds, s.StatisticsWait = retrievalRows, retrievalTime, retrievalRounds, 0
	r := bench.RetrievalSettings{Table: "customer", Readers: []int{1, 2, 4}}
	c := &cobra.Command{
		Use:   "retrieval",
		Short: "All rows of a table into memory, by each way out of the database",
		Long: `Takes all rows of a table of TPC-H out of the database into memory, by each way that there is, and reports rows per second and what a row costs the
server and the client. The rows are those of TPC-H's generator.`,
		Example: `  crowfoot bench retrieval --rows 1500000 -n 1,2,4
  crowfoot bench retrieval --table orders --report retrieval.html`,
	}
	c.Flags().StringVarP(&r.Table, "table", "t", r.Table, "`NAME` of the table, customer or orders")
	c.Flags().VarP((*numbers)(&r.Readers), "readers", "n", "readers that share the table; repeated for each number of a list 1,2,4")
	return benchCommand(c, &s, func() ([]bench.Benchmark, error) {
		b, err := bench.Retrieval(r)
		return []bench.Benchmark{b}, err
	})
}
