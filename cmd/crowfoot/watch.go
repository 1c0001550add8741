package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/resultset"
	"github.com/crowfoot-db/crowfoot/version"
	"github.com/crowfoot-db/crowfoot/watch"
	"github.com/crowfoot-db/crowfoot/watch/avro"
	"github.com/crowfoot-db/crowfoot/watch/command"
)

// watchSettings are the values of the flags of watch.
type watchSettings struct {
	endpoint, database, repository, from string
	stream                               string
	exclude, columns, hints, changeSets  []string
	tag                                  string
	limit                                int
	interval, maxInterval, prune         time.Duration
	level                                slog.Level
	asJSON                               bool
	shards                               shardSettings
	sink                                 sinkSettings
	server                               *connectivity
}

func newWatch() *cobra.Command {
	var s watchSettings
	c := &cobra.Command{
		Use:   "watch [TABLE...] [flags]",
		Short: "Print or pass on what changes in a database",
		Long: `Prints each row that is inserted or updated, as a line of JSON, until it is told to stop; --exec, --post and --pubsub-topic pass changes on instead.
It watches the TABLEs, or all that have a column with the option allow_commit_timestamp, also those that are created later; a table of a named
schema is SCHEMA.TABLE. Rows whose writers do not set that column are not seen, nor are deleted rows; of several changes of a row between two polls
the last is seen. --stream reads a change stream, which has them all.

It stores how far it has come, and goes on from there when it is started again. Each change is delivered at least once, and those of one key in
the order of their commits: after a crash, changes of the last second may come again.

The database may be on any server: the one at --endpoint or SPANNER_EMULATOR_HOST (plain text: Crowfoot, Google's emulator), or on Cloud Spanner,
with the credentials of your environment.

The exit status is 0 if it was told to stop, or if the command of --exec has ended with 0; 64 if the command line is wrong; and 1 otherwise.`,
		Example: `  crowfoot watch --endpoint 127.0.0.1:9010 --database projects/p/instances/i/databases/d
  crowfoot watch Singers Albums --database projects/p/instances/i/databases/d --exec 'jq .new_values'
  crowfoot watch --stream Everything --database projects/p/instances/i/databases/d`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE:                  func(c *cobra.Command, tables []string) error { return s.run(c.Context(), c.Flags(), tables) },
	}
	s.register(c.Flags())
	nameVariables(c.Flags(), "CROWFOOT_WATCH")
	s.sink.complete(c)
	cobra.CheckErr(c.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(logLevels, cobra.ShellCompDirectiveNoFileComp)))
	cobra.CheckErr(c.RegisterFlagCompletionFunc("from", cobra.FixedCompletions([]string{"now", "beginning"}, cobra.ShellCompDirectiveNoFileComp)))
	return c
}

func (s *watchSettings) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&s.database, "database", "", "`NAME` of the database, projects/P/instances/I/databases/D")
	flags.StringVar(&s.endpoint, "endpoint", "", "`HOST:PORT` of a server that speaks plain text; SPANNER_EMULATOR_HOST, or else Cloud Spanner, if it is left out")
	flags.StringVar(&s.stream, "stream", "", "`NAME` of a change stream that is read, in place of polling tables: it has deletes, every change of a row, and whole transactions")
	flags.StringSliceVar(&s.exclude, "exclude", nil, "`TABLE` that is not watched (repeatable, or a list with commas)")
	flags.StringVar(&s.from, "from", "now", "`TIMESTAMP` after which changes are delivered, where the repository has no position yet: now, a time like 2026-11-22T10:00:00Z or, without --stream, beginning")
	flags.StringVar(&s.repository, "repository", "./crowfoot-watch.json", "`WHERE` to store how far each table is delivered: a file; spanner, a table in the database; spanner:NAME, one in another database; or memory, which forgets it")
	flags.StringArrayVar(&s.columns, "commit-timestamp-column", nil, "`[TABLE=]COLUMN` that has the commit timestamp, if not the only one with allow_commit_timestamp (repeatable)")
	flags.StringArrayVar(&s.hints, "hint", nil, "`[TABLE=]HINT` for the table in queries, such as @{FORCE_INDEX=SingersByLastUpdated} (repeatable)")
	flags.StringSliceVar(&s.changeSets, "change-sets", nil, "`NAMES` of the table of change sets by which tables without a commit timestamp are watched, and of its columns: CHANGE_SETS,CHANGE_SET_ID,COMMIT_TIMESTAMP, and of that of watched tables, CHANGE_SET_ID; later names may be left out")
	flags.IntVar(&s.limit, "limit", 10_000, "how many rows one query returns at most")
	flags.DurationVar(&s.interval, "interval", time.Second, "`DURATION` from one poll of a table to the next")
	flags.DurationVar(&s.maxInterval, "max-interval", 0, "`DURATION` to which the interval of a table grows while it does not change; --interval if it is left out")
	flags.StringVar(&s.tag, "request-tag", "", "`TAG` of the queries, by which the database's statistics tell them from others")
	s.shards.register(flags)
	flags.DurationVar(&s.prune, "prune", 0, "`AGE`, such as 24h, after which commit timestamps of delivered rows are set to NULL, to keep a NULL_FILTERED index small")
	s.sink.register(flags)
	s.level = slog.LevelWarn
	flags.Var((*level)(&s.level), "log-level", "`LEVEL` of what to log: error, warn, info, debug")
	flags.BoolVar(&s.asJSON, "log-json", false, "log as lines of JSON")
}

var databaseName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+/databases/[^/]+$`)

// source checks the settings and returns the source that polls these tables.
func (s *watchSettings) source(tables []string) (*watch.Tables, error) {
	switch {
	case s.database == "":
		return nil, usageErrorf("watch needs --database projects/P/instances/I/databases/D")
	case !databaseName.MatchString(s.database):
		return nil, usageErrorf("--database is %q: want projects/P/instances/I/databases/D", s.database)
	case s.limit < 1:
		return nil, usageErrorf("--limit is %d: want at least 1", s.limit)
	case s.interval <= 0:
		return nil, usageErrorf("--interval is %v: want more than 0", s.interval)
	case s.maxInterval != 0 && s.maxInterval < s.interval:
		return nil, usageErrorf("--max-interval is %v: want at least --interval, %v", s.maxInterval, s.interval)
	case s.repository == "" || strings.HasPrefix(s.repository, otherDatabase) && !databaseName.MatchString(s.repository[len(otherDatabase):]):
		return nil, usageErrorf("--repository is %q: want a file, spanner, spanner:projects/P/instances/I/databases/D, or memory", s.repository)
	case len(s.changeSets) > 4:
		return nil, usageErrorf("--change-sets is %q: want at most four names", strings.Join(s.changeSets, ","))
	case !s.canStore():
		return nil, usageErrorf("--repository is %q: there is no directory %s", s.repository, filepath.Dir(s.repository))
	case s.prune < 0:
		return nil, usageErrorf("--prune is %v: want an age", s.prune)
	case s.prune > 0 && len(s.changeSets) > 0:
		return nil, usageErrorf("--prune and --change-sets contradict each other: the tables that are watched have no commit timestamp to prune")
	}
	for _, h := range s.hints {
		if !hintOfTable.MatchString(h) {
			return nil, usageErrorf("--hint is %q: want [TABLE=]@{HINT=VALUE}", h)
		}
	}
	shards, err := s.shards.provider()
	if err != nil {
		return nil, err
	}
	source := &watch.Tables{Include: tables, Exclude: s.exclude, Interval: s.interval, MaxInterval: s.maxInterval, Options: map[string]watch.TableOptions{}}
	source.Default = watch.TableOptions{Shards: shards, Limit: s.limit, RequestTag: s.tag, PruneAfter: s.prune}
	if len(s.changeSets) > 0 {
		names := append(s.changeSets, make([]string, 4)...)
		source.Default.ChangeSets = &watch.ChangeSets{Table: names[0], ID: names[1], CommitTimestamp: names[2], DataID: names[3]}
	}
	eachTable(source, s.columns, func(o *watch.TableOptions, column string) { o.CommitTimestamp = column })
	eachTable(source, s.hints, func(o *watch.TableOptions, hint string) { o.Hint = hint })
	return source, nil
}

// ofPolls lists the flags that configure the polling of tables.
var ofPolls = []string{"commit-timestamp-column", "hint", "change-sets", "limit", "interval", "max-interval", "request-tag", "shard-column", "shard-values", "shard-type", "shard-interval", "prune"}

// checkStream returns an error if the user watches a change stream and has set a flag that only polls of tables use.
func (s *watchSettings) checkStream(flags *pflag.FlagSet) error {
	for _, name := range ofPolls {
		if f := flags.Lookup(name); s.stream != "" && originOf(f) != byDefault {
			return usageErrorf("--stream and %s contradict each other: a change stream is not polled", written(f))
		}
	}
	return nil
}

var (
	ofTable     = regexp.MustCompile(`^([\pL_][\pL\d_.]*)=(.*)$`)
	hintOfTable = regexp.MustCompile(`^([\pL_][\pL\d_.]*=)?@\{[^{}]*\}$`) // SQL would parse a hint without braces as an alias
)

// eachTable sets an option of tables by calling the function set with each of the values. A value of the form
// TABLE=VALUE applies to one table, any other value to all tables. eachTable first applies the values for all tables,
// so that those for one table override them.
func eachTable(source *watch.Tables, values []string, set func(o *watch.TableOptions, value string)) {
	for _, value := range values {
		if !ofTable.MatchString(value) {
			set(&source.Default, value)
			for name, o := range source.Options {
				set(&o, value)
				source.Options[name] = o
			}
		}
	}
	for _, value := range values {
		if m := ofTable.FindStringSubmatch(value); m != nil {
			o, ok := source.Options[m[1]]
			if !ok {
				o = source.Default
			}
			set(&o, m[2])
			source.Options[m[1]] = o
		}
	}
}

// start returns the time that --from gives. The zero time means now.
func (s *watchSettings) start() (time.Time, error) {
	switch s.from {
	case "now":
		return time.Time{}, nil
	case "beginning":
		if s.stream != "" {
			return time.Time{}, usageErrorf("--from is beginning: a change stream has the changes of its retention period only, so want now or a timestamp of that period")
		}
		return time.Unix(0, 0), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s.from)
	if err != nil {
		return time.Time{}, usageErrorf("--from is %q: want now, beginning, or a timestamp such as 2026-11-22T10:00:00Z", s.from)
	}
	return t, nil
}

// run watches the tables, or the change stream, until ctx ends.
func (s *watchSettings) run(ctx context.Context, flags *pflag.FlagSet, tables []string) error {
	polled, err := s.source(tables)
	if err == nil {
		err = s.checkStream(flags)
	}
	if err != nil {
		return err
	}
	start, err := s.start()
	if err != nil {
		return err
	}
	if err := s.sink.check(); err != nil {
		return err
	}
	if s.endpoint != "" {
		os.Setenv("SPANNER_EMULATOR_HOST", s.endpoint) // makes the client connect without TLS
	}
	// This limits the pauses between attempts of requests that the client itself retries. The default limit is 32
	// seconds.
	spanner.DefaultRetryBackoff.Max = reconnect.Backoff.MaxDelay
	s.server = newConnectivity(cmp.Or(os.Getenv("SPANNER_EMULATOR_HOST"), "Cloud Spanner"))
	ctx, stop := s.server.orForeign(ctx)
	defer stop()
	client, err := s.client(ctx, s.database)
	if err != nil {
		return err
	}
	defer client.Close()
	polled.Client = client
	encoder := avro.NewEncoder(client)
	var source watch.Source = polled
	if s.stream != "" {
		encoder = avro.NewStreamEncoder(client)
		source = &watch.Stream{Client: client, Name: s.stream, Include: tables, Exclude: s.exclude}
	}
	if s.sink.schemas {
		err := s.server.answered(ctx, func(ctx context.Context) error {
			_, err := polled.Now(ctx)
			return err
		})
		if err == nil {
			err = printSchemas(ctx, os.Stdout, polled, encoder)
		}
		return inServersWords(orForeign(ctx, err))
	}
	repository, closeRepository, err := s.checkpoints(ctx, client)
	if err != nil {
		return err
	}
	defer closeRepository()
	return s.follow(ctx, watch.Options{Source: source, Repository: repository, Start: start}, encoder)
}

// follow adds the handler and the log to the options, runs a watcher with them, and shows its progress.
func (s *watchSettings) follow(ctx context.Context, o watch.Options, encoder *avro.Encoder) error {
	screen := newWatchScreen(os.Stdout, os.Stderr)
	sink, err := s.sink.open(ctx, screen, s.database, encoder)
	if err != nil {
		return err
	}
	o.Handler, o.Log = sink.handler, newLog(screen.stderr(), s.level, s.asJSON)
	w, err := watch.New(o)
	if err != nil {
		return errors.Join(err, sink.close())
	}
	stop := screen.follow(w, s.server)
	stopWarning := warnLate(w, s.server, o.Log, lateLimit+max(s.interval, s.maxInterval))
	err = orForeign(ctx, w.Run(ctx))
	stopWarning()
	stop()
	closed := sink.close()
	switch {
	case errors.Is(err, command.ErrEnded):
		return nil
	case err != nil:
		return inServersWords(err)
	}
	return closed
}

// inServersWords returns err with the text of the errors that a server has returned, but without gRPC's codes and the
// client's request IDs.
func inServersWords(err error) error {
	list := answers(err)
	if len(list) == 0 {
		return err
	}
	text := err.Error()
	for _, answer := range list {
		text = strings.Replace(text, answer.Error(), grpcstatus.Convert(answer).Message(), 1)
	}
	return errors.New(text)
}

// answers returns the errors that came from a server: err itself, or errors that it wraps.
func answers(err error) (list []error) {
	if _, ok := err.(interface{ GRPCStatus() *grpcstatus.Status }); ok {
		return []error{err}
	}
	switch within := err.(type) {
	case interface{ Unwrap() error }:
		return answers(within.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range within.Unwrap() {
			list = append(list, answers(err)...)
		}
	}
	return list
}

// client returns a client of a database. It sends no request to the server.
func (s *watchSettings) client(ctx context.Context, database string) (*spanner.Client, error) {
	return newClient(ctx, database, spanner.ClientConfig{UserAgent: "crowfoot-watch/" + version.Get().Version}, s.server.options()...)
}

// newClient returns a client of a database. It sends no request to the server.
func newClient(ctx context.Context, database string, config spanner.ClientConfig, more ...option.ClientOption) (*spanner.Client, error) {
	config.DisableNativeMetrics, config.Logger = true, log.New(io.Discard, "", 0)
	more = append(more, option.WithGRPCDialOption(grpc.WithConnectParams(reconnect)), resultset.ClientOption())
	client, err := spanner.NewClientWithConfig(ctx, database, config, more...)
	if err != nil {
		return nil, fmt.Errorf("a client of Cloud Spanner (--endpoint names another server): %w", err)
	}
	return client, nil
}

// reconnect makes gRPC retry the connection every few seconds if the server is not available, so that changes arrive
// soon after the server is back. By default gRPC clients wait longer after each attempt, up to two minutes.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
	MinConnectTimeout: 20 * time.Second, // gRPC's default
}

// canStore returns false if --repository is a file in a directory that does not exist.
func (s *watchSettings) canStore() bool {
	if s.repository == "memory" || s.repository == "spanner" || strings.HasPrefix(s.repository, otherDatabase) {
		return true
	}
	info, err := os.Stat(filepath.Dir(s.repository))
	return err == nil && info.IsDir()
}

// otherDatabase is the prefix of a --repository that is a table in another database than the watched one.
const otherDatabase = "spanner:"

// checkpoints opens the repository that --repository names. closeIt closes it.
func (s *watchSettings) checkpoints(ctx context.Context, watched *spanner.Client) (_ watch.Repository, closeIt func(), _ error) {
	nothing := func() {}
	switch s.repository {
	case "memory":
		return watch.NewMemory(), nothing, nil
	case "spanner":
		return &watch.SpannerTable{Client: watched}, nothing, nil
	}
	database, other := strings.CutPrefix(s.repository, otherDatabase)
	if !other {
		return watch.NewFile(s.repository), nothing, nil
	}
	client, err := s.client(ctx, database)
	if err != nil {
		return nil, nil, err
	}
	return &watch.SpannerTable{Client: client}, client.Close, nil
}
