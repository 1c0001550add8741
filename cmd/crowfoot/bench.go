package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/bench"
)

const benchUsage = `crowfoot bench compares ways to the same result, side by side.

  crowfoot bench access [flags]  SQL and READ: one key, a range, scattered keys over splits
  crowfoot bench writes [flags]  DML and mutations: one row per commit, and several
  crowfoot bench all    [flags]  both of these
  crowfoot bench points [flags]  a point read and a single-row commit against their floors
  crowfoot bench own    [flags]  your own ways, from files: --sql, --read, --write

Each runs against a server of its own, or --endpoint HOST:PORT --database NAME (plain text:
Crowfoot, Google's emulator), or --database NAME alone (Cloud Spanner, with the credentials
of your environment). crowfoot bench NAME -h lists the flags.
`

// pointsRows and pointsSeconds make the table of points about 1 GB.
const (
	pointsRows    = 1_000_000
	pointsSeconds = 9 * time.Second
	pointsRounds  = 18 // the paths differ by little: they take turns often
)

// runBench runs one benchmark.
func runBench(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("bench needs a name\n\n" + benchUsage)
	}
	s := bench.Defaults()
	var files bench.Files
	flags := flag.NewFlagSet("crowfoot bench "+args[0], flag.ExitOnError)
	var benchmarks []bench.Benchmark
	switch args[0] {
	case "access":
		benchmarks = []bench.Benchmark{bench.Access()}
		accessFlags(flags, &s)
	case "writes":
		benchmarks = []bench.Benchmark{bench.Writes()}
		writesFlags(flags, &s)
	case "all":
		benchmarks = []bench.Benchmark{bench.Access(), bench.Writes()}
		accessFlags(flags, &s)
		writesFlags(flags, &s)
	case "points":
		benchmarks = []bench.Benchmark{bench.Points()}
		s.Rows, s.Each, s.Rounds, s.Clients, s.StatisticsWait = pointsRows, pointsSeconds, pointsRounds, []int{1, 8, 32}, 0
	case "own":
		ownFlags(flags, &files)
		flags.Usage = func() {
			fmt.Fprint(flags.Output(), "crowfoot bench own runs your own workload.\n\n"+bench.FileHelp+"\n")
			flags.PrintDefaults()
		}
	case "ceiling": // the other end of points, in a process of its own
		return bench.Ceiling(ctx)
	case "help", "-h", "--help":
		fmt.Print(benchUsage)
		return nil
	default:
		return fmt.Errorf("unknown benchmark %q\n\n%s", args[0], benchUsage)
	}
	commonFlags(flags, &s)
	flags.Parse(args[1:])
	if flags.NArg() > 0 {
		return fmt.Errorf("bench %s takes no argument %q", args[0], strings.Join(flags.Args(), " "))
	}
	if args[0] == "own" {
		own, err := bench.Own(files)
		if err != nil {
			return err
		}
		benchmarks = append(benchmarks, own)
	}
	_, err := bench.Run(ctx, s, benchmarks...)
	return err
}

// commonFlags are those of every benchmark.
func commonFlags(flags *flag.FlagSet, s *bench.Settings) {
	flags.IntVar(&s.Rows, "rows", s.Rows, "rows in the table")
	seconds(flags, &s.Each, "seconds", "how long each path is measured, in all rounds together")
	flags.IntVar(&s.Count, "count", 0, "operations of each path, in all rounds together, in place of --seconds")
	flags.IntVar(&s.Rounds, "rounds", s.Rounds, "how often the paths take turns")
	flags.Var((*numbers)(&s.Clients), "clients", "clients at once; everything is repeated for each number of a list 1,8,32")
	flags.Float64Var(&s.Rate, "rate", 0, "operations per second of all clients together, due at even intervals (open loop); 0: each client sends when it has its answer")
	flags.StringVar(&s.Address, "endpoint", "", "HOST:PORT of a server that speaks plain text; needs --database")
	flags.StringVar(&s.Database, "database", "", "projects/P/instances/I/databases/D; without --endpoint it is on Cloud Spanner")
	flags.IntVar(&s.PID, "pid", 0, "process of the server at --endpoint, if it runs on this machine, for its CPU")
	flags.StringVar(&s.Control, "control", "", "an older executable of crowfoot: its server answers the same requests turn by turn, on equal data")
	flags.StringVar(&s.Dir, "dir", "", "directory for the embedded server's data (default: a temporary one)")
	flags.StringVar(&s.Report, "report", "", "file for a page with charts (HTML)")
	flags.StringVar(&s.JSON, "json", "", "file for all figures (JSON)")
	seconds(flags, &s.StatisticsWait, "stats-wait", "how long to wait, at most, for the server's statistics of the last minute")
}

func accessFlags(flags *flag.FlagSet, s *bench.Settings) {
	flags.IntVar(&s.Keys, "keys", s.Keys, "rows of a range, and scattered keys of a read")
	flags.IntVar(&s.Splits, "splits", s.Splits, "splits over which the scattered keys lie")
}

func writesFlags(flags *flag.FlagSet, s *bench.Settings) {
	flags.IntVar(&s.Batch, "batch", s.Batch, "rows of the larger commit")
}

func ownFlags(flags *flag.FlagSet, files *bench.Files) {
	for _, k := range []struct {
		kind  bench.Kind
		usage string
	}{
		{bench.SQLFile, "file of SQL, with parameters declared in comments: -- @id INT64 1..1000 (repeatable)"},
		{bench.ReadFile, "file of a read: table T, columns A, B, keys @ids, range @a to @b (repeatable)"},
		{bench.WriteFile, "file of mutations: insert T Id = @id, Name = 'x' (repeatable)"},
	} {
		flags.Func(string(k.kind), k.usage, func(name string) error {
			files.Paths = append(files.Paths, bench.File{Kind: k.kind, Name: name})
			return nil
		})
	}
	flags.StringVar(&files.DDL, "ddl", "", "file of statements that make the tables")
	flags.StringVar(&files.Load, "load", "", "file of mutations to fill the tables with, once for each of --rows")
}

// seconds is a flag in seconds.
func seconds(flags *flag.FlagSet, d *time.Duration, name, usage string) {
	flags.Func(name, fmt.Sprintf("%s (seconds, default %g)", usage, d.Seconds()), func(text string) error {
		v, err := strconv.ParseFloat(strings.TrimSuffix(text, "s"), 64)
		if err != nil || v < 0 || v > maxSeconds {
			return fmt.Errorf("want seconds from 0 to %d", int(maxSeconds))
		}
		*d = time.Duration(v * float64(time.Second))
		return nil
	})
}

// maxSeconds is a day.
const maxSeconds = 24 * 60 * 60

// numbers is a flag with a list of numbers.
type numbers []int

func (n *numbers) String() string {
	var parts []string
	for _, v := range *n {
		parts = append(parts, strconv.Itoa(v))
	}
	return strings.Join(parts, ",")
}

func (n *numbers) Set(text string) error {
	*n = nil
	for _, part := range strings.Split(text, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("want numbers like 1,8,32")
		}
		*n = append(*n, v)
	}
	return nil
}
