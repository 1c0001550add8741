// Package sequence holds the counters of the sequences and identity columns of one database, in memory and in the
// store.
//
// A counter gives out each number once, whether the transaction that took the number commits or not, and also after
// crashes. It reserves numbers in blocks: it stores the end of a block durably before it gives out the first number of
// the block. After a crash it continues after the last stored block, so some numbers are skipped. In return, taking a
// number usually costs one atomic addition. Many goroutines may take numbers at the same time.
//
// The definition of a sequence is part of the schema (schema.Generator). It says with which number a counter begins. To
// restart a sequence, a schema change gives the sequence another counter.
//
// Imports of this module: database/meta, kv, mvcc, schema, usererror.
package sequence

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
)

const (
	// block is how many numbers are reserved at once. At a million values per second that makes a hundred synced writes
	// per second. Even if the server crashed every second, a sequence would last 29 million years.
	block = 10_000
	// ahead is how many numbers of a block are left when the next block is reserved. Other goroutines take these
	// numbers meanwhile, so that they need not wait.
	ahead = block / 2
	// lastCounter is the number at which a counter ends. It is not given out itself.
	lastCounter = math.MaxInt64
)

// Counters are the counters of one database.
type Counters struct {
	store  kv.Store
	space  mvcc.Space
	newest func() *schema.Catalog

	byID    sync.Map // schema.TableID to *counter
	loading sync.Mutex
}

// New returns the counters of a database. Open must be called before the first number is taken.
func New(store kv.Store) *Counters { return &Counters{store: store} }

// Open sets the database of the counters: its key space, and a function that returns its newest catalog.
func (c *Counters) Open(space mvcc.Space, newest func() *schema.Catalog) {
	c.space, c.newest = space, newest
}

// Next takes the next value of a generator; name is the generator's name in error messages.
func (c *Counters) Next(name string, g *schema.Generator) (int64, error) {
	n, err := c.of(g)
	if err != nil {
		return 0, err
	}
	return n.named(name, g)
}

// named calls nextValue. If the sequence is exhausted, it returns an error for users, which contains name, the name of
// the sequence.
func (n *counter) named(name string, g *schema.Generator) (int64, error) {
	v, err := n.nextValue(g)
	if err != nil && errors.Is(err, errExhausted) {
		return 0, usererror.SequenceExhausted(name)
	}
	return v, err
}

// State returns the number that the counter of a generator gives out next. ok is false if the counter was never used.
func (c *Counters) State(g *schema.Generator) (next int64, ok bool, err error) {
	n, err := c.of(g)
	if err != nil {
		return 0, false, err
	}
	next, ok = n.state()
	return next, ok, nil
}

// of returns the counter of a generator, and loads it if necessary.
func (c *Counters) of(g *schema.Generator) (*counter, error) {
	if n, ok := c.byID.Load(g.Counter); ok {
		return n.(*counter), nil
	}
	c.loading.Lock()
	defer c.loading.Unlock()
	if n, ok := c.byID.Load(g.Counter); ok {
		return n.(*counter), nil
	}
	n := &counter{store: c.store, key: meta.Key(counterName(c.space, g.Counter))}
	bound, err := c.stored(g)
	if err != nil {
		return nil, err
	}
	n.next.Store(cmp.Or(bound, g.FirstCounter()))
	n.bound.Store(bound)
	c.byID.Store(g.Counter, n)
	return n, nil
}

// stored returns the stored bound of a generator's counter: only numbers below it may have been given out. It returns 0
// if the counter was never used.
func (c *Counters) stored(g *schema.Generator) (bound int64, err error) {
	var r record
	err = meta.Each(c.store, counterName(c.space, g.Counter), func(_ string, data []byte) error { return json.Unmarshal(data, &r) })
	if err != nil {
		return 0, fmt.Errorf("read counter of sequence: %w", err)
	}
	return r.Bound, nil
}

// Taker returns a function that takes the next value of one generator, as Next does. The function looks up the counter
// only once.
func (c *Counters) Taker(name string, g *schema.Generator) func() (int64, error) {
	var found atomic.Pointer[counter]
	return func() (int64, error) {
		n := found.Load()
		if n == nil {
			var err error
			if n, err = c.of(g); err != nil {
				return 0, err
			}
			found.Store(n)
		}
		return n.named(name, g)
	}
}

// Restarted takes part in a schema change that restarts generators. Each restarted generator has a new counter. If its
// old counter was used, Restarted adds a record of the new counter to b, the batch of the schema version. The record
// makes the new counter count as used, because the state of a used sequence must never be NULL again. Restarted does
// not load the new counter into memory: if the batch fails, the next schema change may give the same ID to another
// counter.
func (c *Counters) Restarted(b kv.Batch, list []schema.Restart) error {
	for _, r := range list {
		_, before, err := c.State(r.Before)
		if err != nil {
			return err
		}
		bound, err := c.stored(r.Generator)
		if err != nil {
			return err
		}
		if !before || bound > 0 { // bound > 0: the undo of a schema change brings back a counter that has a record
			continue
		}
		first := r.Generator.FirstCounter()
		if err := meta.Put(b, meta.Key(counterName(c.space, r.Generator.Counter)), record{first}); err != nil {
			return err
		}
		if n, loaded := c.byID.Load(r.Generator.Counter); loaded {
			n.(*counter).bound.CompareAndSwap(0, first)
		}
	}
	return nil
}

// Forget adds to a batch the deletion of all counters but those that the parameter kept holds. It may be called only
// when the database has a single schema version. kept holds the IDs of that version's counters.
func (c *Counters) Forget(b kv.Batch, kept map[schema.TableID]bool) error {
	prefix := meta.OfSpace(meta.Counter, c.space)
	return meta.Each(c.store, prefix, func(name string, _ []byte) error {
		var id schema.TableID
		if _, err := fmt.Sscanf(name[len(prefix):], "%d", &id); err != nil {
			return fmt.Errorf("record %q is not one of a counter: %w", name, err)
		}
		if kept[id] {
			return nil
		}
		c.byID.Delete(id)
		return b.Delete(meta.Key(name))
	})
}

// Close gives back the reserved numbers that were not given out: it stores that the next process may give them out. If
// the store refuses this write, these numbers are skipped. After Close the counters give out no numbers.
func (c *Counters) Close() error {
	b := meta.NewBatch(c.store)
	defer b.Close()
	given := false
	var err error
	c.byID.Range(func(_, n any) bool {
		var back bool
		back, err = n.(*counter).giveBack(b)
		given = given || back
		return err == nil
	})
	if err != nil || !given {
		return err
	}
	if err := b.Commit(); err != nil && !errors.Is(err, kv.ErrRefused) {
		return fmt.Errorf("give back numbers of sequences: %w", err)
	}
	return nil
}

// record is a stored counter.
type record struct {
	Bound int64 // numbers below Bound may have been given out
}

func counterName(space mvcc.Space, id schema.TableID) string {
	return meta.OfSpace(meta.Counter, space) + fmt.Sprintf("%010d", id)
}

// counter is the counter of one generator.
//
// Invariant: each number that was given out is below a bound that was stored durably before.
type counter struct {
	store kv.Store
	key   []byte

	next  atomic.Int64 // the number to give out next
	bound atomic.Int64 // stored end of the reserved numbers; 0 if the counter was never used, -1 if it is closed

	mu     sync.Mutex // held while a block is reserved
	closed bool       // guarded by mu
}

var (
	errExhausted = errors.New("the sequence is exhausted")
	errClosed    = errors.New("the counters are closed")
)

// nextValue takes the next number of the counter, and returns the value that belongs to the number.
func (n *counter) nextValue(g *schema.Generator) (int64, error) {
	at := n.next.Add(1) - 1
	bound := n.bound.Load()
	v := reverse(at)
	if at < 0 || at >= bound || g.Skips(v) {
		return n.nextValueSlow(at, g)
	}
	if at == bound-ahead {
		return v, n.reserveAhead(at)
	}
	return v, nil
}

// nextValueSlow continues nextValue. nextValue has taken the number in the parameter at, but this number is not
// reserved yet, or the generator skips its value.
func (n *counter) nextValueSlow(at int64, g *schema.Generator) (int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return 0, errClosed
	}
	for {
		if at < 0 || at == lastCounter {
			n.next.Store(lastCounter)
			return 0, errExhausted
		}
		to, ok := following(g, at)
		if !ok { // n.next stays as it is, so that the sequence can continue when its skip range is altered
			return 0, cmp.Or(n.reserve(at), errExhausted)
		}
		if to == at {
			return reverse(at), n.reserve(at)
		}
		// Other goroutines may have taken numbers meanwhile. The next candidate is the smallest number that nobody has
		// taken and that is at least as large as the number in the variable to.
		if next := n.next.Load(); next > to {
			at = n.next.Add(1) - 1
		} else if n.next.CompareAndSwap(next, to+1) {
			at = to
		}
	}
}

// reserve makes sure that the number in the parameter at is reserved. If it is not reserved yet, reserve reserves a
// block that begins with this number. The caller holds mu.
func (n *counter) reserve(at int64) error {
	if at < n.bound.Load() {
		return nil
	}
	bound := int64(lastCounter)
	if at < lastCounter-block {
		bound = at + block
	}
	return n.extend(bound)
}

// reserveAhead reserves the next block before the current one is used up, unless another goroutine is doing so.
func (n *counter) reserveAhead(at int64) error {
	if !n.mu.TryLock() {
		return nil
	}
	defer n.mu.Unlock()
	if bound := n.bound.Load(); !n.closed && at == bound-ahead && bound < lastCounter-block {
		return n.extend(bound + block)
	}
	return nil
}

// extend stores a new bound durably. The caller holds mu.
func (n *counter) extend(bound int64) error {
	if err := meta.Store(n.store, n.key, record{bound}); err != nil {
		return fmt.Errorf("reserve numbers of a sequence: %w", err)
	}
	n.bound.Store(bound)
	return nil
}

func (n *counter) state() (next int64, ok bool) {
	if n.bound.Load() == 0 {
		return 0, false
	}
	if next = n.next.Load(); next < 0 {
		next = lastCounter
	}
	return next, true
}

// giveBack closes the counter. If some reserved numbers were not given out, it adds a record to the batch that ends the
// reservation of these numbers, and returns true. A concurrent nextValue may still load the old bound. That is
// harmless: nextValue has increased n.next before it loads the bound, so the record counts its number as given out.
func (n *counter) giveBack(b kv.Batch) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	bound := n.bound.Swap(-1)
	next := n.next.Load()
	if bound <= 0 || next < 0 || next >= bound {
		return false, nil
	}
	return true, meta.Put(b, n.key, record{next})
}
