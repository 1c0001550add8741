//go:build !nobench

package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/bench/watchers"
)

func newBenchWatch() *cobra.Command {
	s := watchers.Defaults()
	var instance string
	var modes watchModes
	c := &cobra.Command{
		Use:   "watch [flags]",
		Short: "How soon, and at what cost, changes reach a watcher",
		Long: `Writes changes to a table in an open loop, watches it with package watch at the same time, and reports when each change reached the callback,
whether any was lost or delivered twice, and what the polls cost the server by its own statistics.

The flags are those of the benchmark application of Google's Spanner Change Watcher, whose names in camel case are accepted too. Durations are
written like 1.5s or, as in ISO 8601, PT1.5S.`,
		Example: `  crowfoot bench watch -w 50 -m 200 -n 1 -p 1s -l 10000 --rows 1000000
  crowfoot bench watch -w 5 -m 20 --disable-table-hint --compare
  crowfoot bench watch -w 50 -m 100 --backlog 1000000
  crowfoot bench watch --matrix --report watch.html`,
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetNormalizeFunc(kebabCase)
	watchFlags(flags, &s, &instance)
	modes.flags(flags)
	outputFlags(flags, &s.Outputs)
	flags.Var((*seconds)(&s.StatisticsWait), "stats-wait", "how long to wait, at most, for the server's statistics of the last minute")
	flags.StringVar(&s.Profile, "profile", "", "`DIR`, which must exist, for profiles of the embedded server (CPU, waits, mutexes, a trace) and of this program (CPU)")
	nameVariables(flags, "CROWFOOT_BENCH")
	cobra.CheckErr(c.MarkFlagDirname("dir"))
	cobra.CheckErr(c.MarkFlagDirname("profile"))
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		forgetVariables(newStart().Flags())
		if s.Mode, err = modes.chosen(); err == nil {
			err = findDatabase(&s, instance)
		}
		if err == nil {
			err = s.Check()
		}
		if err != nil {
			return usageErrorf("%w", err)
		}
		_, err = watchers.Run(c.Context(), s)
		return err
	}
	return c
}

// watchFlags registers the flags that Google's Java application for this benchmark has, with its one-letter names, and
// the flags that select the server.
func watchFlags(flags *pflag.FlagSet, s *watchers.Settings, instance *string) {
	flags.Float64VarP(&s.Transactions, "write-transactions-per-second", "w", s.Transactions, "transactions per second, on average")
	flags.IntVarP(&s.Mutations, "mutations-per-transaction", "m", s.Mutations, "rows of a transaction, on average; each has from 1 to twice as many")
	flags.IntVarP(&s.Updaters, "update-parallelism", "u", s.Updaters, "transactions at once, at most")
	flags.BoolVar(&s.Even, "even", false, "transactions at even intervals (default: at random, exponentially distributed ones)")
	flags.Uint64Var(&s.Seed, "seed", s.Seed, "`SEED` of what is random")
	flags.IntVarP(&s.Watchers, "num-watchers", "n", s.Watchers, "watchers, among which the 37 shards are divided")
	flags.VarP((*interval)(&s.PollInterval), "poll-interval", "p", "`DURATION` from poll to poll")
	flags.IntVarP(&s.Limit, "limit", "l", s.Limit, "rows of a poll, at most")
	fallback := interval(time.Minute)
	flags.VarP(&fallback, "fallback-to-with-query", "f", "`DURATION` of lag from which on the Java library polls by WITH queries; no effect, as these polls cost no more when they lag")
	flags.BoolVarP(&s.Reset, "reset-last-seen-commit-timestamp", "r", false, "forget what earlier runs have seen")
	flags.BoolVar(&s.NoHint, "disable-table-hint", false, "poll without FORCE_INDEX")
	flags.BoolVar(&s.NoShards, "disable-shard-provider", false, "poll for all shards that are not NULL instead of those listed; goes with one watcher")
	flags.Var((*interval)(&s.Prune), "prune", "`AGE` at which rows that were delivered lose their commit timestamp, and with it their entry in the index; 0: never")
	flags.StringVar((*string)(&s.Source), "source", string(s.Source), "where watchers find changes: poll, or stream, a change stream of which -n is the number of partitions")
	flags.StringVarP(&s.Table, "table", "t", s.Table, "`NAME` of the table, which is made if it is missing")
	flags.StringVarP(&s.Index, "index", "x", s.Index, "`NAME` of the index, which is made if it is missing; \"\" is none")
	flags.BoolVar(&s.Drop, "drop-existing-table", false, "drop the table first")
	flags.IntVar(&s.Rows, "rows", s.Rows, "rows in the table before the load; those that an earlier run has made are kept")
	flags.Var((*seconds)(&s.Each), "seconds", "how long the load lasts, of each setting")
	flags.IntVar(&s.Backlog, "backlog", 0, "changes that wait when the watchers start: measures how fast they catch up")
	endpointFlags(flags, &s.Endpoint)
	flags.StringVarP(instance, "instance", "i", "", "`NAME` of the instance, projects/P/instances/I, or I alone with the project in GOOGLE_CLOUD_PROJECT; --database is then D alone")
	flags.BoolVarP(&s.Simple, "simple", "s", false, "a status of one line")
}

// watchModes holds the flags that choose a mode of the benchmark.
type watchModes struct{ compare, matrix, capacity bool }

func (m *watchModes) flags(flags *pflag.FlagSet) {
	flags.BoolVar(&m.compare, "compare", false, "watch in the recommended way too, at the same time, and compare what polls cost")
	flags.BoolVar(&m.matrix, "matrix", false, "run the published table of settings, and print its figures beside ours")
	flags.BoolVar(&m.capacity, "capacity", false, "look for the most rows per second that the watchers hold")
}

func (m *watchModes) chosen() (mode watchers.Mode, err error) {
	mode = watchers.One
	for _, of := range []struct {
		chosen bool
		mode   watchers.Mode
	}{{m.compare, watchers.Compare}, {m.matrix, watchers.Matrix}, {m.capacity, watchers.Capacity}} {
		if of.chosen && mode != watchers.One {
			return "", fmt.Errorf("--%s does not go with --%s", mode, of.mode)
		}
		if of.chosen {
			mode = of.mode
		}
	}
	return mode, nil
}

// findDatabase sets s.Database to the full name of the database. As in Google's Java application for this benchmark,
// the flag --database can hold only the last part of this name. The flag --instance then holds the instance, and an
// environment variable holds the project. If the user has named a database, findDatabase lets the benchmark create the
// database if it does not exist.
func findDatabase(s *watchers.Settings, instance string) error {
	s.Create = s.Database != ""
	switch project := os.Getenv("GOOGLE_CLOUD_PROJECT"); {
	case instance == "":
		return nil
	case s.Database == "":
		return errors.New("--instance needs --database")
	case strings.Contains(s.Database, "/"):
		return fmt.Errorf("--database %s names its instance and does not go with --instance", s.Database)
	case strings.Contains(instance, "/"):
	case project == "":
		return fmt.Errorf("--instance %s needs its project: write projects/P/instances/%s, or set GOOGLE_CLOUD_PROJECT", instance, instance)
	default:
		instance = "projects/" + project + "/instances/" + instance
	}
	s.Database = instance + "/databases/" + s.Database
	return nil
}

// kebabCase converts the name of a flag in camel case: pollInterval becomes poll-interval. So the flags have both
// names.
func kebabCase(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return pflag.NormalizedName(b.String())
}

// interval is the value of a flag with a duration: 1.5s, PT1.5S, or a number of seconds.
type interval time.Duration

func (i *interval) String() string { return time.Duration(*i).String() }

func (*interval) Type() string { return "duration" }

// isoDuration matches a duration of ISO 8601, PnDTnHnMnS. Each of its parts is optional.
var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

func (i *interval) Set(text string) error {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		var d time.Duration
		d, err = time.ParseDuration(text)
		seconds = d.Seconds()
	}
	if parts := isoDuration.FindStringSubmatch(strings.ToUpper(text)); parts != nil && strings.ContainsAny(text[len(text)-1:], "DHMSdhms") {
		seconds, err = 0, nil
		for k, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
			if n, missing := strconv.ParseFloat(parts[k+1], 64); missing == nil {
				seconds += n * unit.Seconds()
			}
		}
	}
	if err != nil || !(seconds >= 0 && seconds <= maxSeconds) {
		return fmt.Errorf("want a duration like 1.5s or PT1.5S, of at most %d seconds", maxSeconds)
	}
	*i = interval(seconds * float64(time.Second))
	return nil
}
