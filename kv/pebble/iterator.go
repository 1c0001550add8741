package pebble

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/crowfoot-db/crowfoot/kv"
)

// iterator makes a pebble.Iterator a kv.Iterator.
type iterator struct{ *pebble.Iterator }

func (it iterator) Value() ([]byte, error) {
	v, err := it.ValueAndErr()
	return v, readError(err)
}

func (it iterator) Error() error { return readError(it.Iterator.Error()) }

func newIter(r pebble.Reader, lower, upper []byte) (kv.Iterator, error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, readError(err)
	}
	return iterator{it}, nil
}

// maxIdle is the maximum number of idle iterators. That many point reads can run at once without making new iterators.
const maxIdle = 32

// iterators keeps idle unbounded iterators for the next point reads, since making one costs more than a seek. An
// iterator sees the store as it was when the iterator was made, and keeps memtables and files from being freed. So all
// idle iterators are closed after each write.
//
// Invariant: an iterator in list sees every write that had been applied when it was put into list.
type iterators struct {
	mu     sync.Mutex
	list   []*pointIterator
	closed bool
}

// pointIterator returns to the idle iterators of its store when it is closed.
type pointIterator struct {
	iterator
	store  *Store
	writes uint64 // Store.writes just before the iterator was made
	large  bool   // the last value read is longer than maxIdleValue
}

// maxIdleValue is the greatest length in bytes of the last value of an idle iterator. An iterator keeps in memory the
// block of the value that it read last, so an iterator with a longer value is not kept.
const maxIdleValue = 64 << 10

// Value implements kv.Iterator.
func (it *pointIterator) Value() ([]byte, error) {
	v, err := it.iterator.Value()
	it.large = len(v) > maxIdleValue
	return v, err
}

// PointIter implements kv.Store.
func (s *Store) PointIter() (kv.Iterator, error) {
	if err := s.guard.failure(); err != nil {
		return nil, err
	}
	if it := s.idle.get(s.writes.Load()); it != nil {
		return it, nil
	}
	// The counter s.writes must be read before the iterator is made, so that the iterator sees at least the writes that
	// are counted. Otherwise a later read might use the iterator again although it misses a write.
	writes := s.writes.Load()
	it, err := s.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return nil, readError(err)
	}
	return &pointIterator{iterator: iterator{it}, store: s, writes: writes}, nil
}

// RecentIter implements kv.Store.
func (s *Store) RecentIter(oldest uint64) (kv.Iterator, error) {
	if err := s.guard.failure(); err != nil {
		return nil, err
	}
	// Pebble appends a filter of its own. The capacity of 2 saves Pebble an allocation.
	filters := append(make([]pebble.BlockPropertyFilter, 0, 2), since(oldest))
	it, err := s.db.NewIter(&pebble.IterOptions{UseL6Filters: true, PointKeyFilters: filters})
	if err != nil {
		return nil, readError(err)
	}
	return iterator{it}, nil
}

// ChangedIter implements kv.Store.
func (s *Store) ChangedIter(lower, upper []byte, from uint64) (kv.Iterator, error) {
	if err := s.guard.failure(); err != nil {
		return nil, err
	}
	// Pebble appends a filter of its own. The capacity of 2 saves Pebble an allocation.
	filters := append(make([]pebble.BlockPropertyFilter, 0, 2), sinceInBlocks{since(from)})
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper, PointKeyFilters: filters})
	if err != nil {
		return nil, readError(err)
	}
	return iterator{it}, nil
}

func (it *pointIterator) Close() error {
	if it.Error() == nil && !it.large && it.store.idle.put(it) {
		return nil
	}
	return it.iterator.Close()
}

func (l *iterators) get(writes uint64) *pointIterator {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.list)
	if n == 0 || l.list[n-1].writes != writes {
		return nil
	}
	it := l.list[n-1]
	l.list = l.list[:n-1]
	return it
}

// put keeps an iterator for the next point read and returns true. It returns false if a write has been applied since
// the iterator was made, or if maxIdle iterators are kept already.
func (l *iterators) put(it *pointIterator) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.list) == maxIdle || it.writes != it.store.writes.Load() {
		return false
	}
	l.list = append(l.list, it)
	return true
}

// clear closes all idle iterators. It is called after every write.
func (l *iterators) clear() {
	l.mu.Lock()
	stale := l.list
	l.list = nil
	l.mu.Unlock()
	for _, it := range stale {
		_ = it.iterator.Close() // it had no error when it was put here
	}
}

func (l *iterators) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.clear()
}
