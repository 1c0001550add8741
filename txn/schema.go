package txn

import (
	"context"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// schemaGate keeps commits and schema changes apart, and knows which transactions a change may abort. The lock
// table's mu guards all fields except sem. catalog is stored under that mutex and may be loaded without it.
type schemaGate struct {
	sem        chan struct{} // holds one token while a schema change runs, so that one runs at a time
	open       chan struct{} // closed when the running change ends; nil if none runs
	committing int           // number of commits past their point of no return
	drained    chan struct{} // made by drain, and closed when committing falls to 0

	catalog    atomic.Pointer[schema.Catalog] // the newest catalog
	dependents map[*Tx]struct{}               // active transactions that have called DependOn
}

// ChangeSchema makes the catalog in the parameter next the newest catalog. It runs fn while nothing else writes in the
// database: it waits for the commits that are past their point of no return, and later commits and calls of DependOn
// wait for the end of fn. fn writes at the timestamp ts, in one batch that it commits with the function commit. The
// batch becomes visible when fn returns. fn must return an error only if it has committed nothing or its commit has
// failed. Then the catalog stays as it is. If the commit failed and it is unknown whether the store kept the batch,
// nothing commits any more, as after a failed commit of a transaction.
//
// Afterwards ChangeSchema aborts the transactions whose dependencies (see DependOn) do not hold in the new catalog. All
// other transactions go on, and use the new catalog from their next statement on.
//
// While fn runs, no later commit of the whole store becomes visible, because commits become visible in the order of
// their timestamps. So long work, such as back-filling, must be done in transactions before ChangeSchema.
func (m *Manager) ChangeSchema(ctx context.Context, next *schema.Catalog, fn func(ts mvcc.Timestamp, commit func(kv.Batch) error) error) error {
	select {
	case m.schema.sem <- struct{}{}:
		defer func() { <-m.schema.sem }()
	case <-ctx.Done():
		return ctx.Err()
	}
	m.locks.mu.Lock()
	m.schema.open = make(chan struct{})
	m.locks.mu.Unlock()
	defer func() {
		m.locks.mu.Lock()
		defer m.locks.mu.Unlock()
		close(m.schema.open)
		m.schema.open = nil
	}()
	if err := m.drain(ctx); err != nil {
		return err
	}
	if err := m.oracle.commitAt(fn); err != nil {
		return err
	}
	m.adopt(next)
	return nil
}

// adopt makes the catalog in the parameter next the newest catalog. It aborts the transactions whose dependencies do
// not hold in the new catalog.
func (m *Manager) adopt(next *schema.Catalog) {
	m.locks.mu.Lock()
	defer m.locks.mu.Unlock()
	m.schema.catalog.Store(next)
	holds := map[*schema.Dependencies]bool{} // results of HoldIn, kept because many transactions share dependencies
	for t := range m.schema.dependents {
		for _, d := range t.dependencies {
			if _, known := holds[d]; !known {
				holds[d] = d.HoldIn(next)
			}
			if !holds[d] {
				m.locks.abort(t, AbortSchemaChange)
				break
			}
		}
	}
}

// drain waits for the commits that are past their point of no return.
func (m *Manager) drain(ctx context.Context) error {
	for {
		m.locks.mu.Lock()
		if m.schema.committing == 0 {
			m.locks.mu.Unlock()
			return nil
		}
		m.schema.drained = make(chan struct{})
		drained := m.schema.drained
		m.locks.mu.Unlock()
		select {
		case <-drained:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leave subtracts a commit that has ended from g.committing. The caller holds the lock table's mu.
func (g *schemaGate) leave() {
	if g.committing--; g.committing == 0 && g.drained != nil {
		close(g.drained)
		g.drained = nil
	}
}

// lockGate waits until no schema change runs. If it succeeds, it returns with the lock table's mu locked, so that the
// next schema change cannot begin.
func (m *Manager) lockGate(ctx context.Context) error {
	for {
		m.locks.mu.Lock()
		open := m.schema.open
		if open == nil {
			return nil
		}
		m.locks.mu.Unlock()
		if err := awaitClosed(ctx, open); err != nil {
			return err
		}
	}
}

func awaitClosed(ctx context.Context, c chan struct{}) error {
	defer cpu.Waiting(ctx)()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// DependOn makes the transaction depend on d, the schema objects that the caller has looked up in the catalog c. c is
// the newest catalog, or was the newest one shortly before. DependOn must be called before the transaction reads or
// writes these objects. A schema change aborts the transaction if d does not hold in the new catalog. If a transaction
// has never called DependOn, no schema change aborts it.
func (t *Tx) DependOn(ctx context.Context, d *schema.Dependencies, c *schema.Catalog) error {
	m := t.m
	if err := m.lockGate(ctx); err != nil {
		return err
	}
	defer m.locks.mu.Unlock()
	if err := t.check(); err != nil {
		return err
	}
	for _, known := range t.dependencies {
		if known == d {
			return nil
		}
	}
	// d must also hold in the newest catalog, with which the newest rows may have been written, and in the catalog
	// with which the rows of the snapshot were written.
	for _, also := range []*schema.Catalog{m.schema.catalog.Load(), t.readCatalog} {
		if also != nil && also != c && !d.HoldIn(also) {
			m.locks.abort(t, AbortSchemaChange)
			return t.err
		}
	}
	if len(t.dependencies) == 0 {
		m.schema.dependents[t] = struct{}{}
		t.dependencies = t.room[:0]
	}
	t.dependencies = append(t.dependencies, d)
	return nil
}
