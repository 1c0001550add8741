package watch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Options configure a Watcher. Source and Handler are required.
type Options struct {
	Source  Source
	Handler Handler
	// Repository keeps checkpoints. nil means NewMemory(), with which every new watcher begins at Start.
	Repository Repository
	// Start is the time from which feeds without a checkpoint start: only changes that were committed after it are
	// delivered. The zero value means the current time. With time.Unix(0, 0), every row that has a commit timestamp
	// comes.
	Start time.Time
	// CheckpointInterval is the longest time until a new checkpoint is stored; 0 means one second.
	CheckpointInterval time.Duration
	// DiscoveryInterval is the interval at which the watcher asks the source for its feeds and retries failed feeds; 0
	// means ten seconds.
	DiscoveryInterval time.Duration
	Log               *slog.Logger // nil means that nothing is logged
}

const (
	defaultCheckpointInterval = time.Second
	defaultDiscoveryInterval  = 10 * time.Second
)

// A Watcher runs the feeds of a source.
type Watcher struct {
	o      Options
	log    *slog.Logger
	start  time.Time
	failed chan struct{} // gets a value when a runner has ended or has failed with a lasting error (see lasting)

	mu      sync.Mutex
	running bool
	runners map[FeedID]*feedRunner
	gone    map[FeedID]*feedRunner // runners of feeds that the source no longer lists
	listed  bool                   // whether the source has listed its feeds at least once
	fail    func(error)            // makes Run end and return the error
	ended   sync.WaitGroup         // counts all running runners, including those in gone
}

// New returns a watcher. It does not contact the database.
func New(o Options) (*Watcher, error) {
	if o.Source == nil || o.Handler == nil {
		return nil, errors.New("watch.New: Options need a Source and a Handler")
	}
	if o.Repository == nil {
		o.Repository = NewMemory()
	}
	if o.CheckpointInterval <= 0 {
		o.CheckpointInterval = defaultCheckpointInterval
	}
	if o.DiscoveryInterval <= 0 {
		o.DiscoveryInterval = defaultDiscoveryInterval
	}
	w := &Watcher{o: o, log: o.Log, failed: make(chan struct{}, 1)}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	return w, nil
}

// Run delivers changes until ctx ends. It then waits for the handler, stores the checkpoints and returns nil. It
// returns an error if the repository or the source cannot be used, or if the handler returns a Fatal error. It also
// returns an error if every feed has failed with an error that a retry would not overcome (for Tables, this means that
// no table can be watched).
func (w *Watcher) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.mu.Lock()
	if w.running {
		w.mu.Unlock()
		return errors.New("watch: Run was called while it runs")
	}
	w.running, w.listed, w.runners, w.gone, w.fail = true, false, map[FeedID]*feedRunner{}, map[FeedID]*feedRunner{}, cancel
	w.mu.Unlock()
	err := w.supervise(ctx)
	if ctx.Err() != nil {
		if err = context.Cause(ctx); !isFatal(err) {
			err = nil // the caller has ended ctx
		}
	}
	cancel(nil)
	w.ended.Wait()
	w.mu.Lock()
	w.running = false
	w.mu.Unlock()
	return err
}

// supervise starts runners for the feeds that the source lists, and stops the runners of feeds that it no longer lists.
func (w *Watcher) supervise(ctx context.Context) error {
	if err := w.again(ctx, "the repository", func() error { return w.o.Repository.Check(ctx) }); err != nil {
		return err
	}
	if err := w.again(ctx, "the start", func() error { return w.begin(ctx) }); err != nil {
		return err
	}
	var feeds []Feed
	err := w.again(ctx, "the feeds", func() (err error) {
		feeds, err = w.o.Source.Feeds(ctx)
		return err
	})
	if err != nil {
		return err
	}
	w.warnOfAbsent(ctx, len(feeds))
	tick := time.NewTicker(w.o.DiscoveryInterval)
	defer tick.Stop()
	for {
		w.arrange(ctx, feeds)
		if err, over := w.over(); over {
			return err
		}
		if feeds, err = w.discover(ctx, tick.C, feeds); err != nil {
			return err
		}
	}
}

// absentTable is a name in a source for which there is no table or, in Stream.Include, no table that the stream watches.
// Either the name is wrong, or the table will be created later.
type absentTable struct {
	table string
	named string // the field of the source that names the table
}

// warnOfAbsent logs each absentTable of the source. It also logs if the source has no feeds.
func (w *Watcher) warnOfAbsent(ctx context.Context, feeds int) {
	if feeds == 0 {
		w.log.Warn("there is nothing to watch yet")
	}
	source, ok := w.o.Source.(interface {
		absent(context.Context) ([]absentTable, error)
	})
	if !ok {
		return
	}
	list, err := source.absent(ctx)
	if err != nil && ctx.Err() == nil {
		w.log.Warn("the tables that are named cannot be looked up", "error", err)
	}
	for _, a := range list {
		w.log.Warn("a table is named that is not there", "table", a.table, "named", a.named)
	}
}

// discover waits for the next tick or for a call of runnerOver, and then asks the source for its feeds. If the source
// returns an error, discover logs the error and returns the known feeds.
func (w *Watcher) discover(ctx context.Context, tick <-chan time.Time, known []Feed) ([]Feed, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-tick:
		w.retryFailed()
	case <-w.failed:
	}
	feeds, err := w.o.Source.Feeds(ctx)
	if err == nil || ctx.Err() != nil {
		return feeds, ctx.Err()
	}
	w.log.Warn("the feeds cannot be listed", "error", err)
	return known, nil
}

// again calls f until f returns nil or an error that a retry would not overcome, or until ctx ends.
func (w *Watcher) again(ctx context.Context, what string, f func() error) error {
	for failures := 0; ; failures++ {
		err := f()
		if err == nil || lasting(err) || ctx.Err() != nil {
			return err
		}
		w.log.Warn("waiting for "+what, "error", err)
		if !sleep(ctx, pause(failures)) {
			return ctx.Err()
		}
	}
}

// begin sets the timestamp at which feeds without a checkpoint start. If feeds may appear later, begin stores that
// timestamp in the repository. So if a table is created while no watcher runs, its feed starts where the first watcher
// started.
func (w *Watcher) begin(ctx context.Context) (err error) {
	id := w.o.Source.ID()
	if id != (FeedID{}) {
		if c, ok, err := w.o.Repository.Load(ctx, id); err != nil || ok {
			w.start = c.Timestamp
			return err
		}
	}
	if w.start = w.o.Start; w.start.IsZero() {
		if w.start, err = w.o.Source.Now(ctx); err != nil {
			return err
		}
	}
	if id == (FeedID{}) {
		return nil
	}
	return w.o.Repository.Store(ctx, id, Checkpoint{Timestamp: w.start})
}

func (w *Watcher) arrange(ctx context.Context, feeds []Feed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listed = true
	listed := map[FeedID]bool{}
	for _, f := range feeds {
		id := f.ID()
		listed[id] = true
		if w.runners[id] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		l := &feedRunner{w: w, feed: f, id: id, cancel: cancel, retry: make(chan struct{}, 1), over: make(chan struct{}), before: w.gone[id], since: time.Now()}
		delete(w.gone, id)
		w.runners[id] = l
		w.ended.Go(func() { l.run(ctx) })
	}
	for id, l := range w.runners {
		if !listed[id] {
			w.log.Warn("the feed is gone", l.name())
			l.cancel()
			delete(w.runners, id)
			w.gone[id] = l
		}
	}
}

// over reports whether the watcher has nothing left to do, because each feed has either ended or failed with a lasting
// error. If all feeds have ended without an error but the source may get new feeds, the watcher continues. The returned
// error joins the errors of the failed feeds.
func (w *Watcher) over() (error, bool) {
	var errs []error
	all := w.all()
	for _, l := range all {
		switch h := l.health(); h.State {
		case Failed:
			errs = append(errs, h.Err)
		case Stopped:
		default:
			return nil, false
		}
	}
	return errors.Join(errs...), len(all) > 0 && (len(errs) > 0 || w.o.Source.ID() == (FeedID{}))
}

func (w *Watcher) retryFailed() {
	for _, l := range w.all() {
		if l.health().State == Failed {
			select {
			case l.retry <- struct{}{}:
			default:
			}
		}
	}
}

// runnerOver makes the watcher ask the source for its feeds at once. A runner calls it when its feed has ended or has
// failed with a lasting error, because the feed may no longer exist.
func (w *Watcher) runnerOver() {
	select {
	case w.failed <- struct{}{}:
	default:
	}
}

// all returns the runners of the feeds that the source lists, sorted by name.
func (w *Watcher) all() []*feedRunner {
	w.mu.Lock()
	defer w.mu.Unlock()
	return inOrder(slices.Collect(maps.Values(w.runners)))
}

func inOrder(runners []*feedRunner) []*feedRunner {
	slices.SortFunc(runners, func(a, b *feedRunner) int { return cmp.Compare(a.id.String(), b.id.String()) })
	return runners
}

// Health returns the current state of the watcher and its feeds.
func (w *Watcher) Health() Health {
	w.mu.Lock()
	h := Health{Listed: w.listed}
	w.mu.Unlock()
	ready := 0
	for _, l := range w.all() {
		f := l.health()
		if f.State == Running && f.Err == nil {
			ready++
		}
		h.Feeds = append(h.Feeds, f)
	}
	h.Ready = ready > 0 && ready == len(h.Feeds)
	return h
}

// Metrics returns the metrics of each feed, sorted by name. It includes feeds that the source no longer lists.
func (w *Watcher) Metrics() []FeedMetrics {
	w.mu.Lock()
	runners := slices.AppendSeq(slices.Collect(maps.Values(w.runners)), maps.Values(w.gone))
	w.mu.Unlock()
	var list []FeedMetrics
	for _, l := range inOrder(runners) {
		list = append(list, l.count())
	}
	return list
}
