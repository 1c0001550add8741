package changestream_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

var (
	seedFlag   = flag.Uint64("seed", 1, "first seed of TestModel")
	roundsFlag = flag.Int("rounds", 8, "how many runs TestModel makes")
)

// model holds the texts of the committed records, in the order of commit timestamps and then of sequence numbers.
type model struct {
	mu      sync.Mutex
	records []committed
}

type committed struct {
	at       mvcc.Timestamp
	sequence int
	text     string
}

func (m *model) add(at mvcc.Timestamp, keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, k := range keys {
		m.records = append(m.records, committed{at, i, fmt.Sprintf("%s@%d", k, at)})
	}
}

// between returns the records whose commit timestamps are in the range from start to end, both included.
func (m *model) between(start, end mvcc.Timestamp) (texts []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortFunc(m.records, func(a, b committed) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.sequence, b.sequence)) })
	for _, r := range m.records {
		if start <= r.at && r.at <= end {
			texts = append(texts, r.text)
		}
	}
	return texts
}

// TestModel checks that every reader gets each of the model's records once, and the records of each key in order. The
// test runs three phases. In each phase, several writers commit while partitions are split and merged. Readers begin at
// any time, follow the partitions, and are interrupted and resumed. After a phase, the store may be restarted or may
// crash.
func TestModel(t *testing.T) {
	seed := *seedFlag
	for range *roundsFlag {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runModel(t, rand.New(rand.NewPCG(seed, 0))) })
		})
		seed++
	}
}

func runModel(t *testing.T, r *rand.Rand) {
	fs := vfs.NewCrashableMem()
	w, m := newWorld(t, fs), new(model)
	first := w.oracle.Visible()
	for range 3 {
		phase(w, m, r, first)
		switch r.IntN(3) {
		case 0:
			w.reopen()
		case 1:
			after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
			w.close()
			fs, w.fs = after, after
			w.open()
		}
	}
	w.close()
}

// phase runs writers, readers and a goroutine that splits partitions, all at the same time.
func phase(w *world, m *model, r *rand.Rand, first mvcc.Timestamp) {
	var running sync.WaitGroup
	const long = 10 * time.Second
	over := w.oracle.Now() + micros(long)
	work := func(do func(r *rand.Rand)) {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		running.Go(func() {
			for w.oracle.Now() < over {
				// The durations are multiples of 100 ms, so that many goroutines wake up at the same time.
				time.Sleep(time.Duration(own.IntN(4)) * 100 * time.Millisecond)
				do(own)
			}
		})
	}
	for range 3 {
		work(func(r *rand.Rand) {
			keys := make([]string, 1+r.IntN(4))
			for i := range keys {
				keys[i] = string(rune('a' + r.IntN(26)))
			}
			m.add(w.commit(keys...), keys)
		})
	}
	work(func(r *rand.Rand) {
		bounds := map[string]bool{}
		for range r.IntN(5) {
			bounds[string(rune('b'+r.IntN(25)))] = true
		}
		var list []string
		for b := range bounds {
			list = append(list, b)
		}
		slices.Sort(list)
		w.reshape(list...)
	})
	work(func(*rand.Rand) { w.create(stream, other); w.create(stream) })
	for range 4 {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		start := first + mvcc.Timestamp(own.Int64N(int64(w.oracle.Now()-first)+int64(micros(long))))
		end := start + mvcc.Timestamp(own.Int64N(int64(over-start)+1))
		running.Go(func() {
			got := (&follower{world: w, r: own, end: end}).follow(start)
			time.Sleep(time.Until(over.Time()) + time.Minute) // by then, the model has the records of all commits
			check(w.t, fmt.Sprintf("from %d to %d", start, end), got, m.between(start, end))
		})
	}
	running.Wait()
}

// check compares what a reader got with the model. Both must have the same records, and those of each key must be in
// the same order.
func check(t testing.TB, name string, got, want []string) {
	t.Helper()
	byKey := func(list []string) []string {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b string) int {
			x, _, _ := strings.Cut(a, "@")
			y, _, _ := strings.Cut(b, "@")
			return cmp.Compare(x, y)
		})
		return list
	}
	if g, x := byKey(got), byKey(want); !slices.Equal(g, x) {
		t.Errorf("%s: got %d records\n%v\nwant %d\n%v", name, len(g), g, len(x), x)
	}
}

// follower reads partitions and then their children. It begins a child when all parents of the child have ended.
type follower struct {
	*world
	r       *rand.Rand
	end     mvcc.Timestamp
	ended   map[string]bool
	waiting []child
	from    map[string]mvcc.Timestamp
	got     []string
}

func (f *follower) follow(start mvcc.Timestamp) []string {
	f.ended, f.from = map[string]bool{}, map[string]mvcc.Timestamp{}
	q := query("", start)
	if start > f.oracle.Now()+micros(changestream.MaxAhead) {
		f.t.Fatalf("%d is too far ahead", start)
	}
	f.add(f.all(q))
	for len(f.waiting) > 0 {
		i := slices.IndexFunc(f.waiting, func(c child) bool { return !slices.ContainsFunc(c.parents, func(p string) bool { return !f.ended[p] }) })
		if i < 0 {
			break // each partition that is left has a parent that lives beyond f.end
		}
		c := f.waiting[i]
		f.waiting = slices.Delete(f.waiting, i, i+1)
		f.partition(c.token)
	}
	return f.got
}

// add finds the partitions that the given records name, and adds the new ones to those that the follower reads.
func (f *follower) add(records []record) {
	for _, r := range records {
		for _, c := range r.children {
			if _, known := f.from[c.token]; !known {
				f.from[c.token] = r.at
				f.waiting = append(f.waiting, c)
			}
		}
	}
}

// partition reads a partition to its end. Now and then it breaks the query off and resumes it after the last record.
func (f *follower) partition(token string) {
	q := query(token, f.from[token])
	q.End = f.end
	q.Heartbeat = time.Second
	reader := f.read(q)
	told := mvcc.Timestamp(0) // all records at or before this timestamp must have been returned
	for {
		ok, err := reader.Next()
		if err != nil {
			f.t.Errorf("read %s: %v", token, err)
			return
		}
		if !ok {
			return
		}
		r := parse(f.t, reader.Record())
		switch {
		case r.data != "":
			if at := stampOf(r.data); at <= told {
				f.t.Errorf("%s came after a heartbeat at %d", r.data, told)
			}
			f.got = append(f.got, r.data)
		case r.children != nil:
			f.ended[token] = true
			f.add([]record{r})
		default:
			told = r.at
		}
		if f.r.IntN(10) == 0 {
			q.Resume = reader.Position()
			reader = f.read(q)
		}
	}
}

func stampOf(text string) mvcc.Timestamp {
	_, at, _ := strings.Cut(text, "@")
	n, _ := strconv.ParseInt(at, 10, 64)
	return mvcc.Timestamp(n)
}
