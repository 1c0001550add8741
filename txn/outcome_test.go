package txn

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// TestOutcomes: the outcome of a commit is found for OutcomeLife, also if the transaction was open for long or the
// clock has gone back. Later it is deleted. A transaction without writes, or without a ClientID, has no outcome.
func TestOutcomes(t *testing.T) {
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	clock := new(fakeClock)
	clock.micros.Store(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro())
	m := newManager(t, store, clock.now)
	number := uint64(0)
	begin := func() (*Tx, ClientID) {
		number = max(number+1, uint64(clock.now().UnixMicro()))
		id := ClientID{Start: 1, Number: number}
		return m.Begin(Options{ID: id, Isolation: RepeatableRead}), id
	}
	mutations := int64(7)
	commit := func(tx *Tx) Outcome {
		ts, err := tx.Commit(context.Background(), func(w table.Writer) error {
			return w.Put(context.Background(), key("k"), []byte("v"), nil, nil)
		}, CommitOptions{Mutations: &mutations})
		if err != nil {
			t.Fatal(err)
		}
		return Outcome{Timestamp: ts, Mutations: 7, Isolation: RepeatableRead}
	}
	want := func(id ClientID, want Outcome, expired bool) {
		t.Helper()
		got, ok, err := m.Outcome(id)
		if err != nil || got != want || ok != (want != Outcome{}) || m.Expired(id) != expired {
			t.Errorf("outcome %+v, %v, %v, expired %v; want %+v, %v", got, ok, err, m.Expired(id), want, expired)
		}
	}

	long, longID := begin()
	clock.advance(3 * time.Hour)
	empty, emptyID := begin()
	if _, err := empty.Commit(context.Background(), nil, CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	before, beforeID := begin()
	clock.advance(-20 * time.Minute)
	longDone, beforeDone := commit(long), commit(before)
	commit(m.Begin(Options{Isolation: RepeatableRead}))
	clock.advance(OutcomeLife - time.Second)
	if err := m.oracle.ForgetOutcomes(); err != nil {
		t.Fatal(err)
	}
	want(longID, longDone, true)
	want(beforeID, beforeDone, false)
	want(emptyID, Outcome{}, false)
	if stored, err := outcomesIn(store); err != nil || len(stored) != 2 {
		t.Errorf("outcomes %v are stored, %v", stored, err)
	}

	clock.advance(24 * time.Hour)
	recent, recentID := begin()
	recentDone := commit(recent)
	if err := m.oracle.ForgetOutcomes(); err != nil {
		t.Fatal(err)
	}
	want(longID, Outcome{}, true)
	want(beforeID, Outcome{}, true)
	want(recentID, recentDone, false)
	if stored, err := outcomesIn(store); err != nil || len(stored) != 1 {
		t.Errorf("outcomes %v are stored after a day, %v", stored, err)
	}
}

// TestOutcomeBounds: the bounds of periods separate their outcomes, and no bound ends in 09, because the store would
// take that byte for the mark of a version.
func TestOutcomeBounds(t *testing.T) {
	for period := range uint32(256) {
		bound := outcomeBound(period)
		first, last := outcomeKey(period, ClientID{}), outcomeKey(period, ClientID{1<<32 - 1, 1<<64 - 1})
		if bound[len(bound)-1] != 0 || bytes.Compare(bound, first) >= 0 || bytes.Compare(last, outcomeBound(period+1)) >= 0 {
			t.Errorf("period %d begins at %x", period, bound)
		}
	}
}

// outcomesIn reads all outcomes that a store holds, and returns their commit timestamps by ClientID.
func outcomesIn(store kv.Store) (map[ClientID]mvcc.Timestamp, error) {
	lower, upper := outcomeBound(0), outcomeBound(1<<32-1)
	it, err := store.NewIter(lower, upper)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	found := map[ClientID]mvcc.Timestamp{}
	for ok := it.First(); ok; ok = it.Next() {
		val, err := it.Value()
		if err != nil {
			return nil, err
		}
		id := it.Key()[len(outcomePrefix(0)):]
		found[ClientID{binary.BigEndian.Uint32(id), binary.BigEndian.Uint64(id[4:])}] = mvcc.Timestamp(binary.BigEndian.Uint64(val))
	}
	return found, it.Error()
}
