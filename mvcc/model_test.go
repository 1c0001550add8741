package mvcc_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/randomtest"
)

// TestModel checks that reads at random timestamps, of single keys and of many, return what a plain list of versions
// has. It writes random versions of few keys, collects and erases some of them, and restarts the store now and then, so
// that many files are written and compacted. A failed run can be repeated with its seed.
func TestModel(t *testing.T) {
	randomtest.Run(t, 60, 10, 200, func(seed uint64) (step, end func()) {
		m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 3)), fs: vfs.NewMem(), keys: map[string][]version{}}
		m.open()
		return m.step, m.close
	})
}

type version struct {
	ts  mvcc.Timestamp
	val string // "" is a tombstone
}

type model struct {
	t       *testing.T
	rng     *rand.Rand
	fs      vfs.FS
	store   *pebble.Store
	v       *mvcc.Versions
	now     mvcc.Timestamp
	horizon mvcc.Timestamp
	keys    map[string][]version // the versions of each key, oldest first
}

func (m *model) open() {
	store, err := pebble.Open("data", m.fs)
	if err != nil {
		m.t.Fatal(err)
	}
	m.store, m.v = store, mvcc.New(store).In(3)
}

func (m *model) close() {
	if err := m.store.Close(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) name() string {
	k := string(rune('a' + m.rng.IntN(4)))
	if m.rng.IntN(2) == 0 {
		k += string(rune('a' + m.rng.IntN(3)))
	}
	return k
}

func (m *model) step() {
	randomtest.Take(m.rng,
		randomtest.Share(40, m.write), randomtest.Share(10, m.get), randomtest.Share(15, m.getEach), randomtest.Share(15, m.scan), randomtest.Share(7, m.changes), randomtest.Share(4, m.changed), randomtest.Share(4, m.collect), randomtest.Share(1, m.erase),
		randomtest.Share(4, m.restart),
	)
}

func (m *model) restart() {
	m.close()
	m.open()
}

func (m *model) write() {
	m.now += mvcc.Timestamp(1 + m.rng.IntN(3))
	b := m.v.NewBatch()
	defer b.Close()
	for range 1 + m.rng.IntN(6) {
		k, val := m.name(), fmt.Sprint(m.now)
		if n := len(m.keys[k]); n > 0 && m.keys[k][n-1].ts == m.now {
			continue
		}
		var err error
		if m.rng.IntN(4) == 0 {
			val = ""
			err = b.Delete(key(k), m.now)
		} else {
			err = b.Put(key(k), []byte(val), m.now)
		}
		if err != nil {
			m.t.Fatal(err)
		}
		m.keys[k] = append(m.keys[k], version{m.now, val})
	}
	if err := b.Commit(); err != nil {
		m.t.Fatal(err)
	}
}

// at returns the model's value of a key at a timestamp.
func (m *model) at(k string, ts mvcc.Timestamp) version {
	for _, v := range slices.Backward(m.keys[k]) {
		if v.ts <= ts {
			return v
		}
	}
	return version{}
}

func (m *model) timestamp() mvcc.Timestamp {
	if m.rng.IntN(4) == 0 {
		return mvcc.Latest
	}
	return mvcc.Timestamp(m.rng.Int64N(int64(m.now) + 2))
}

// refused checks that a read at ts failed with ErrCollected if ts is below the horizon, and only then. err is the error
// of the read. refused reports whether the read failed.
func (m *model) refused(ts mvcc.Timestamp, err error) bool {
	if refused := errors.Is(err, mvcc.ErrCollected); refused != (ts < m.horizon) {
		m.t.Errorf("read at %d, horizon %d: %v", ts, m.horizon, err)
	} else if err != nil && !refused {
		m.t.Error(err)
	}
	return err != nil
}

func (m *model) get() {
	k, ts := m.name(), m.timestamp()
	val, _, ok, err := m.v.Get(key(k), ts, nil)
	if m.refused(ts, err) {
		return
	}
	if want := m.at(k, ts); ok != (want.val != "") || string(val) != want.val {
		m.t.Errorf("%s at %d is %q, %v; model has %+v", k, ts, val, ok, want)
	}
}

// getEach reads keys with GetEach and compares the results with the model. It passes a random timestamp as the
// hint, so the hint is right for many of the keys or for none.
func (m *model) getEach() {
	ts := m.timestamp()
	since := mvcc.Timestamp(m.rng.Int64N(int64(min(ts, m.now)) + 2))
	var names []string
	var keys [][]byte
	for range 1 + m.rng.IntN(40) {
		names = append(names, m.name())
	}
	if m.rng.IntN(2) == 0 {
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(b, a) })
	}
	for _, k := range names {
		keys = append(keys, key(k))
	}
	last := m.rng.IntN(2 * len(keys))
	next := 0
	got := map[string]string{} // "" means no value
	err := m.v.GetEach(keys, ts, since, func(i int, val []byte, ok bool) bool {
		if i != next || ok != (len(val) > 0) {
			m.t.Errorf("key %d is read after %d: %q, %v", i, next, val, ok)
		}
		next++
		got[names[i]] = string(val)
		return i != last
	})
	if m.refused(ts, err) {
		return
	}
	if want := min(last+1, len(keys)); next != want {
		m.t.Errorf("read %d keys, wanted %d", next, want)
	}
	for k, val := range got {
		if want := m.at(k, ts); val != want.val {
			m.t.Errorf("%s at %d, since %d, is %q; model has %+v", k, ts, since, val, want)
		}
	}
}

// erase removes all versions of the keys in a random range, as dropping a table does.
func (m *model) erase() {
	start, end := m.name(), m.name()
	if start >= end {
		return
	}
	b := m.v.NewBatch()
	defer b.Close()
	if err := b.Erase(key(start), key(end)); err != nil {
		m.t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		m.t.Fatal(err)
	}
	maps.DeleteFunc(m.keys, func(k string, _ []version) bool { return k >= start && k < end })
}

func (m *model) scan() {
	ts, reverse := m.timestamp(), m.rng.IntN(2) == 0
	start, end := m.name(), m.name()
	var want []string
	for _, k := range slices.Sorted(maps.Keys(m.keys)) {
		if k >= start && k < end && m.at(k, ts).val != "" {
			want = append(want, k)
		}
	}
	if reverse {
		slices.Reverse(want)
	}
	c, err := m.v.Scan(key(start), key(end), ts, reverse)
	if m.refused(ts, err) {
		return
	}
	defer c.Close()
	skipAt := m.rng.IntN(6)
	for n := 0; ; n++ {
		if m.rng.IntN(4) == 0 {
			c.Release()
		}
		// The collection may delete versions that the scan needs. A scan that was released may then fail with
		// ErrCollected at its next move, but must not show fewer rows.
		if m.rng.IntN(20) == 0 {
			m.collect()
		}
		if n == skipAt && !reverse {
			to := m.name()
			c.SkipTo(key(to))
			want = slices.DeleteFunc(want, func(k string) bool { return k < to })
		}
		if !c.Next() {
			break
		}
		if m.rng.IntN(4) == 0 {
			c.Release()
		}
		got := name(c.Key())
		if len(want) == 0 || got != want[0] {
			m.t.Errorf("scan %s-%s at %d reverse=%v: found %s, model has %v", start, end, ts, reverse, got, want)
			return
		}
		if v := m.at(got, ts); string(c.Value()) != v.val || c.Version() != v.ts {
			m.t.Errorf("scan at %d: %s=%s of %d, model has %+v", ts, got, c.Value(), c.Version(), v)
		}
		want = want[1:]
	}
	if errors.Is(c.Err(), mvcc.ErrCollected) && ts < m.horizon {
		return
	}
	if c.Err() != nil || len(want) > 0 {
		m.t.Errorf("scan %s-%s at %d reverse=%v ended before %v: %v", start, end, ts, reverse, want, c.Err())
	}
}

// changes reads the changes between two timestamps and compares them with the model. It calls Release and SkipTo now
// and then. After a Release, the next move may fail if versions were collected in the meantime.
func (m *model) changes() {
	since, at := m.timestamp(), m.timestamp()
	if since > at {
		since, at = at, since
	}
	start, end := m.name(), m.name()
	var want []string
	for _, k := range slices.Sorted(maps.Keys(m.keys)) {
		if v := m.at(k, at); k >= start && k < end && v.ts > since {
			want = append(want, k)
		}
	}
	c, err := m.v.Changes(key(start), key(end), since, at)
	if m.refused(since, err) {
		return
	}
	defer c.Close()
	for {
		switch m.rng.IntN(8) {
		case 0, 1:
			c.Release()
		case 2:
			to := m.name()
			c.SkipTo(key(to))
			want = slices.DeleteFunc(want, func(k string) bool { return k < to })
		case 3:
			if m.rng.IntN(4) == 0 {
				m.collect()
			}
		}
		if !c.Next() {
			break
		}
		if m.rng.IntN(4) == 0 {
			c.Release()
		}
		k, got := name(c.Key()), version{c.Version(), string(c.Value())}
		if len(want) == 0 || k != want[0] || got != m.at(k, at) || c.Deleted() != (got.val == "") {
			m.t.Errorf("changes of %s-%s after %d up to %d: found %s %v, deleted %v, model has %v", start, end, since, at, k, got, c.Deleted(), want)
			return
		}
		want = want[1:]
	}
	if errors.Is(c.Err(), mvcc.ErrCollected) && since < m.horizon {
		return
	}
	if c.Err() != nil || len(want) > 0 {
		m.t.Errorf("changes of %s-%s after %d up to %d ended before %v: %v", start, end, since, at, want, c.Err())
	}
}

// changed compares the results of ChangedSince for a range, and of KeyChangedSince for a key in the range, with the
// model.
func (m *model) changed() {
	start, end := m.name(), m.name()
	since := m.timestamp()
	want, wantKey := false, false
	for k, versions := range m.keys {
		changed := versions[len(versions)-1].ts > since
		want = want || k >= start && k < end && changed
		wantKey = wantKey || k == start && changed
	}
	if got, err := m.v.ChangedSince(key(start), key(end), since); !m.refused(since, err) && got != want {
		m.t.Errorf("%s-%s changed since %d: %v; model says %v", start, end, since, got, want)
	}
	if got, err := m.v.KeyChangedSince(key(start), since); !m.refused(since, err) && got != wantKey {
		m.t.Errorf("%s changed since %d: %v; model says %v", start, since, got, wantKey)
	}
}

func (m *model) collect() {
	to := min(m.timestamp(), m.now)
	if _, err := m.v.Collect(context.Background(), to, nil); err != nil {
		m.t.Error(err)
	}
	m.horizon = max(m.horizon, to)
}

// TestCollectInSteps checks that Collect deletes all old versions even if there are more of them than one step
// examines: versions of many keys, and many versions of one key. It also checks that a call whose context has ended
// returns an error, and that the next call deletes the versions.
func TestCollectInSteps(t *testing.T) {
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	v := mvcc.New(store).In(1)
	const versions = 25_000
	for ts := mvcc.Timestamp(1); ts <= versions; ts++ {
		b := v.NewBatch()
		if err := errors.Join(b.Put(key("hot"), []byte("x"), ts), b.Put(key(fmt.Sprintf("k%05d", ts)), []byte("x"), 1), b.Delete(key(fmt.Sprintf("k%05d", ts)), 2)); err != nil {
			t.Fatal(err)
		}
		if err := b.CommitNoSync(); err != nil {
			t.Fatal(err)
		}
		_ = b.Close()
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if _, err := v.Collect(stopped, 2, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped collection: %v", err)
	}
	done, err := v.Collect(context.Background(), versions, nil)
	if err != nil || done.Seen != 3*versions || done.Deleted != 3*versions-1 {
		t.Errorf("collected %+v, %v", done, err)
	}
	c, err := v.Scan(nil, nil, versions, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !c.Next() || name(c.Key()) != "hot" || c.Version() != versions || c.Next() {
		t.Error("not just the newest version of the hot key is left")
	}
}
