package schemachange

import (
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// Obsolete holds schema versions that no read can use any more, and the keys of the tables and indexes that only these
// versions use.
type Obsolete struct {
	versions []*Version
	spans    []table.Span    // key ranges of tables and indexes that are not interleaved
	layouts  []*table.Layout // the interleaved tables and indexes, whose keys lie between those of other tables
}

// FindObsolete finds the schema versions that were replaced at or before the horizon. While a schema change runs, which
// may take hours, it finds none. It never returns the newest version that is not tentative, since a schema change that
// fails makes the catalog of that version the newest one again. It returns no later version either.
func (m *Manager) FindObsolete(horizon mvcc.Timestamp) *Obsolete {
	if !m.Token.TryAcquire() {
		return new(Obsolete)
	}
	defer m.Token.Release() // no schema change runs meanwhile whose undo could bring back a dropped object
	list := *m.versions.Load()
	kept := 0
	settled := slices.Index(list, m.Settled()) // -1 if all kept versions are tentative
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

// interleavedOnlyIn returns the interleaved tables and indexes that only the given versions have. others holds all
// versions that follow them.
func interleavedOnlyIn(versions, others []*Version) (list []*table.Layout) {
	// When a schema change fails, its undo publishes a catalog which again has the objects that the change had dropped.
	// So a given version may have dropped an object that a version in others has. If a still later version has dropped
	// this object, too, the loop adds the object to the map, and the result leaves it out.
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

// droppedBetween returns the interleaved tables and indexes that version v has and the version next does not have.
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

// Owns returns a function that reports whether a key belongs to one of the interleaved tables or indexes in o. It
// returns nil if there are none.
func (o *Obsolete) Owns() func(key []byte) bool {
	if len(o.layouts) == 0 {
		return nil
	}
	return func(key []byte) bool {
		return slices.ContainsFunc(o.layouts, func(l *table.Layout) bool { return l.Owns(key) })
	}
}

// Forget deletes the obsolete schema versions, and the keys of their tables and indexes that are not interleaved. The
// caller must have deleted the keys of the interleaved ones before: Owns selects them. If a schema change is running,
// Forget does nothing, and the next collection tries again.
func (m *Manager) Forget(past *Obsolete) error {
	if len(past.versions) == 0 || !m.Token.TryAcquire() {
		return nil
	}
	defer m.Token.Release()
	b := m.cfg.Rows.NewBatch()
	defer b.Close()
	b.KV().UseReserve() // the deletion frees disk space
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
		m.versions.Store(&all) // the store still has the versions
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
