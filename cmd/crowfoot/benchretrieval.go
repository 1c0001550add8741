//go:build !nobench

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/retrieval"
)

const (
	retrievalRows   = 1_500_000
	retrievalTime   = 12 * time.Second
	retrievalRounds = 6 // the fewest rounds that give a confidence interval of 95%
)

func newBenchRetrieval() *cobra.Command {
	s := bench.Defaults()
	s.Rows, s.Each, s.Rounds, s.StatisticsWait = retrievalRows, retrievalTime, retrievalRounds, 0
	r := retrieval.Settings{Table: "customer", Readers: []int{1, 2, 4}, Columnar: true}
	c := &cobra.Command{
		Use:   "retrieval",
		Short: "All rows of a table into memory, by each way out of the database",
		Long: `Takes all rows of a table of TPC-H out of the database into memory, by each way that there is, and reports rows per second and what a row costs the
server and the client. The rows are those of TPC-H's generator. Other databases and libraries read the same rows where you name them; without them the run
says what is missing.`,
		Example: `  crowfoot bench retrieval --rows 1500000 -n 1,2,4
  crowfoot bench retrieval --table orders --report retrieval.html
  crowfoot bench retrieval --postgres postgres://me@127.0.0.1/test --mysql 'me:secret@tcp(127.0.0.1:3306)/test' --python venv/bin/python`,
	}
	c.Flags().StringVarP(&r.Table, "table", "t", r.Table, "`NAME` of the table, customer or orders")
	c.Flags().VarP((*numbers)(&r.Readers), "readers", "n", "readers that share the table; repeated for each number of a list 1,2,4")
	c.Flags().BoolVar(&r.Columnar, "columnar", r.Columnar, "have the server keep a columnar copy of the table; the row store is read beside it")
	c.Flags().StringVar(&r.Postgres, "postgres", "", "`DSN` of a PostgreSQL database, in which the run makes a table crowfoot_bench_NAME")
	c.Flags().StringVar(&r.MySQL, "mysql", "", "`DSN` of a MySQL or MariaDB database, likewise: USER:PASSWORD@tcp(HOST:PORT)/DATABASE")
	c.Flags().StringVar(&r.Python, "python", "", "`PATH` of a Python whose pyarrow, duckdb and adbc-driver-flightsql read the same rows")
	c.Flags().StringVar(&r.Jars, "jars", "", "`CLASSPATH` of SPL (esProc) and of the JDBC drivers of Flight SQL and of Google's Spanner, which read the same rows; bench/jars/pom.xml lists them")
	c.Flags().StringVar(&r.Java, "java", "java", "`PATH` of a JDK's java, for --jars")
	c.Flags().StringVar(&r.Profile, "profile", "", "`DIR` for profiles of the ways that miss their targets: CPU time of server and client, and what the server waits for")
	return benchCommand(c, &s, func() ([]harness.Benchmark, error) {
		if s.RTT > 0 {
			return nil, usageErrorf("--rtt does not go with retrieval, whose clients connect by themselves")
		}
		b, err := retrieval.New(r)
		return []harness.Benchmark{b}, err
	})
}
