package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestSerialOrder checks that transactions that run at the same time have the guarantees of their modes. It runs random
// transactions of all modes. Afterwards it repeats the reads of each committed transaction in snapshots at past
// timestamps, and compares the results. C is the commit timestamp of the transaction. These statements must hold:
//
//   - in a serializable transaction, each read returned the state just before C, so the order of timestamps is a
//     serial order;
//   - in a repeatable read transaction, each read returned the state at the transaction's snapshot, and no other
//     transaction wrote the same keys between the snapshot and C;
//   - a transaction that began after another had ended has no lower timestamp (external consistency).
func TestSerialOrder(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m := newManager(t, slowStore{openStore(t, vfs.NewMem(), "data")}, time.Now)
			w := &workload{m: m, seed: seed, clients: 8, transactions: 150}
			done := w.run(t)
			if len(done) < 300 {
				t.Errorf("only %d transactions committed", len(done))
			}
			for _, r := range done {
				if err := r.check(m); err != nil {
					t.Errorf("%s: %v", r.name, err)
				}
			}
			checkRealTime(t, done)
		})
	}
}

// workload runs clients that make random transactions on a few keys.
type workload struct {
	m            *Manager
	seed         uint64
	clients      int
	transactions int          // number of transactions of each client
	clock        atomic.Int64 // counts the begins and ends of transactions, so its values order them in real time

	mu   sync.Mutex
	done []*ran
}

// ran is one attempt to run a transaction, with its reads and writes.
type ran struct {
	name         string
	began, ended int64 // workload.clock at the begin and at the end of the attempt
	tx           *Tx
	ts           mvcc.Timestamp
	reads        []observedRead
	wrote        map[string]string // the values that the attempt wrote, by key; "" is a delete
}

// observedRead is one read of a transaction: its range, the writes that the transaction had made before it, and its
// result.
type observedRead struct {
	start, end string // end is empty for a point
	own        map[string]string
	found      string
}

func (w *workload) run(t *testing.T) []*ran {
	var clients sync.WaitGroup
	for c := range w.clients {
		rng := rand.New(rand.NewPCG(w.seed, uint64(c)))
		clients.Go(func() {
			for i := range w.transactions {
				w.transaction(t, rng, fmt.Sprintf("client %d, transaction %d", c, i))
			}
		})
	}
	clients.Wait()
	return w.done
}

// transaction runs a random transaction. It retries until the transaction commits or decides to roll back.
func (w *workload) transaction(t *testing.T, rng *rand.Rand, name string) {
	options := modes[rng.IntN(len(modes))].options
	for try := range 20 {
		r := &ran{name: fmt.Sprintf("%s, try %d", name, try), began: w.clock.Add(1), tx: w.m.Begin(options), wrote: map[string]string{}}
		err := r.attempt(rng)
		r.ended = w.clock.Add(1)
		if err == nil {
			w.mu.Lock()
			w.done = append(w.done, r)
			w.mu.Unlock()
			return
		}
		if errors.Is(err, errGivenUp) {
			return
		}
		if usererror.CodeOf(err) != codes.Aborted {
			t.Errorf("%s: %v", r.name, err)
			return
		}
		options.Previous = r.tx.Age()
	}
}

var errGivenUp = errors.New("rolled back")

const historyKeys = "abcdefgh"

func (r *ran) attempt(rng *rand.Rand) error {
	ctx := context.Background()
	for range 1 + rng.IntN(5) {
		if err := r.step(ctx, rng); err != nil {
			return err
		}
	}
	if rng.IntN(20) == 0 {
		return errors.Join(errGivenUp, r.tx.Rollback())
	}
	var err error
	r.ts, err = r.tx.Commit(ctx, func(w table.Writer) error {
		if rng.IntN(2) == 0 {
			return r.write(ctx, w, rng)
		}
		return nil
	}, CommitOptions{})
	return err
}

func (r *ran) step(ctx context.Context, rng *rand.Rand) error {
	lock := table.LockShared
	if rng.IntN(4) == 0 {
		lock = table.LockExclusive
	}
	a := string(historyKeys[rng.IntN(len(historyKeys))])
	switch rng.IntN(5) {
	case 0, 1:
		return r.read(ctx, observedRead{start: a}, lock)
	case 2:
		b := string(historyKeys[rng.IntN(len(historyKeys))] + 1)
		if rng.IntN(2) == 0 {
			return r.readPart(ctx, observedRead{start: a, end: b}, 1+rng.IntN(3), table.ScanOptions{Lock: lock, Reverse: rng.IntN(2) == 0, Partial: true})
		}
		return r.read(ctx, observedRead{start: a, end: b}, lock)
	}
	return r.write(ctx, r.tx, rng)
}

func (r *ran) write(ctx context.Context, w table.Writer, rng *rand.Rand) error {
	k := string(historyKeys[rng.IntN(len(historyKeys))])
	if rng.IntN(3) == 0 {
		r.wrote[k] = ""
		return w.Delete(ctx, key(k))
	}
	r.wrote[k] = fmt.Sprint(r.tx.id)
	return w.Put(ctx, key(k), []byte(r.wrote[k]), nil, nil)
}

func (r *ran) read(ctx context.Context, s observedRead, lock table.Lock) (err error) {
	s.own = maps.Clone(r.wrote)
	s.found, err = s.from(ctx, r.tx, nil, lock)
	if err == nil {
		r.reads = append(r.reads, s)
	}
	return err
}

// readPart reads up to limit rows of a range. It notes as read only the part of the range up to the last row that it
// has read.
func (r *ran) readPart(ctx context.Context, s observedRead, limit int, opts table.ScanOptions) error {
	s.own = maps.Clone(r.wrote)
	c, err := r.tx.Scan(ctx, table.Span{Start: key(s.start), End: key(s.end)}, opts)
	if err != nil {
		return err
	}
	defer c.Close()
	var rows []string
	for c.Next() {
		k := strings.TrimSuffix(string(c.Key()), "\x00")
		rows = append(rows, k+"="+string(c.Value()))
		if len(rows) < limit {
			continue
		}
		if opts.Reverse {
			s.start = k
		} else {
			s.end = k + "!"
		}
		break
	}
	if c.Err() != nil {
		return c.Err()
	}
	slices.Sort(rows)
	s.found = strings.Join(rows, " ")
	r.reads = append(r.reads, s)
	return nil
}

// from reads the point or range of s in a view, and applies the writes in the parameter own to the result.
func (s observedRead) from(ctx context.Context, view table.View, own map[string]string, lock table.Lock) (string, error) {
	rows := map[string]string{}
	if s.end == "" {
		val, ok, err := view.Get(ctx, key(s.start), lock)
		if err != nil {
			return "", err
		}
		if ok {
			rows[s.start] = string(val)
		}
	} else {
		c, err := view.Scan(ctx, table.Span{Start: key(s.start), End: key(s.end)}, table.ScanOptions{Lock: lock})
		if err != nil {
			return "", err
		}
		defer c.Close()
		for c.Next() {
			rows[strings.TrimSuffix(string(c.Key()), "\x00")] = string(c.Value())
		}
		if c.Err() != nil {
			return "", c.Err()
		}
	}
	for k, v := range own {
		if k != s.start && (k < s.start || k >= s.end) {
			continue
		}
		delete(rows, k)
		if v != "" && (k == s.start && s.end == "" || k >= s.start && k < s.end) {
			rows[k] = v
		}
	}
	keys := slices.Sorted(maps.Keys(rows))
	for i, k := range keys {
		keys[i] += "=" + rows[k]
	}
	return strings.Join(keys, " "), nil
}

// check compares the reads of a committed transaction with the state of the database at the timestamp at which they
// must be valid.
func (r *ran) check(m *Manager) error {
	at := r.ts - 1
	if r.tx.readAt != 0 && (r.tx.opts.Isolation == RepeatableRead || len(r.wrote) == 0) {
		at = r.tx.readAt
	} else if len(r.wrote) == 0 {
		at = r.ts
	}
	ctx := context.Background()
	for _, s := range r.reads {
		want, err := s.from(ctx, &Snapshot{m: m, at: at}, s.own, table.LockShared)
		if err != nil {
			return err
		}
		if s.found != want {
			return fmt.Errorf("read %s-%s: %q, at %d there was %q", s.start, s.end, s.found, at, want)
		}
	}
	for k, v := range r.wrote {
		got, version, _, err := m.versions.Get(key(k), r.ts, nil)
		if err != nil || version != r.ts || string(got) != v {
			return fmt.Errorf("wrote %s=%s at %d, there is %q of %d, %v", k, v, r.ts, got, version, err)
		}
		if r.tx.opts.Isolation == RepeatableRead && r.tx.readAt != 0 {
			if _, before, _, _ := m.versions.Get(key(k), r.ts-1, nil); before > r.tx.readAt {
				return fmt.Errorf("%s was written at %d, between snapshot %d and commit %d", k, before, r.tx.readAt, r.ts)
			}
		}
	}
	return nil
}

// checkRealTime compares timestamps with real time. If a transaction that wrote began after another one had ended, its
// timestamp must be greater than that of the other.
func checkRealTime(t *testing.T, done []*ran) {
	byEnd := slices.Clone(done)
	sort.Slice(byEnd, func(i, j int) bool { return byEnd[i].ended < byEnd[j].ended })
	sort.Slice(done, func(i, j int) bool { return done[i].began < done[j].began })
	var newest mvcc.Timestamp
	n := 0
	for _, r := range done {
		for n < len(byEnd) && byEnd[n].ended < r.began {
			newest = max(newest, byEnd[n].ts)
			n++
		}
		if len(r.wrote) > 0 && r.ts <= newest || r.ts < newest && r.tx.opts.Isolation == Serializable {
			t.Errorf("%s has timestamp %d, but %d was acknowledged before it began", r.name, r.ts, newest)
		}
	}
}

// TestLinearizable checks with package porcupine that a history of serializable transactions and strong reads is
// linearizable. The transactions append to lists, and the strong reads read the lists.
func TestLinearizable(t *testing.T) {
	for seed := range uint64(6) {
		m := newManager(t, slowStore{openStore(t, vfs.NewMem(), "data")}, time.Now)
		var mu sync.Mutex
		var history []porcupine.Operation
		var clients sync.WaitGroup
		for c := range 5 {
			rng := rand.New(rand.NewPCG(seed, uint64(c)))
			clients.Go(func() {
				for i := range 40 {
					op := porcupine.Operation{ClientId: c, Call: time.Now().UnixNano()}
					in, out, err := appendLists(m, rng, fmt.Sprintf("%d.%d", c, i))
					op.Return = time.Now().UnixNano()
					if err != nil {
						t.Error(err)
						return
					}
					op.Input, op.Output = in, out
					mu.Lock()
					history = append(history, op)
					mu.Unlock()
				}
			})
		}
		clients.Wait()
		if result := porcupine.CheckOperationsTimeout(listModel, history, time.Minute); result != porcupine.Ok {
			t.Errorf("seed %d: history of %d transactions is %s", seed, len(history), result)
		}
	}
}

// lists is the state of listModel: the text of each list, by key.
type lists [3]string

// listOp is a transaction: the keys that it reads, and the keys to which it then appends item.
type listOp struct {
	reads   [len(lists{})]bool
	appends [len(lists{})]bool
	item    string
}

var listModel = porcupine.Model{
	Init: func() any { return lists{} },
	Step: func(state, input, output any) (bool, any) {
		now, in := state.(lists), input.(listOp)
		for k := range now {
			if in.reads[k] && output.(lists)[k] != now[k] {
				return false, state
			}
			if in.appends[k] {
				now[k] += in.item + " "
			}
		}
		return true, now
	},
}

// appendLists runs a random transaction until it commits. It reads each list that it appends to. One in three
// transactions is a strong read in a snapshot instead.
func appendLists(m *Manager, rng *rand.Rand, item string) (in listOp, out lists, err error) {
	in.item = item
	readOnly := rng.IntN(3) == 0
	for k := range in.reads {
		in.appends[k] = !readOnly && rng.IntN(3) == 0
		in.reads[k] = in.appends[k] || rng.IntN(2) == 0
	}
	ctx := context.Background()
	if readOnly {
		s, err := m.Snapshot(ctx, Bound{})
		if err != nil {
			return in, out, err
		}
		out, err = readLists(ctx, s, in)
		return in, out, err
	}
	options := modes[rng.IntN(2)].options // the first two modes are serializable
	for {
		tx := m.Begin(options)
		if out, err = readLists(ctx, tx, in); err == nil {
			_, err = tx.Commit(ctx, func(w table.Writer) error {
				for k := range in.appends {
					if in.appends[k] {
						if err := w.Put(ctx, key(fmt.Sprint(k)), []byte(out[k]+item+" "), nil, nil); err != nil {
							return err
						}
					}
				}
				return nil
			}, CommitOptions{})
		}
		if usererror.CodeOf(err) != codes.Aborted {
			return in, out, err
		}
		options.Previous = tx.Age()
	}
}

func readLists(ctx context.Context, view table.View, in listOp) (out lists, err error) {
	for k := range in.reads {
		if in.reads[k] {
			val, _, err := view.Get(ctx, key(fmt.Sprint(k)), table.LockShared)
			if err != nil {
				return out, err
			}
			out[k] = string(val)
		}
	}
	return out, nil
}
