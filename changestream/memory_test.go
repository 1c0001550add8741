package changestream_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
)

// iterators is a store that counts how many of its iterators are open.
type iterators struct {
	kv.Store
	open atomic.Int32
}

type counted struct {
	kv.Iterator
	of *iterators
}

func (s *iterators) NewIter(lower, upper []byte) (kv.Iterator, error) {
	it, err := s.Store.NewIter(lower, upper)
	s.open.Add(1)
	return &counted{it, s}, err
}

func (c *counted) Close() error {
	c.of.open.Add(-1)
	return c.Iterator.Close()
}

// fill takes all memory that a budget has.
func fill(b *memory.Budget) *memory.Account {
	all := b.Open(memory.Transaction)
	for {
		a := b.Open(memory.Transaction)
		if !a.TryGrow(memory.FreeBytes + 1) {
			return all
		}
		all.Add(a)
	}
}

// TestReaderWithoutMemory checks that a reader returns the rows for which it has memory. If there is no memory for the
// next row, the reader must wait without an open iterator.
func TestReaderWithoutMemory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		small, large := strings.Repeat("s", 20<<10), strings.Repeat("l", 60<<10)
		start := w.commit(small)
		w.commit(small)
		end := w.commit(large)
		store := &iterators{Store: w.store}
		log, err := changestream.Open(changestream.Config{Space: 1, Store: store, Oracle: w.oracle, Clock: w.clock, Secret: [16]byte{1}})
		if err != nil {
			t.Fatal(err)
		}
		budget := memory.NewBudget(16 << 20)
		others := fill(budget)
		q := query(w.tokens(start)[0], start)
		q.End, q.Memory = end, budget.Open(memory.Statement)
		r, err := log.Read(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := texts([]record{next(t, r)}); got != small {
				t.Errorf("a row of %d bytes", len(got))
			}
		}
		got := make(chan string, 1)
		go func() { got <- texts([]record{next(t, r)}) }()
		synctest.Wait()
		if waiting := budget.Usage().Waiting; waiting != 1 || store.open.Load() != 0 {
			t.Errorf("%d wait, with %d iterators", waiting, store.open.Load())
		}
		others.Close()
		if got := <-got; got != large {
			t.Errorf("a row of %d bytes", len(got))
		}
		if ok, err := r.Next(); ok || err != nil {
			t.Errorf("at the end: %v, %v", ok, err)
		}
	})
}
