package watch

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// delivering is a Sink that records the ids of the transactions that it gets.
type delivering struct {
	feedRunner
	ids []string
}

func (s *delivering) Deliver(_ context.Context, list []*Transaction) (int, error) {
	for _, tx := range list {
		s.ids = append(s.ids, tx.ID)
	}
	return len(list), nil
}

// TestSharedTimestamps puts two transactions with one timestamp into the same partitions, in different orders and with
// alternating records. Both must be delivered once, after the earlier transaction and before the later one.
func TestSharedTimestamps(t *testing.T) {
	out := &delivering{}
	r := &streamReader{streamFeed: &streamFeed{Stream: &Stream{}}, out: out, ctx: t.Context(), transactions: map[transactionKey]*streamTransaction{}}
	r.room.L = new(sync.Mutex)
	a, b := &streamPartition{token: "a"}, &streamPartition{token: "b"}
	record := func(p *streamPartition, second int, id string, records int) {
		r.addData(p, &dataRecord{commit: day.Add(time.Duration(second) * time.Second), transaction: id, records: records, changes: make([]Change, 1)})
	}
	step := func(want string) {
		t.Helper()
		out.ids = nil
		if err := r.handOut(r.popReady()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(out.ids, " "); got != want {
			t.Errorf("delivered %q, want %q", got, want)
		}
	}
	record(a, 2, "one", 4)
	record(a, 2, "two", 2)
	record(a, 2, "one", 4)
	record(a, 3, "last", 1)
	record(b, 1, "first", 1)
	step("first")
	record(b, 2, "two", 2)
	step("two")
	if at := a.position(); !at.From.Equal(day.Add(2*time.Second)) || strings.Join(at.Transactions, " ") != "two" {
		t.Errorf("the position is %v", at)
	}
	record(b, 2, "one", 4)
	step("")
	record(b, 2, "one", 4)
	step("one last")
	if len(a.queue)+len(b.queue)+a.popped+b.popped+a.changes+b.changes+len(r.transactions) != 0 {
		t.Errorf("left: %v, %v, %v", a, b, r.transactions)
	}
}

// TestDeliveredIsForgotten checks that delivered transactions do not stay in memory while a stream has no changes.
func TestDeliveredIsForgotten(t *testing.T) {
	r := &streamReader{streamFeed: &streamFeed{Stream: &Stream{}}, out: &delivering{}, ctx: t.Context(), transactions: map[transactionKey]*streamTransaction{}}
	r.room.L, r.candidates = new(sync.Mutex), make([]*streamTransaction, 0, 100)
	p := &streamPartition{token: "a"}
	for i := range 10 {
		r.addData(p, &dataRecord{commit: day.Add(time.Duration(i) * time.Second), transaction: "tx", records: 1})
	}
	queue, candidates := p.queue, r.candidates
	if err := r.handOut(r.popReady()); err != nil {
		t.Fatal(err)
	}
	for i := range queue {
		if queue[i] != nil || candidates[i] != nil {
			t.Errorf("transaction %d is kept", i)
		}
	}
}

// TestLargeChangesWait checks that a partition with large changes is not read further until the handler has taken some
// of them.
func TestLargeChangesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &streamReader{streamFeed: &streamFeed{Stream: &Stream{}}, out: &keptSink{}, ctx: t.Context(), work: make(chan struct{}, 1), transactions: map[transactionKey]*streamTransaction{}}
		r.room.L = &r.mu
		p := &streamPartition{token: "a"}
		records := &changeRecords{}
		for i := range 3 {
			records.data = append(records.data, &dataRecord{commit: day.Add(time.Duration(i) * time.Second), transaction: "tx", records: 1, bytes: 16 << 20, changes: make([]Change, 1)})
		}
		read := false
		go func() {
			read = r.add(p, records, time.Time{}, nil) == nil
		}()
		synctest.Wait()
		if read {
			t.Error("a partition with much that is not delivered is read further")
		}
		if err := r.handOut(r.popReady()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !read || p.bytes != 0 {
			t.Errorf("read: %v, %d bytes", read, p.bytes)
		}
	})
}

// TestStreamPositionRefused checks that an invalid position gives a lasting error.
func TestStreamPositionRefused(t *testing.T) {
	if _, err := parseStreamPosition(`{"partitions": 7}`); !lasting(err) {
		t.Errorf("%v", err)
	}
}
