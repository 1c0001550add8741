//go:build !nobench

package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
)

func newBench() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "bench NAME",
		Short: "Compare ways to the same result, side by side",
		Long: `Compares ways to the same result, side by side: latency, the server's CPU, and its own statistics.

Each runs against a server of its own, or --endpoint HOST:PORT --database NAME (plain text: Crowfoot, Google's emulator), or
--database NAME alone (Cloud Spanner, with the credentials of your environment).`,
	})
	c.AddCommand(newBenchAccess(), newBenchWrites(), newBenchAll(), newBenchPoints(), newBenchRetrieval(), newBenchOwn(), newBenchCeiling(), newBenchWatch(), newBenchMemory(), newBenchStreams(), newBenchSchema(), newBenchSoak())
	return c
}

// benchCommand completes c, the command of a benchmark: it adds the flags that commonFlags registers, and sets the
// function that runs the command. That function first removes the environment variables of the flags of crowfoot start,
// so that servers that a benchmark starts do not read them. Then it runs the benchmarks that the function choose
// returns.
func benchCommand(c *cobra.Command, s *bench.Settings, choose func() ([]harness.Benchmark, error)) *cobra.Command {
	c.Use += " [flags]"
	c.DisableFlagsInUseLine = true
	c.Args = noArguments
	commonFlags(c.Flags(), s)
	nameVariables(c.Flags(), "CROWFOOT_BENCH")
	cobra.CheckErr(c.MarkFlagDirname("dir"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		forgetVariables(newStart().Flags())
		if err := checkTogether(c.Flags()); err != nil {
			return err
		}
		benchmarks, err := choose()
		if err != nil {
			return err
		}
		_, err = harness.Run(c.Context(), *s, benchmarks...)
		return err
	}
	return c
}

// uselessFlags lists pairs of flags. If the field beside is true, the first flag of the pair has no effect when the
// second flag is set. If it is false, the first flag has no effect when the second flag is not set.
var uselessFlags = []struct {
	flag, other string
	beside      bool
}{
	{"seconds", "count", true}, {"interval", "study", false}, {"java", "jars", false}, {"dir", "database", true}, {"pid", "endpoint", false},
}

// checkTogether returns an error if the user has set a flag that has no effect.
func checkTogether(flags *pflag.FlagSet) error {
	for _, u := range uselessFlags {
		f, other := flags.Lookup(u.flag), flags.Lookup(u.other)
		if f == nil || other == nil || originOf(f) != byFlag {
			continue
		}
		switch given := originOf(other) != byDefault; {
		case u.beside && given:
			return usageErrorf("--%s has no effect beside %s: leave one out", u.flag, written(other))
		case !u.beside && !given:
			return usageErrorf("--%s has no effect without --%s", u.flag, u.other)
		}
	}
	return nil
}

// these returns a function that returns list. It serves as the parameter choose of benchCommand for a command that
// always runs the same benchmarks.
func these(list ...harness.Benchmark) func() ([]harness.Benchmark, error) {
	return func() ([]harness.Benchmark, error) { return list, nil }
}

// commonFlags registers the flags of every benchmark whose command benchCommand completes.
func commonFlags(flags *pflag.FlagSet, s *bench.Settings) {
	flags.SortFlags = false
	flags.IntVar(&s.Rows, "rows", s.Rows, "rows in the table")
	flags.Var((*seconds)(&s.Each), "seconds", "how long each path is measured, in all rounds together")
	flags.IntVar(&s.Count, "count", 0, "operations of each path, in all rounds together, in place of --seconds")
	flags.IntVar(&s.Rounds, "rounds", s.Rounds, "how often the paths take turns")
	flags.Var((*numbers)(&s.Clients), "clients", "clients at once; everything is repeated for each number of a list 1,8,32")
	flags.Float64Var(&s.Rate, "rate", 0, "operations per second of all clients together, due at even intervals (open loop); 0: each client sends when it has its answer")
	flags.DurationVar(&s.RTT, "rtt", 0, "`DELAY` that the benchmark adds between client and server, there and back, such as 1ms: the round trip of a network")
	endpointFlags(flags, &s.Endpoint)
	flags.StringVar(&s.Control, "control", "", "`PATH` of an older executable of crowfoot: its server answers the same requests turn by turn, on equal data")
	outputFlags(flags, &s.Outputs)
	flags.Var((*seconds)(&s.StatisticsWait), "stats-wait", "how long to wait, at most, for the server's statistics of the last minute")
}

// endpointFlags registers the flags that select the server whose performance is measured.
func endpointFlags(flags *pflag.FlagSet, e *bench.Endpoint) {
	flags.StringVar(&e.Address, "endpoint", "", "`HOST:PORT` of a server that speaks plain text; needs --database")
	flags.StringVarP(&e.Database, "database", "d", "", "`NAME` of the database, projects/P/instances/I/databases/D; without --endpoint it is on Cloud Spanner")
	flags.IntVar(&e.PID, "pid", 0, "process of the server at --endpoint, if it runs on this machine, for its CPU")
	flags.StringVar(&e.Dir, "dir", "", "`DIR` for the embedded server's data (default: a temporary one)")
}

// outputFlags registers the flags that name the files of the report.
func outputFlags(flags *pflag.FlagSet, o *bench.Outputs) {
	flags.StringVar(&o.Report, "report", "", "`FILE` for a page with charts (HTML)")
	flags.StringVar(&o.JSON, "json", "", "`FILE` for all figures (JSON)")
}

// studyFlag registers the flag --study, for the benchmarks that can repeat a published study.
func studyFlag(flags *pflag.FlagSet, s *bench.Settings) {
	flags.BoolVar(&s.Study, "study", false, "re-run the study as it was: its calls alone, and reads at its rates, without tags, by its statistics queries")
}

// forgetVariables removes the environment variables of flags from the environment, so that programs which this one
// starts do not read them.
func forgetVariables(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) { os.Unsetenv(variableOf(f)) })
}
