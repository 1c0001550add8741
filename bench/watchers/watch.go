package watchers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
	"github.com/crowfoot-db/crowfoot/resultset"
)

// watchRun is the state of one call of Run.
type watchRun struct {
	Settings
	target *harness.Target
	report *Report
	screen *harness.Screen
	began  time.Time
	// ahead is how far the server's clock is ahead of this program's.
	ahead time.Duration
	// next is the number of the next change. The changes with lower numbers have written the rows that are in the
	// table.
	next  int64
	shown time.Time // when the status was last shown
}

// Run writes changes and watches them. It reports when each change was delivered, and whether any was lost or delivered
// twice. The settings must have passed Check. If the run fails, Run still reports the measurements made so far.
func Run(ctx context.Context, s Settings) (results *Report, err error) {
	files, err := s.Outputs.Create()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	w := &watchRun{Settings: s, began: time.Now(), screen: harness.NewScreen(s.Progress)}
	w.screen.Note("starting")
	if w.target, err = w.open(ctx); err != nil {
		return nil, harness.OrInterrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, w.target.Close()) }()
	w.report = newWatchReport(w.began, s, w.target)
	if err = w.measure(ctx); err != nil {
		err = harness.OrInterrupted(ctx, err)
		w.report.Partial = report.OneLine(err)
		err = fmt.Errorf("%w (%w)", err, harness.ErrPartial)
	}
	w.screen.Finish()
	w.report.complete()
	return w.report, errors.Join(err, w.report.Text(s.Out), files.Write(w.report))
}

// open connects to the server. If Create is set, open first creates the database, unless the database exists.
func (w *watchRun) open(ctx context.Context) (*harness.Target, error) {
	if w.Create {
		if err := createDatabase(ctx, w.Endpoint); err != nil {
			return nil, err
		}
	}
	return harness.OpenTarget(ctx, w.Endpoint, "", resultset.ClientOption())
}

// measure runs the experiments that belong to the mode of the run.
func (w *watchRun) measure(ctx context.Context) (err error) {
	if w.next, err = w.makeWatchTable(ctx); err != nil {
		return fmt.Errorf("prepare %s: %w", w.Table, err)
	}
	if w.ahead, err = clockAhead(ctx, w.target); err != nil {
		return err
	}
	switch w.Mode {
	case Matrix:
		err = w.matrix(ctx)
	case Capacity:
		err = w.capacity(ctx)
	case Compare:
		best := w.Watching
		best.Source, best.NoHint, best.NoShards, best.Prune = Poll, false, false, 0
		if w.Source == Stream {
			best.Watchers = 1 // one watcher, and not one for each partition of the stream
		}
		_, err = w.one(ctx, w.experiment(w.Watching, best))
	default:
		_, err = w.one(ctx, w.experiment(w.Watching))
	}
	if err != nil {
		return err
	}
	return w.askPolls(ctx)
}

// forget deletes the checkpoints that earlier runs have stored for the table and its change stream.
func (w *watchRun) forget(ctx context.Context) error {
	there, err := w.target.Has(ctx, "TABLES", "TABLE_NAME", lastSeenTable)
	if err != nil || !there {
		return err
	}
	_, err = w.target.Client.PartitionedUpdate(ctx, spanner.Statement{
		SQL:    "DELETE FROM " + lastSeenTable + " WHERE TABLE_NAME IN (@table, @stream)",
		Params: map[string]any{"table": w.Table, "stream": w.stream()},
	})
	return err
}

// lastSeenTable is the name of the table in which Google's Java library Spanner Change Watcher stores checkpoints: the
// commit timestamps last seen. Package watch uses the same table.
const lastSeenTable = "LAST_SEEN_COMMIT_TIMESTAMPS"

// watchExperiment is one load and the sides that watch it at the same time, each in a way of its own.
type watchExperiment struct {
	name      string
	load      Load
	ways      []Watching
	lasts     time.Duration
	backlog   int
	published *Published // figures that studyOfWatching gives for the load and ways[0]; nil for none
}

// experiment returns the experiment that the settings describe.
func (w *watchRun) experiment(ways ...Watching) watchExperiment {
	return watchExperiment{name: loadName(w.Load), load: w.Load, ways: ways, lasts: w.Each, backlog: w.Backlog, published: publishedFor(w.Load, ways[0])}
}

// one runs an experiment and adds its results to the report.
func (w *watchRun) one(ctx context.Context, e watchExperiment) ([]*Result, error) {
	made := &changes{first: w.next}
	write := &writer{Load: e.load, client: w.target.Client, table: w.Table, changes: made}
	// The method forget deletes stored checkpoints. In the mode Matrix, this is also necessary before each experiment,
	// because several experiments divide the shards in the same way. Otherwise the watchers of one experiment would
	// continue from the checkpoints of another one, and would first deliver the changes of all loads in between.
	if w.Reset || w.Mode == Matrix {
		if err := w.forget(ctx); err != nil {
			return nil, err
		}
	}
	start, err := timeAt(ctx, w.target)
	if err != nil {
		return nil, err
	}
	if e.backlog > 0 {
		// A record of a change stream holds the changes of one transaction, and the report counts records. So the
		// transactions of the backlog get the same size as those of the load. Otherwise the counts and times of the
		// records could not be compared.
		batch := harness.LoadBatch
		if w.Source == Stream {
			batch = e.load.Mutations
		}
		if err := write.backlog(ctx, e.backlog, batch, w.screen); err != nil {
			return nil, err
		}
	}
	var sides []*side
	for i, way := range e.ways {
		sides = append(sides, w.side(e, way, len(w.report.Results)+i, newDeliveries(made, w.ahead, e.lasts)))
	}
	err = w.together(ctx, e, write, sides, start)
	w.next = made.first + int64(len(made.list))
	var results []*Result
	for _, s := range sides {
		s.result.fill(e, write, s)
		if err != nil { // the run ended early and did not wait for the missing changes
			s.result.Lost, s.result.Held = 0, false
		}
		results = append(results, s.result)
	}
	w.report.Results = append(w.report.Results, results...)
	return results, err
}

// together runs the watchers and the load at the same time. It returns when the watchers have delivered every change,
// or when they have delivered nothing new for a long time (stuckAfter).
func (w *watchRun) together(ctx context.Context, e watchExperiment, write *writer, sides []*side, start time.Time) error {
	all, ctx := errgroup.WithContext(ctx)
	watching, stop := context.WithCancel(ctx)
	all.Go(func() error {
		defer stop()
		write.changes.begin(time.Now())
		for _, s := range sides {
			if err := s.start(watching, all, w, start); err != nil {
				return err
			}
		}
		if e.backlog == 0 {
			if err := awaitReady(ctx, sides); err != nil {
				return err
			}
			write.changes.begin(time.Now())
		}
		if w.Profile != "" {
			all.Go(func() error { return w.target.Profile(ctx, w.Profile, e.lasts) })
		}
		written, before := make(chan struct{}), busyOf(w.target)
		all.Go(func() error {
			defer close(written)
			err := write.run(ctx, e.lasts)
			for _, s := range sides {
				s.result.Cores = busyOf(w.target).since(before)
			}
			return err
		})
		return w.follow(ctx, e, sides, written)
	})
	return all.Wait()
}

const (
	// followEvery is the time between two samples of the watchers.
	followEvery = 100 * time.Millisecond
	// stuckAfter is how long, in addition to two poll intervals, watchers may deliver nothing new before the run ends.
	// The missing changes then count as lost.
	stuckAfter = 30 * time.Second
)

// follow takes samples of the watchers and shows their status. It returns when the load is over and the watchers have
// delivered every change, or have delivered nothing new for a long time (stuckAfter).
func (w *watchRun) follow(ctx context.Context, e watchExperiment, sides []*side, written <-chan struct{}) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	var over time.Time // the end of the load
	for {
		select {
		case now := <-tick.C:
			done := true
			for _, s := range sides {
				done = s.follow(now, over) && done
			}
			w.show(e, sides, now)
			if !over.IsZero() && done {
				return harness.Wait(ctx, w.settle(sides))
			}
		case <-written:
			written, over = nil, time.Now()
			for _, s := range sides {
				s.loadOver(over)
			}
		case <-w.target.Server.Ended():
			return harness.ErrServerEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settle returns how long a run continues after every change was delivered, so that it can notice changes that are
// delivered twice. The second delivery of a change comes with the next poll, so settle returns the longest poll
// interval of the sides.
func (w *watchRun) settle(sides []*side) time.Duration {
	return slices.MaxFunc(sides, func(a, b *side) int { return int(a.PollInterval - b.PollInterval) }).PollInterval
}

// timeAt returns the server's time.
func timeAt(ctx context.Context, t *harness.Target) (at time.Time, err error) {
	it := t.Client.Single().Query(ctx, spanner.NewStatement("SELECT CURRENT_TIMESTAMP()"))
	err = it.Do(func(r *spanner.Row) error { return r.Columns(&at) })
	return at, err
}

// clockTries is how often clockAhead asks the server for its time.
const clockTries = 8

// clockAhead returns the server's clock minus this program's. It uses the quickest of several answers, as NTP does. If
// the difference is within the uncertainty of that answer, clockAhead returns 0, since the clocks are then probably
// the same.
func clockAhead(ctx context.Context, t *harness.Target) (ahead time.Duration, err error) {
	quickest := time.Duration(-1)
	for range clockTries {
		began := time.Now()
		server, err := timeAt(ctx, t)
		if err != nil {
			return 0, fmt.Errorf("ask for the server's time: %w", err)
		}
		took := time.Since(began)
		if quickest >= 0 && took >= quickest {
			continue
		}
		quickest, ahead = took, server.Sub(began.Add(took/2))
	}
	if ahead.Abs() <= quickest/2 {
		return 0, nil
	}
	return ahead, nil
}

// fact adds a line to the report's facts and shows it on the screen at once.
func (w *watchRun) fact(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	w.report.Facts = append(w.report.Facts, text)
	w.screen.Note(text)
}

// createDatabase creates the database if it does not exist. The instance must exist.
func createDatabase(ctx context.Context, e bench.Endpoint) error {
	c, err := database.NewDatabaseAdminClient(ctx, harness.PlainTextOptions(e.Address)...)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, harness.ProbeTimeout)
	defer cancel()
	_, err = c.GetDatabase(ctx, &databasepb.GetDatabaseRequest{Name: e.Database})
	if status.Code(err) != codes.NotFound {
		return err
	}
	instance, name, _ := strings.Cut(e.Database, "/databases/")
	op, err := c.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{Parent: instance, CreateStatement: "CREATE DATABASE `" + name + "`"})
	if err == nil {
		_, err = op.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", e.Database, err)
	}
	return nil
}
