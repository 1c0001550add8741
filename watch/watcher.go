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

// Options say what a Watcher does. Source and Handler must be given.
type Options struct {
	Source  Source
	Handler Handler
	// Repository keeps checkpoints; nil is NewMemory(), with which every watcher starts anew.
	Repository Repository
	// Start is where feeds without a checkpoint start: changes that were committed after it are delivered. The zero value is now. time.Unix(0, 0) brings
	// every row that has a commit timestamp.
	Start time.Time
	// CheckpointInterval is how long a checkpoint waits at most until it is stored; 0 is a second.
	CheckpointInterval time.Duration
	// DiscoveryInterval is how often the source is asked for new feeds, and failed ones are tried again; 0 is ten seconds.
	DiscoveryInterval time.Duration
	Log               *slog.Logger // nil discards
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
	failed chan struct{} // a lane has failed for good, or ended

	mu      sync.Mutex
	running bool
	lanes   map[FeedID]*lane
	gone    map[FeedID]*lane // that were forgotten
	listed  bool             // the source has listed its feeds
	fail    func(error)      // ends Run
	ended   sync.WaitGroup   // lanes, also those that were forgotten
}

// New makes a watcher. It asks the database for nothing.
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

// Run delivers changes until ctx ends, and then returns nil once the handler has returned and checkpoints are stored. It returns an error if the repository or the source
// cannot be used, if the handler's error is Fatal, or if every feed has failed for good: with Tables, if none of the tables can be watched.
func (w *Watcher) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.mu.Lock()
	if w.running {
		w.mu.Unlock()
		return errors.New("watch: Run was called while it runs")
	}
	w.running, w.listed, w.lanes, w.gone, w.fail = true, false, map[FeedID]*lane{}, map[FeedID]*lane{}, cancel
	w.mu.Unlock()
	err := w.supervise(ctx)
	if ctx.Err() != nil {
		if err = context.Cause(ctx); !isFatal(err) {
			err = nil // the caller has ended it
		}
	}
	cancel(nil)
	w.ended.Wait()
	w.mu.Lock()
	w.running = false
	w.mu.Unlock()
	return err
}

// supervise starts lanes for the feeds that there are, and forgets those of feeds that are gone.
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

// absentTable is a table that a source names and that is not there: it may be created later, or the name may be wrong.
type absentTable struct {
	table string
	named string // by which field of the source
}

// warnOfAbsent logs what the source names in vain, which has no other effect.
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

// discover asks for the feeds when it is time to, or when a lane is over. If that fails, they are those that are known.
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

// again calls f until it returns nil, an error that lasts, or ctx ends.
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

// begin says where feeds without a checkpoint start. If feeds may appear later, this is stored: a table that was made while no watcher ran starts where
// the first watcher did.
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
		if w.lanes[id] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		l := &lane{w: w, feed: f, id: id, cancel: cancel, retry: make(chan struct{}, 1), over: make(chan struct{}), before: w.gone[id], since: time.Now()}
		delete(w.gone, id)
		w.lanes[id] = l
		w.ended.Go(func() { l.run(ctx) })
	}
	for id, l := range w.lanes {
		if !listed[id] {
			w.log.Warn("the feed is gone", l.name())
			l.cancel()
			delete(w.lanes, id)
			w.gone[id] = l
		}
	}
}

// over says whether there is nothing left to do: all feeds have come to their end, or the rest has failed for good.
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

// laneOver has the source asked at once whether the feed is still there.
func (w *Watcher) laneOver() {
	select {
	case w.failed <- struct{}{}:
	default:
	}
}

// all are the lanes of feeds that there are, in the order of their names.
func (w *Watcher) all() []*lane {
	w.mu.Lock()
	defer w.mu.Unlock()
	return inOrder(slices.Collect(maps.Values(w.lanes)))
}

func inOrder(lanes []*lane) []*lane {
	slices.SortFunc(lanes, func(a, b *lane) int { return cmp.Compare(a.id.String(), b.id.String()) })
	return lanes
}

// Health is what the watcher is doing now.
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

// Metrics are the figures of each feed, also of those that are gone, in the order of their names.
func (w *Watcher) Metrics() []FeedMetrics {
	w.mu.Lock()
	lanes := slices.AppendSeq(slices.Collect(maps.Values(w.lanes)), maps.Values(w.gone))
	w.mu.Unlock()
	var list []FeedMetrics
	for _, l := range inOrder(lanes) {
		list = append(list, l.count())
	}
	return list
}
