// Package sequence holds the counters of the sequences and identity columns of one database, in memory and in the
// store.
//
// A counter gives out each number once, whether the transaction that took it commits or not, and also after crashes. It
// reserves numbers in blocks: it stores the end of a block durably before it gives out the first number of the block.
// After a crash it goes on after the last block. So some numbers are skipped, and taking one usually costs one atomic
// addition. Many goroutines may take numbers at the same time.
//
// It leaves out the definition of a sequence. That is part of the schema (schema.Generator): it says where a counter
// begins, and restarts a sequence by giving it another counter.
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
	// block is how many numbers are reserved at once. At a million values per second that is a hundred synced writes.
	// With a crash every second, a sequence lasts 29 million years.
	block = 10_000
	// ahead is how many numbers are left when the next block is reserved, so that concurrent takers need not wait.
	ahead = block / 2
	// lastCounter is the number at which a counter ends. It is not given out.
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

// New returns the counters of a database that does not exist yet. Open must be called before the first number is taken.
func New(store kv.Store) *Counters { return &Counters{store: store} }

// Open assigns the counters to the database in a key space. newest returns the newest catalog of the database.
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

// named is nextValue with errors for users.
func (n *counter) named(name string, g *schema.Generator) (int64, error) {
	v, err := n.nextValue(g)
	if err != nil && errors.Is(err, errExhausted) {
		return 0, usererror.SequenceExhausted(name)
	}
	return v, err
}

// State returns the number that the counter of a generator gives out next; ok is false if it has not given out any.
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

// stored returns the durable bound of a generator's counter, 0 if the counter was never used.
func (c *Counters) stored(g *schema.Generator) (bound int64, err error) {
	var r record
	err = meta.Each(c.store, counterName(c.space, g.Counter), func(_ string, data []byte) error { return json.Unmarshal(data, &r) })
	if err != nil {
		return 0, fmt.Errorf("read counter of sequence: %w", err)
	}
	return r.Bound, nil
}

// Taker returns Next for one generator. It looks the counter up once.
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

// Restarted takes part in a schema change that restarts generators, each with a new counter. If the old counter was
// used, it marks the new one as used, in the batch of the schema version: the state of a sequence that was used is
// never NULL again. It does not load the new counter, since another counter gets its number if the batch fails.
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
		if !before || bound > 0 { // marked already: an undo of the restart is undone
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

// Forget adds to a batch the deletion of all counters but those in kept. It may be called when the database has one
// schema version, whose counters kept holds.
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

// Close returns the reserved numbers that were not given out. Afterwards the counters give out no numbers.
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
	Bound int64 // numbers below it may have been given out
}

func counterName(space mvcc.Space, id schema.TableID) string {
	return meta.OfSpace(meta.Counter, space) + fmt.Sprintf("%010d", id)
}

// counter is one counter.
//
// Invariant: each number that was given out is below a bound that was durable before.
type counter struct {
	store kv.Store
	key   []byte

	next  atomic.Int64 // the number to give out next
	bound atomic.Int64 // durable; 0 if the counter was never used, below next if it is closed

	mu     sync.Mutex // held while a block is reserved
	closed bool       // guarded by mu
}

var (
	errExhausted = errors.New("the sequence is exhausted")
	errClosed    = errors.New("the counters are closed")
)

// nextValue takes the next number, and returns its value.
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

// nextValueSlow is nextValue for a number that is not reserved yet, or whose value is skipped.
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
		if !ok { // it may go on after the skip range is altered
			return 0, cmp.Or(n.reserve(at), errExhausted)
		}
		if to == at {
			return reverse(at), n.reserve(at)
		}
		// Others take numbers meanwhile. Go on with the first number that they have not taken and whose value is not
		// skipped.
		if next := n.next.Load(); next > to {
			at = n.next.Add(1) - 1
		} else if n.next.CompareAndSwap(next, to+1) {
			at = to
		}
	}
}

// reserve reserves a block from this number on, unless the number is reserved. The caller holds mu.
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

// reserveAhead reserves another block before this one is used up, unless another goroutine is doing so.
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

// extend stores a bound durably. The caller holds mu.
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

// giveBack closes the counter and adds to a batch that no numbers are reserved. It returns false if none were. A taker
// that has loaded the old bound has taken a number below next.
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
