package watchers

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/watch"
)

// side is a set of watchers that watch in the same way. All sides of an experiment watch the same changes.
type side struct {
	Watching
	*deliveries
	tag      string // request tag of its polls
	watchers []*watch.Watcher
	// repository keeps the checkpoints. The first side of an experiment keeps them in the database, in the same table
	// as Google's Java library Spanner Change Watcher. The other sides keep theirs in memory, so that no side uses the
	// checkpoints of another one.
	repository watch.Repository
	result     *Result

	samples  []sample
	started  time.Time
	most     int64     // highest number of deliveries so far
	moved    time.Time // when the number of deliveries last rose, or when the side started if nothing was delivered yet
	caughtUp time.Time // when the backlog was delivered and the lag was first at most steadyLag; zero until then
	atEnd    standing  // the progress at the end of the load
}

// sample is the progress of a side at a moment.
type sample struct {
	at        time.Time
	lag       time.Duration
	delivered int64
	reads     int64
}

// side creates a side of an experiment. Its result will be number n in the report.
func (w *watchRun) side(e watchExperiment, way Watching, n int, d *deliveries) *side {
	s := &side{Watching: way, deliveries: d, tag: harness.Tag("bench_watch", strconv.FormatInt(w.began.Unix(), 36), fmt.Sprint(n))}
	s.result = &Result{Name: e.name, Load: e.load, Watching: way, Setting: way.text(), Backlog: e.backlog, tag: s.tag}
	s.repository = watch.NewMemory()
	if n == len(w.report.Results) {
		s.repository = &watch.SpannerTable{Client: w.target.Client, ClientOptions: harness.PlainTextOptions(w.target.Address)}
	}
	if len(e.ways) == 1 || !way.recommended() {
		s.result.Published = e.published
	}
	return s
}

// start creates the watchers and runs them until ctx ends. The parameter from is a commit time: a watcher without a
// checkpoint delivers only later changes.
func (s *side) start(ctx context.Context, running *errgroup.Group, w *watchRun, from time.Time) error {
	s.started = time.Now()
	s.moved = s.started
	sources, err := s.sources(w)
	if err != nil {
		return err
	}
	for _, source := range sources {
		watcher, err := watch.New(watch.Options{Source: source, Handler: watch.HandlerFunc(s.handle), Repository: s.repository, Start: from})
		if err != nil {
			return err
		}
		s.watchers = append(s.watchers, watcher)
		running.Go(func() error {
			if err := watcher.Run(ctx); err != nil {
				return fmt.Errorf("watch %s: %w", w.Table, err)
			}
			return nil
		})
	}
	return nil
}

// divide divides the shard values evenly among the watchers, as the benchmark application of Google's Spanner Change
// Watcher does. If the number of shard values is not divisible by the number of watchers, each of the first watchers
// gets one value more.
func (s *side) divide() (parts [][]int64) {
	next := int64(-(shardModulus - 1))
	for i := range s.Watchers {
		n := shardValues / s.Watchers
		if i < shardValues%s.Watchers {
			n++
		}
		part := make([]int64, n)
		for j := range part {
			part[j] = next
			next++
		}
		parts = append(parts, part)
	}
	return parts
}

// sources returns one source for each watcher of the side. A side that reads a change stream has only one watcher.
func (s *side) sources(w *watchRun) (list []watch.Source, err error) {
	if s.Source == Stream {
		return []watch.Source{&watch.Stream{Client: w.target.Client, Name: w.stream(), Include: []string{w.Table}}}, nil
	}
	for _, shards := range s.divide() {
		o := watch.TableOptions{CommitTimestamp: timestampColumn, Limit: s.Limit, PruneAfter: s.Prune, RequestTag: s.tag}
		if !s.NoHint && w.Index != "" {
			o.Hint = "@{FORCE_INDEX=`" + w.Index + "`}"
		}
		if s.NoShards {
			o.Shards = watch.NotNullShard(shardColumn)
		} else if o.Shards, err = watch.FixedShard(shardColumn, shards); err != nil {
			return nil, err
		}
		list = append(list, &watch.Tables{
			Client:   w.target.Client,
			Include:  []string{w.Table},
			Options:  map[string]watch.TableOptions{w.Table: o},
			Interval: s.PollInterval,
		})
	}
	return list, nil
}

// handle records the changes that a watcher delivers.
func (s *side) handle(_ context.Context, tx *watch.Transaction) error {
	now := time.Now()
	for i := range tx.Changes {
		c := &tx.Changes[i]
		key, err := strconv.ParseInt(c.Key.Values[0].GetStringValue(), 10, 64)
		if err != nil {
			return watch.Fatal(fmt.Errorf("key of a change: %w", err))
		}
		s.add(singerNumber(key), c.CommitTimestamp, now)
	}
	return nil
}

// readyEvery is the time between two checks of awaitReady.
const readyEvery = 5 * time.Millisecond

// awaitReady waits until the first read of every watcher has succeeded.
func awaitReady(ctx context.Context, sides []*side) error {
	for _, s := range sides {
		for _, watcher := range s.watchers {
			for !watcher.Health().Ready {
				if err := harness.Wait(ctx, readyEvery); err != nil {
					return context.Cause(ctx)
				}
			}
		}
	}
	return nil
}

// follow takes a sample of the side. The parameter over is the time when the load ended, or zero during the load. The
// result done is true if the load has ended and either every change is delivered, or no further change has been
// delivered for a long time (stuckAfter).
func (s *side) follow(now, over time.Time) (done bool) {
	standing := s.standing(now)
	reads, _ := s.reads()
	s.samples = append(s.samples, sample{now, standing.lag, standing.delivered, reads})
	if standing.delivered > s.most {
		s.most, s.moved = standing.delivered, now
	}
	if s.caughtUp.IsZero() && standing.delivered >= int64(s.result.Backlog) && standing.lag <= s.steadyLag() {
		s.caughtUp = now
		s.result.CatchUp = CatchUp{Seconds: now.Sub(s.began).Seconds(), Changes: standing.delivered, Reads: reads}
	}
	return !over.IsZero() && (standing.behind() == 0 || now.Sub(s.moved) > 2*s.PollInterval+stuckAfter)
}

// reads returns the number of the watchers' reads and their total time.
func (s *side) reads() (n int64, took time.Duration) {
	for _, watcher := range s.watchers {
		for _, m := range watcher.Metrics() {
			n += m.Reads
			took += m.ReadTime
		}
	}
	return n, took
}

// steadyLag returns the longest time that the oldest undelivered change waits if a watcher keeps up: the time until
// the next poll begins, plus a second for that poll.
func (s *side) steadyLag() time.Duration { return s.PollInterval + time.Second }

// loadOver records the progress of the side at the end of the load.
func (s *side) loadOver(now time.Time) { s.atEnd = s.standing(now) }

// grows reports whether the lag grows during a load: whether last > middle + middle/4 + PollInterval/2. Here middle is
// the mean lag in the second third of the load, and last is the mean lag in the last third.
func (s *side) grows(lasts time.Duration) bool {
	middle, last := s.meanLag(lasts/3, 2*lasts/3), s.meanLag(2*lasts/3, lasts)
	return last > middle+middle/4+s.PollInterval/2
}

// meanLag returns the mean lag between two moments of the load.
func (s *side) meanLag(from, to time.Duration) time.Duration {
	var sum time.Duration
	n := 0
	for _, l := range s.samples {
		if at := l.at.Sub(s.began); at >= from && at < to {
			sum += l.lag
			n++
		}
	}
	return sum / time.Duration(max(n, 1))
}

// paces returns the changes and the reads per second in each part of the time until the side had caught up.
func (s *side) paces() (changes, reads []float64) {
	if s.caughtUp.IsZero() {
		return nil, nil
	}
	length := s.caughtUp.Sub(s.began) / watchParts
	last, next := sample{at: s.began}, s.began.Add(length)
	for _, now := range s.samples {
		if now.at.Before(next) && now.at.Before(s.caughtUp) {
			continue
		}
		if took := now.at.Sub(last.at).Seconds(); took > 0 {
			changes = append(changes, float64(now.delivered-last.delivered)/took)
			reads = append(reads, float64(now.reads-last.reads)/took)
		}
		last, next = now, now.at.Add(length)
		if !now.at.Before(s.caughtUp) {
			break
		}
	}
	return changes, reads
}
