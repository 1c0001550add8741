package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/randomtest"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestModel compares all reads of transactions with a plain model of the database, which is the list of all commits.
// The test takes random steps in several transactions, in one goroutine. A request that would have to wait for a lock
// returns an error instead. The model predicts which optimistic commits conflict. A failing seed takes the same steps
// when it runs again.
func TestModel(t *testing.T) {
	randomtest.Run(t, 150, 20, 400, func(seed uint64) (step, end func()) {
		m := newModel(t, seed)
		return func() {
			defer func() { // deferred, so that it also runs after t.Fatal
				if t.Failed() {
					t.Logf("last steps:\n%s", strings.Join(m.log[max(0, len(m.log)-40):], "\n"))
				}
			}()
			m.step()
		}, m.close
	})
}

type model struct {
	t     *testing.T
	rng   *rand.Rand
	fs    vfs.FS
	store kv.Store
	clock *fakeClock
	m     *Manager
	log   []string

	commits []modelCommit // in the order of their timestamps
	txs     []*modelTx
}

type modelCommit struct {
	ts    mvcc.Timestamp
	wrote map[string]string // the values that the commit wrote, by name; "" is a delete
}

type modelTx struct {
	name  string
	tx    *Tx
	own   map[string]string // the values that the transaction wrote, by name; "" is a delete
	saved Savepoint
	kept  map[string]string // a copy of own that was made together with the savepoint
	reads []modelRead
	tried bool // true after a commit that was cancelled, so that the transaction may still hold its locks
}

// modelRead is a span that an optimistic commit validates: a point if end is empty.
type modelRead struct{ start, end string }

const modelRetention = 100 * time.Millisecond

// stopped is a context that has ended, so a request that would have to wait returns an error instead.
var stopped = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1)), fs: vfs.NewMem(), clock: new(fakeClock)}
	m.clock.micros.Store(1_000_000_000)
	m.open()
	return m
}

func (m *model) open() {
	store, err := pebble.Open("data", m.fs)
	if err != nil {
		m.t.Fatal(err)
	}
	m.store = store
	m.m = newManager(m.t, store, m.clock.now)
	m.m.SetRetention(modelRetention)
}

func (m *model) close() {
	m.m.oracle.stop()
	if err := m.store.Close(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) note(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) step() {
	switch n := m.rng.IntN(100); {
	case n < 70:
		m.txStep()
	case n < 85:
		m.snapshot()
	case n < 95:
		m.clock.advance(time.Duration(m.rng.IntN(12)-1) * time.Millisecond)
	case n < 99:
		if m.rng.IntN(3) == 0 { // after this, the snapshots of all open transactions are too old to be read
			m.clock.advance(modelRetention + time.Millisecond)
		}
		m.note("collect")
		if _, err := m.m.Collect(context.Background(), m.m.Earliest(), nil); err != nil {
			m.t.Errorf("collect: %v", err)
		}
	default:
		m.note("reopen")
		m.txs = nil
		if m.rng.IntN(2) == 0 {
			if err := m.m.oracle.Close(); err != nil {
				m.t.Error(err)
			}
		}
		m.close()
		m.open()
	}
}

// key returns one of a few names, some of which are prefixes of others.
func (m *model) key() string {
	k := string(rune('a' + m.rng.IntN(5)))
	if m.rng.IntN(3) == 0 {
		k += string(rune('a' + m.rng.IntN(3)))
	}
	return k
}

// bounds returns a range of names; end is above start.
func (m *model) bounds() (start, end string) {
	start, end = m.key(), m.key()
	if start > end {
		start, end = end, start
	}
	return start, end + "~"
}

// at returns the rows of the model at a timestamp, changed by the writes in own.
func (m *model) at(ts mvcc.Timestamp, own map[string]string) map[string]string {
	rows := map[string]string{}
	for _, c := range m.commits {
		if c.ts <= ts {
			applyWrites(rows, c.wrote)
		}
	}
	applyWrites(rows, own)
	return rows
}

func applyWrites(rows, wrote map[string]string) {
	for k, v := range wrote {
		if v == "" {
			delete(rows, k)
		} else {
			rows[k] = v
		}
	}
}

// changed reports whether a commit after a timestamp (the parameter since) wrote a name in [start, end). If end is
// empty, only the name in the parameter start counts.
func (m *model) changed(start, end string, since mvcc.Timestamp) bool {
	for _, c := range m.commits {
		for k := range c.wrote {
			if c.ts > since && (k == start && end == "" || k >= start && k < end) {
				return true
			}
		}
	}
	return false
}

func (m *model) snapshot() {
	b := Bound{}
	if m.rng.IntN(2) == 0 {
		b = Bound{Kind: BoundKind(1 + m.rng.IntN(4)), Duration: time.Duration(m.rng.IntN(150)) * time.Millisecond}
		b.Time = m.clock.now().Add(-b.Duration)
	}
	earliest := m.m.Earliest()
	s, err := m.m.Snapshot(stopped, b)
	m.note("snapshot %+v: %v", b, err)
	if err != nil {
		if mvcc.TimestampOf(b.Time) >= earliest || usererror.CodeOf(err) != codes.FailedPrecondition {
			m.t.Errorf("snapshot %+v, earliest %v: %v", b, earliest.Time(), err)
		}
		return
	}
	if n := len(m.commits); b.Kind == Strong && n > 0 && s.Timestamp() < m.commits[n-1].ts {
		m.t.Errorf("strong read at %d, last commit was %d", s.Timestamp(), m.commits[n-1].ts)
	}
	start, end := m.bounds()
	m.compare("snapshot", s, m.at(s.Timestamp(), nil), start, end, 0)
}

// compare scans a range of view and compares it with rows. At random, it scans in reverse, skips names, or stops
// after limit rows.
func (m *model) compare(what string, view table.View, rows map[string]string, start, end string, lock table.Lock) error {
	reverse := m.rng.IntN(2) == 0
	limit := 1 + m.rng.IntN(8)
	skipAfter, skipTo := -1, m.key()
	if !reverse && m.rng.IntN(3) == 0 {
		skipAfter = m.rng.IntN(3)
	}
	var want []string
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		if k >= start && k < end {
			want = append(want, k)
		}
	}
	if reverse {
		slices.Reverse(want)
	}
	c, err := view.Scan(stopped, table.Span{Start: key(start), End: key(end)}, table.ScanOptions{Lock: lock, Reverse: reverse, Partial: m.rng.IntN(2) == 0})
	m.note("%s: scan %s %s reverse=%v limit=%d skip=%d %s: %v", what, start, end, reverse, limit, skipAfter, skipTo, err)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 0; ; n++ {
		if n == skipAfter {
			c.SkipTo(key(skipTo))
			i := slices.IndexFunc(want, func(k string) bool { return k >= skipTo })
			if i < 0 {
				i = len(want)
			}
			want = want[i:]
		}
		if n == limit {
			return nil
		}
		if !c.Next() {
			break
		}
		got := name(c.Key())
		if len(want) == 0 || got != want[0] || string(c.Value()) != rows[got] {
			m.t.Errorf("%s: found %s=%s, model has %v of %v", what, got, c.Value(), want, rows)
			return nil
		}
		want = want[1:]
	}
	if c.Err() == nil && len(want) > 0 {
		m.t.Errorf("%s: scan ended before %v", what, want)
	}
	return c.Err()
}

func name(key []byte) string { return strings.TrimSuffix(string(key), "\x00") }

func (m *model) txStep() {
	if len(m.txs) == 0 || len(m.txs) < 5 && m.rng.IntN(8) == 0 {
		options := modes[m.rng.IntN(len(modes))]
		tx := &modelTx{name: fmt.Sprintf("T%d (%s)", len(m.log), options.name), tx: m.m.Begin(options.options), own: map[string]string{}}
		tx.saved, tx.kept = tx.tx.Savepoint(), map[string]string{}
		m.note("%s: begin", tx.name)
		m.txs = append(m.txs, tx)
	}
	i := m.rng.IntN(len(m.txs))
	if tx := m.txs[i]; m.act(tx) {
		if j := slices.Index(m.txs, tx); j >= 0 {
			m.txs = slices.Delete(m.txs, j, j+1)
		}
	}
}

// act takes one step of a transaction and reports whether the transaction has ended.
func (m *model) act(x *modelTx) (ended bool) {
	lock := table.Lock(m.rng.IntN(3))
	var err error
	switch m.rng.IntN(10) {
	case 0, 1:
		err = m.get(x, m.key(), lock)
	case 2:
		err = m.scan(x, lock)
	case 3:
		err = m.putRun(x)
	case 4, 5, 6:
		k, v := m.key(), fmt.Sprint(len(m.log))
		if m.rng.IntN(3) == 0 {
			v = ""
		}
		if err = put(x.tx, k, v); err == nil {
			x.own[k] = v
		}
		m.note("%s: put %s=%s: %v", x.name, k, v, err)
		if usererror.CodeOf(err) == codes.Aborted && x.tx.opts.Isolation == RepeatableRead && !m.changed(k, "", x.tx.readAt) {
			m.wounded(x, err)
		}
	case 7:
		if m.rng.IntN(2) == 0 {
			x.saved, x.kept = x.tx.Savepoint(), maps.Clone(x.own)
			m.note("%s: savepoint", x.name)
		} else {
			x.tx.RollbackTo(x.saved)
			x.own = maps.Clone(x.kept)
			m.note("%s: rollback to savepoint", x.name)
		}
	case 8:
		return m.commit(x)
	case 9:
		if m.rng.IntN(3) == 0 {
			m.note("%s: rollback", x.name)
			if err := x.tx.Rollback(); err != nil {
				m.t.Error(err)
			}
			return true
		}
	}
	return m.over(x, err)
}

// putRun writes some keys with PutRun. At random, it sets fresh: then PutRun must write nothing if one of the keys
// exists, and return the first such key.
func (m *model) putRun(x *modelTx) error {
	run, v := table.NewRun(0, 0), fmt.Sprint(len(m.log))
	var keys []string
	for range 1 + m.rng.IntN(4) {
		k := m.key()
		keys = append(keys, k)
		run.Add(key(k), []byte(v))
	}
	run.Sort()
	slices.Sort(keys)
	fresh := m.rng.IntN(2) == 0
	saved, kept := x.tx.Savepoint(), maps.Clone(x.own)
	existing, err := x.tx.PutRun(stopped, run, fresh)
	m.note("%s: put %v=%s, fresh=%v: %s, %v", x.name, keys, v, fresh, existing, err)
	if err != nil {
		x.tx.RollbackTo(saved)
		x.own = kept
		if usererror.CodeOf(err) == codes.Aborted && x.tx.opts.Isolation == RepeatableRead && !slices.ContainsFunc(keys, func(k string) bool { return m.changed(k, "", x.tx.readAt) }) {
			m.wounded(x, err)
		}
		return err
	}
	there := m.rows(x)
	first := slices.IndexFunc(keys, func(k string) bool { _, ok := there[k]; return ok })
	if fresh && x.validated(table.LockExclusive) {
		for i, k := range keys {
			if first < 0 || i <= first {
				x.reads = append(x.reads, modelRead{start: k})
			}
		}
	}
	switch {
	case fresh && first >= 0 && (existing == nil || name(existing) != keys[first]):
		m.t.Errorf("%s: %s is there, and the run is told of %q", x.name, keys[first], existing)
	case (!fresh || first < 0) && existing != nil:
		m.t.Errorf("%s: the run is told of %s", x.name, existing)
	case existing == nil:
		for _, k := range keys {
			x.own[k] = v
		}
	}
	return nil
}

// wounded checks a transaction that was aborted although no commit conflicts with it. That is allowed in two cases: the
// transaction may hold locks, which an older transaction then takes from it, or its snapshot is older than the stored
// versions.
func (m *model) wounded(x *modelTx, err error) {
	expired := x.tx.snapshots && x.tx.readAt != 0 && x.tx.readAt < m.m.versions.Horizon()
	if !x.tx.locksNow && !x.tried && !expired {
		m.t.Errorf("%s: aborted without a conflict: %v", x.name, err)
	}
}

// over reports whether a transaction has ended after a step that returned err. It fails the test if err is not
// expected.
func (m *model) over(x *modelTx, err error) bool {
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return false
	case usererror.CodeOf(err) == codes.Aborted:
		return true
	}
	m.t.Errorf("%s: %v", x.name, err)
	return true
}

func put(w table.Writer, k, v string) error {
	if v == "" {
		return w.Delete(stopped, key(k))
	}
	return w.Put(stopped, key(k), []byte(v), nil, nil)
}

// rows returns the rows that a transaction should see.
func (m *model) rows(x *modelTx) map[string]string {
	if x.tx.snapshots {
		return m.at(x.tx.readAt, x.own)
	}
	return m.at(mvcc.Latest, x.own)
}

// validated reports whether a read with the given lock is validated at commit.
func (x *modelTx) validated(lock table.Lock) bool {
	return !x.tx.locksNow && (x.tx.opts.Isolation == Serializable || lock != table.LockShared)
}

func (m *model) get(x *modelTx, k string, lock table.Lock) error {
	val, ok, err := x.tx.Get(stopped, key(k), lock)
	m.note("%s: get %s %d: %q %v %v", x.name, k, lock, val, ok, err)
	if err != nil {
		return err
	}
	if want, there := m.rows(x)[k]; ok != there || string(val) != want {
		m.t.Errorf("%s: get %s is %q, %v; model has %q, %v", x.name, k, val, ok, want, there)
	}
	if x.validated(lock) {
		x.reads = append(x.reads, modelRead{start: k})
	}
	return nil
}

func (m *model) scan(x *modelTx, lock table.Lock) error {
	start, end := m.bounds()
	if x.tx.snapshots && x.tx.readAt == 0 { // choose the snapshot first, because the model needs its timestamp
		if err := m.get(x, start, lock); err != nil {
			return err
		}
	}
	err := m.compare(x.name, x.tx, m.rows(x), start, end, lock)
	if err == nil && x.validated(lock) {
		// If the scan stopped early, the transaction validates only a part of the range. The test scripts check which
		// part.
		last := x.tx.reads[len(x.tx.reads)-1]
		x.reads = append(x.reads, modelRead{name([]byte(last.start)), last.end})
	}
	return err
}

func (m *model) commit(x *modelTx) bool {
	conflict := false
	if !x.tx.locksNow && len(x.own) > 0 {
		for _, r := range x.reads {
			conflict = conflict || m.changed(r.start, r.end, x.tx.readAt)
		}
		for k := range x.own {
			conflict = conflict || x.tx.opts.Isolation == RepeatableRead && x.tx.readAt != 0 && m.changed(k, "", x.tx.readAt)
		}
	}
	ts, err := x.tx.Commit(stopped, nil, CommitOptions{})
	x.tried = true
	m.note("%s: commit at %d: %v", x.name, ts, err)
	switch {
	case err == nil && conflict:
		m.t.Errorf("%s: committed in spite of a conflict", x.name)
	case usererror.CodeOf(err) == codes.Aborted && !conflict:
		m.wounded(x, err)
	case err == nil && len(x.own) > 0:
		if n := len(m.commits); n > 0 && ts <= m.commits[n-1].ts {
			m.t.Errorf("%s: committed at %d after %d", x.name, ts, m.commits[n-1].ts)
		}
		m.commits = append(m.commits, modelCommit{ts, x.own})
	}
	return err == nil || m.over(x, err)
}
