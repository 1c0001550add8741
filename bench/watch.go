package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"golang.org/x/sync/errgroup"

	"github.com/crowfoot-db/crowfoot/resultset"
)

// watchRun is the state of a run of Watch.
type watchRun struct {
	WatchSettings
	target *target
	report *WatchReport
	screen *screen
	began  time.Time
	// ahead is how far the server's clock is ahead of this program's.
	ahead time.Duration
	// next is the number of the next change: rows of all below are in the table.
	next  int64
	shown time.Time // when the status was
}

// Watch writes changes and watches them, and reports when each was delivered, and whether any was lost or delivered twice. Settings must have
// passed Check. A run that fails reports what it had measured.
func Watch(ctx context.Context, s WatchSettings) (report *WatchReport, err error) {
	files, err := s.create()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	w := &watchRun{WatchSettings: s, began: time.Now(), screen: newScreen(s.Progress)}
	w.screen.note("starting")
	if w.target, err = w.open(ctx); err != nil {
		return nil, orInterrupt(ctx, err)
	}
	defer func() { err = errors.Join(err, w.target.close()) }()
	w.report = newWatchReport(w.began, s, w.target)
	if err = w.measure(ctx); err != nil {
		err = orInterrupt(ctx, err)
		w.report.Partial = oneLine(err)
		err = fmt.Errorf("%w (%w)", err, ErrPartial)
	}
	w.screen.finish()
	w.report.complete()
	return w.report, errors.Join(err, w.report.Text(s.Out), files.write(w.report))
}

// open finds the server, and makes the database if it is missing and may be made.
func (w *watchRun) open(ctx context.Context) (*target, error) {
	if w.Create {
		if err := w.Endpoint.createDatabase(ctx); err != nil {
			return nil, err
		}
	}
	return open(ctx, w.Endpoint, "", resultset.ClientOption())
}

// measure runs what the mode asks for.
func (w *watchRun) measure(ctx context.Context) (err error) {
	if w.next, err = w.makeWatchTable(ctx); err != nil {
		return fmt.Errorf("prepare %s: %w", w.Table, err)
	}
	if w.ahead, err = w.target.clockAhead(ctx); err != nil {
		return err
	}
	switch w.Mode {
	case WatchMatrix:
		err = w.matrix(ctx)
	case WatchCapacity:
		err = w.capacity(ctx)
	case WatchCompare:
		best := w.Watching
		best.Source, best.NoHint, best.NoShards, best.Prune = Poll, false, false, 0
		if w.Source == Stream {
			best.Watchers = 1 // and not as many as the stream has partitions
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

// forget deletes what earlier runs have seen of the table and of its change stream.
func (w *watchRun) forget(ctx context.Context) error {
	there, err := w.target.has(ctx, "TABLES", "TABLE_NAME", lastSeenTable)
	if err != nil || !there {
		return err
	}
	_, err = w.target.client.PartitionedUpdate(ctx, spanner.Statement{
		SQL:    "DELETE FROM " + lastSeenTable + " WHERE TABLE_NAME IN (@table, @stream)",
		Params: map[string]any{"table": w.Table, "stream": w.stream()},
	})
	return err
}

// lastSeenTable is the Java library's repository.
const lastSeenTable = "LAST_SEEN_COMMIT_TIMESTAMPS"

// watchExperiment is one load, watched in one or more ways at the same time.
type watchExperiment struct {
	name      string
	load      Load
	ways      []Watching
	lasts     time.Duration
	backlog   int
	published *Published // nil is none
}

// experiment is what the settings say.
func (w *watchRun) experiment(ways ...Watching) watchExperiment {
	return watchExperiment{name: loadName(w.Load), load: w.Load, ways: ways, lasts: w.Each, backlog: w.Backlog, published: publishedFor(w.Load, ways[0])}
}

// one runs an experiment and adds its results to the report.
func (w *watchRun) one(ctx context.Context, e watchExperiment) ([]*WatchResult, error) {
	made := &changes{first: w.next}
	write := &writer{Load: e.load, client: w.target.client, table: w.Table, changes: made}
	// Settings of the matrix that divide the shards alike go on from different checkpoints, between which others have written.
	if w.Reset || w.Mode == WatchMatrix {
		if err := w.forget(ctx); err != nil {
			return nil, err
		}
	}
	start, err := w.target.now(ctx)
	if err != nil {
		return nil, err
	}
	if e.backlog > 0 {
		// A record of a change stream has the changes of a transaction: records are counted by transactions of the load's size.
		batch := loadBatch
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
	var results []*WatchResult
	for _, s := range sides {
		s.result.fill(e, write, s)
		if err != nil { // the run ended early: what is missing was not waited for
			s.result.Lost, s.result.Held = 0, false
		}
		results = append(results, s.result)
	}
	w.report.Results = append(w.report.Results, results...)
	return results, err
}

// together runs the watchers and the load until the watchers have delivered what the load has written, or do not get on.
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
			all.Go(func() error { return w.target.profile(ctx, w.Profile, e.lasts) })
		}
		written, before := make(chan struct{}), w.target.busy()
		all.Go(func() error {
			defer close(written)
			err := write.run(ctx, e.lasts)
			for _, s := range sides {
				s.result.Cores = w.target.busy().since(before)
			}
			return err
		})
		return w.follow(ctx, e, sides, written)
	})
	return all.Wait()
}

const (
	// followEvery is how often a run looks at where the watchers stand.
	followEvery = 100 * time.Millisecond
	// stuckAfter is how long watchers may deliver nothing of what is written until what is missing counts as lost, beyond two polls.
	stuckAfter = 30 * time.Second
)

// follow notes where the watchers stand, and shows it, until the load is over and they have delivered everything, or do not get on.
func (w *watchRun) follow(ctx context.Context, e watchExperiment, sides []*side, written <-chan struct{}) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	var over time.Time // when the load was
	for {
		select {
		case now := <-tick.C:
			done := true
			for _, s := range sides {
				done = s.follow(now, over) && done
			}
			w.show(e, sides, now)
			if !over.IsZero() && done {
				return wait(ctx, w.settle(sides))
			}
		case <-written:
			written, over = nil, time.Now()
			for _, s := range sides {
				s.loadOver(over)
			}
		case <-w.target.server.ended():
			return errServerEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settle is how long a run goes on when everything is delivered: what is delivered twice comes with the next poll.
func (w *watchRun) settle(sides []*side) time.Duration {
	return slices.MaxFunc(sides, func(a, b *side) int { return int(a.PollInterval - b.PollInterval) }).PollInterval
}

// now is the server's time.
func (t *target) now(ctx context.Context) (at time.Time, err error) {
	it := t.client.Single().Query(ctx, spanner.NewStatement("SELECT CURRENT_TIMESTAMP()"))
	err = it.Do(func(r *spanner.Row) error { return r.Columns(&at) })
	return at, err
}

// clockTries is how often clockAhead asks.
const clockTries = 8

// clockAhead is how far the server's clock is ahead of this program's, from the quickest of several answers as in NTP. Clocks that may be equal as far as
// the answers tell, as those of one machine, count as equal.
func (t *target) clockAhead(ctx context.Context) (ahead time.Duration, err error) {
	quickest := time.Duration(-1)
	for range clockTries {
		began := time.Now()
		server, err := t.now(ctx)
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

// fact puts a line into the report, and on the screen now.
func (w *watchRun) fact(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	w.report.Facts = append(w.report.Facts, text)
	w.screen.note(text)
}
