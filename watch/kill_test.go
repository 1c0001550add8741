package watch_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/clienttest"
	"github.com/crowfoot-db/crowfoot/watch"
)

// TestServerAway checks that a watcher continues after the server could not be reached for a while, both when the
// watcher starts and later.
func TestServerAway(t *testing.T) {
	s := newServer(t)
	c := clienttest.Dial(t)
	r := newRecorder()
	o := watch.Options{Source: &watch.Tables{Client: c, Interval: time.Millisecond}, Handler: r, Start: time.Unix(0, 0), Repository: &watch.SpannerTable{Client: c}}
	s.stop()
	w, stop := run(t, o)
	s.start()
	apply(t, c, singer(1, "a"))
	r.wait(t, atLeast(1))
	lag := w.Health().Feeds[0].Lag
	s.stop()
	eventually(func() bool { return w.Health().Feeds[0].Lag >= lag+100*time.Millisecond })
	s.start()
	apply(t, c, singer(2, "b"))
	if got := text(r.wait(t, atLeast(2))); got != "{Singers(1):a} {Singers(2):b}" {
		t.Errorf("delivered %s", got)
	}
	eventually(func() bool { return w.Health().Ready })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// server is a server that can be restarted at the same address with the same files.
type server struct {
	t    *testing.T
	o    crowfoot.Options
	mu   sync.Mutex
	live *crowfoot.Server
}

func newServer(t *testing.T) *server {
	s := &server{t: t, o: crowfoot.Options{Data: t.TempDir(), Databases: []string{clienttest.Database}, DDL: []string{singers, "CREATE INDEX ByUpdated ON Singers(Updated)"}}}
	s.start()
	s.o.GRPC, s.o.HTTP = s.live.GRPC, s.live.HTTP
	t.Setenv("SPANNER_EMULATOR_HOST", s.o.GRPC)
	t.Cleanup(s.stop)
	return s
}

func (s *server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	live, err := crowfoot.Start(context.Background(), s.o)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.live = live
}

func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != nil {
		if err := s.live.Close(); err != nil {
			s.t.Error(err)
		}
		s.live = nil
	}
}

var (
	kills       = flag.Uint64("kills", 1, "how many random runs TestKills makes")
	killSeed    = flag.Uint64("seed", 0, "the first one's seed")
	killWriters = flag.Int("writers", 4, "how many write at once in TestKills")
)

// TestKills stops watchers and restarts the server in random calls of the handler, while rows are written. It checks
// that the newest committed version of every key is delivered in the end. A watcher must not deliver an older version
// of a key after a newer one; only the next watcher may begin with older versions again.
func TestKills(t *testing.T) {
	for seed := *killSeed; seed < *killSeed+*kills; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { killWatchers(t, rand.New(rand.NewPCG(seed, 9))) })
	}
}

func killWatchers(t *testing.T, rnd *rand.Rand) {
	k := &killRun{t: t, server: newServer(t), client: clienttest.Dial(t), committed: map[string]int{}, delivered: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var writing sync.WaitGroup
	for w := range *killWriters {
		rnd := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		writing.Go(func() { k.write(ctx, rnd, w) })
	}
	repositories := []watch.Repository{watch.NewMemory(), watch.NewFile(t.TempDir() + "/f"), &watch.SpannerTable{Client: k.client}}
	o := watch.Options{
		Source:     &watch.Tables{Client: k.client, Interval: time.Millisecond, Default: watch.TableOptions{Limit: 1 + rnd.IntN(30)}},
		Repository: repositories[rnd.IntN(len(repositories))], Start: time.Unix(0, 0), CheckpointInterval: time.Millisecond,
	}
	for range 10 {
		k.watchAndKill(ctx, rnd, o)
	}
	cancel()
	writing.Wait()
	r := newRecorder()
	began := map[string]int{}
	r.fail = func(tx *watch.Transaction) error { k.record(began, tx); return nil }
	o.Handler = r
	run(t, o)
	eventually(func() bool { return !k.missing() })
}

// killRun holds what a run of TestKills has written, and what its watchers have delivered.
type killRun struct {
	t      *testing.T
	server *server
	client *spanner.Client

	mu        sync.Mutex
	committed map[string]int // the newest version of each key
	delivered map[string]int
}

// write writes versions of random keys until ctx ends. No two writers write the same key.
func (k *killRun) write(ctx context.Context, rnd *rand.Rand, writer int) {
	const keys = 40
	for version := 1; ctx.Err() == nil; version++ {
		var list []*spanner.Mutation
		ids := append(rnd.Perm(keys)[:1+rnd.IntN(6)], keys+version) // the last key is written only this once
		for i := range ids {
			ids[i] = ids[i]**killWriters + writer
			list = append(list, singer(ids[i], fmt.Sprint(version)))
		}
		if _, err := k.client.Apply(context.Background(), list); err != nil {
			k.t.Errorf("a writer: %v", err)
			return
		}
		k.mu.Lock()
		for _, id := range ids {
			k.committed[fmt.Sprint(id)] = version
		}
		k.mu.Unlock()
	}
}

// watchAndKill runs a watcher and stops it in one of the first 25 calls of its handler, chosen at random. From this
// call on, the handler returns an error in half of the runs, and handles its transactions in the others. In another
// random call, the handler may restart the server.
func (k *killRun) watchAndKill(ctx context.Context, rnd *rand.Rand, o watch.Options) {
	life, kill := context.WithCancel(ctx)
	defer kill()
	began := map[string]int{} // the newest version of each key that this watcher has delivered
	calls, last, restart, handled := 0, 1+rnd.IntN(25), rnd.IntN(50), rnd.IntN(2) == 0
	var restarted sync.WaitGroup
	o.Handler = watch.HandlerFunc(func(_ context.Context, tx *watch.Transaction) error {
		if calls++; calls == restart {
			restarted.Go(func() { k.server.stop(); k.server.start() })
		}
		if calls >= last {
			kill()
			if !handled {
				return errTest
			}
		}
		k.record(began, tx)
		return nil
	})
	_, ended := runUntil(k.t, life, o)
	if err := ended(); err != nil {
		k.t.Errorf("Run: %v", err)
	}
	restarted.Wait()
}

// record notes what a watcher has delivered. It checks that this watcher did not deliver an older version of a key
// after a newer one.
func (k *killRun) record(began map[string]int, tx *watch.Transaction) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range tx.Changes {
		key, version := c.Key.Values[0].GetStringValue(), 0
		fmt.Sscan(c.Values.Values[c.Values.Index("Name")].GetStringValue(), &version)
		if version < began[key] {
			k.t.Errorf("key %s goes from version %d back to %d", key, began[key], version)
		}
		began[key] = version
		k.delivered[key] = max(k.delivered[key], version)
	}
}

// missing reports whether some key's newest version has not been delivered yet.
func (k *killRun) missing() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, version := range k.committed {
		if k.delivered[key] < version {
			return true
		}
	}
	return false
}
