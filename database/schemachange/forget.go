package schemachange

import (
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// Obsolete holds schema versions that are too old for any read, and the keys of the tables and indexes that only they
// use.
type Obsolete struct {
	versions []*Version
	spans    []table.Span    // key ranges of tables and indexes that are not interleaved
	layouts  []*table.Layout // of interleaved ones, whose keys lie between the keys of others
}

// FindObsolete finds the schema versions that were replaced before the horizon. While a schema change runs, which may take
// hours, it finds none. It never returns the newest version that is not tentative, nor the versions after it, since a
// change may have to go back to it.
func (m *Manager) FindObsolete(horizon mvcc.Timestamp) *Obsolete {
	if !m.Token.TryAcquire() {
		return new(Obsolete)
	}
	defer m.Token.Release() // an object that no version has now never appears in a later one
	list := *m.versions.Load()
	kept := 0
	settled := slices.Index(list, m.Settled()) // -1 if there is none
	for kept < settled && list[kept+1].At <= horizon {
		kept++
	}
	past := &Obsolete{versions: list[:kept]}
	for _, v := range list[1 : kept+1] {
		past.spans = append(past.spans, v.Garbage...)
	}
	if kept > 0 {
		past.layouts = interleavedOnlyIn(list[:kept], list[kept:])
	}
	return past
}

// interleavedOnlyIn returns the interleaved tables and indexes that some of versions have and none of others, the
// versions after them.
func interleavedOnlyIn(versions, others []*Version) (list []*table.Layout) {
	// A schema change that fails publishes again the objects that it has dropped. So a later version may have an object
	// that an earlier one lacks.
	again := map[schema.TableID]bool{}
	for i := range others[1:] {
		for _, l := range droppedBetween(others[i], others[i+1]) {
			again[l.ID()] = true
		}
	}
	newest := others[len(others)-1].Catalog
	for i := range versions {
		next := others[0]
		if i+1 < len(versions) {
			next = versions[i+1]
		}
		for _, l := range droppedBetween(versions[i], next) {
			if !again[l.ID()] && table.LayoutOf(newest, l.ID()) == nil {
				list, again[l.ID()] = append(list, l), true
			}
		}
	}
	return list
}

// droppedBetween returns the interleaved tables and indexes of a version that the next one does not have.
func droppedBetween(v, next *Version) (list []*table.Layout) {
	tables, indexes := v.Catalog.Without(next.Catalog)
	for _, t := range tables {
		if t.Parent != nil {
			list = append(list, table.TableLayout(t))
		}
	}
	for _, x := range indexes {
		if x.Parent != nil {
			list = append(list, table.IndexLayout(x))
		}
	}
	return list
}

// Owns returns a function that reports whether a key belongs to one of the interleaved tables or indexes; nil if there
// are none.
func (o *Obsolete) Owns() func(key []byte) bool {
	if len(o.layouts) == 0 {
		return nil
	}
	return func(key []byte) bool {
		return slices.ContainsFunc(o.layouts, func(l *table.Layout) bool { return l.Owns(key) })
	}
}

// Forget deletes the schema versions, and the keys of their tables and indexes that are not interleaved. The keys of
// interleaved ones have been collected already. If a schema change has begun meanwhile, Forget leaves the work to the
// next collection.
func (m *Manager) Forget(past *Obsolete) error {
	if len(past.versions) == 0 || !m.Token.TryAcquire() {
		return nil
	}
	defer m.Token.Release()
	b := m.cfg.Rows.NewBatch()
	defer b.Close()
	b.KV().UseReserve() // it makes room
	all := *m.versions.Load()
	rest := slices.Clone(all[len(past.versions):])
	if err := m.forgetVersions(b.KV(), rest[0].Catalog.Version); err != nil {
		return err
	}
	for _, g := range past.spans {
		if err := b.Erase(g.Start, g.End); err != nil {
			return err
		}
	}
	if len(rest) == 1 {
		if err := m.cfg.Sequences.Forget(b.KV(), rest[0].Catalog.Counters()); err != nil {
			return err
		}
	}
	m.versions.Store(&rest)
	if err := b.Commit(); err != nil {
		m.versions.Store(&all) // the store still has them
		return fmt.Errorf("forget schema versions: %w", err)
	}
	for _, g := range past.spans {
		m.cfg.Rows.FreeSpace(g.Start, g.End)
	}
	for _, v := range past.versions {
		v.Preparer.Close()
	}
	return nil
}
