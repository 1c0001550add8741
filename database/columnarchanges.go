package database

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// copyChanges counts the rows of each chunk that have changed since the chunk was copied. A row counts once in each
// pass that finds a change of it, so a count is an upper bound.
type copyChanges struct {
	counted mvcc.Timestamp                             // the passes have counted the changes up to here
	commits uint64                                     // number of the database's commits at the last pass
	took    time.Duration                              // CPU time of the last pass
	ended   time.Time                                  // when the last pass ended
	roots   []copyRoot                                 // in the order of their keys
	spans   []table.Span                               // the spans that a pass reads
	byCopy  map[schema.TableID]map[uint64]chunkChanges // by chunk number
}

// copyRoot is a table or index that is not interleaved, with the copies of it and of all that is interleaved in it.
type copyRoot struct {
	span   table.Span
	copies []*wantedCopy
}

type chunkChanges struct {
	rows  int64
	since time.Time // when the last change was counted
}

// of returns the changes counted in a chunk.
func (c *copyChanges) of(id schema.TableID, number uint64) chunkChanges {
	return c.byCopy[id][number]
}

// set sets the changes counted in a chunk.
func (c *copyChanges) set(id schema.TableID, number uint64, to chunkChanges) {
	if c.byCopy[id] == nil {
		c.byCopy[id] = map[uint64]chunkChanges{}
	}
	c.byCopy[id][number] = to
}

// forget forgets the counts of chunks that a copy no longer has.
func (c *copyChanges) forget(id schema.TableID, chunks []columnar.Chunk) {
	maps.DeleteFunc(c.byCopy[id], func(number uint64, _ chunkChanges) bool {
		return !slices.ContainsFunc(chunks, func(c columnar.Chunk) bool { return c.Number == number })
	})
}

// A pass also reads versions in memory that earlier passes have counted. So the next pass waits for restOfCounts times
// the CPU time of the last one. It waits for restOfFew times that time while a pass would cost more than countOfCommit
// for each commit since. CPU time decides: a pass that waits for a processor or the disk costs commits nothing. But a
// pass never waits longer than countWithin, since a commit may change many rows, and reads meet all of them. The memory
// that a pass reads is bounded, so even then the passes take a small part of a core.
const (
	restOfCounts  = 49
	restOfFew     = 399
	countOfCommit = 10 * time.Microsecond
	countWithin   = 10 * time.Second
)

// isTime reports whether a pass is due; commits is the number of the database's commits so far.
func (c *copyChanges) isTime(now time.Time, commits uint64) bool {
	rest := now.Sub(c.ended)
	if commits == c.commits && c.counted > 0 || rest < max(countEvery, min(c.took*restOfCounts, countWithin)) {
		return false
	}
	return rest >= min(c.took*restOfFew, countWithin) || time.Duration(commits-c.commits)*countOfCommit >= c.took
}

// follow sets the spans that passes read to those of the wanted copies of a catalog.
func (c *copyChanges) follow(catalog *schema.Catalog, wanted []*wantedCopy) {
	if len(wanted) == 0 { // most databases have no copies, and some of them have thousands of tables
		c.roots, c.spans = nil, nil
		clear(c.byCopy)
		return
	}
	of, ids := map[schema.TableID][]*wantedCopy{}, map[schema.TableID]bool{}
	for _, w := range wanted {
		ids[w.layout.ID()] = true
		id := rootOf(w.table, w.index)
		of[id] = append(of[id], w)
	}
	var all []copyRoot // including those without copies
	for l := range table.Layouts(catalog) {
		if span, alone := l.Space(); alone {
			all = append(all, copyRoot{span, of[l.ID()]})
		}
	}
	slices.SortFunc(all, func(a, b copyRoot) int { return bytes.Compare(a.span.Start, b.span.Start) })
	c.roots, c.spans = nil, nil
	maps.DeleteFunc(c.byCopy, func(id schema.TableID, _ map[uint64]chunkChanges) bool { return !ids[id] })
	near := false
	for _, r := range all {
		if len(r.copies) == 0 {
			near = false
			continue
		}
		c.roots = append(c.roots, r)
		if near {
			c.spans[len(c.spans)-1].End = r.span.End
		} else {
			c.spans = append(c.spans, r.span)
		}
		near = true
	}
}

// rootOf returns the number of the table or index at the top of the hierarchy in which a table or index is interleaved.
func rootOf(t *schema.Table, x *schema.Index) schema.TableID {
	switch {
	case x == nil:
		return t.Path()[0].ID
	case x.Parent == nil:
		return x.ID
	}
	return x.Parent.Path()[0].ID
}

// count makes a pass over the changes, and records the CPU time that it took.
func (u *upkeep) count(ctx context.Context) (err error) {
	u.changes.took = cpu.Spent(ctx, func() { err = u.pass(ctx) })
	return err
}

// pass counts the changes since the pass before. The first pass after a start counts the changes since the oldest
// chunk.
func (u *upkeep) pass(ctx context.Context) error {
	began, c := u.registry.cfg.Clock(), &u.changes
	commits := u.txns.Commits()
	snapshot, err := u.txns.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return err
	}
	if c.byCopy == nil {
		c.byCopy = map[schema.TableID]map[uint64]chunkChanges{}
		c.counted = oldestChunk(u.wanted, snapshot.Timestamp())
	}
	// A chunk older than the horizon is built again. Other chunks have no changes before the horizon.
	c.counted = max(c.counted, u.rows.Horizon())
	for _, span := range c.spans {
		err := u.countIn(ctx, span, snapshot.Timestamp(), began)
		for errors.Is(err, mvcc.ErrCollected) && c.counted < u.rows.Horizon() { // the horizon has moved since; chunks before it are rewritten
			c.counted = u.rows.Horizon()
			err = u.countIn(ctx, span, snapshot.Timestamp(), began)
		}
		if err != nil {
			return err
		}
	}
	c.counted, c.commits, c.ended = snapshot.Timestamp(), commits, u.registry.cfg.Clock()
	u.publishChanges(slices.Collect(maps.Keys(c.byCopy))...)
	return nil
}

// oldestChunk returns the timestamp of the oldest chunk, or newest if there is no chunk.
func oldestChunk(wanted []*wantedCopy, newest mvcc.Timestamp) mvcc.Timestamp {
	oldest := newest
	for _, w := range wanted {
		for _, c := range w.Chunks() {
			oldest = min(oldest, c.At)
		}
	}
	return oldest
}

// countIn counts the changes in a span up to timestamp to.
func (u *upkeep) countIn(ctx context.Context, span table.Span, to mvcc.Timestamp, now time.Time) error {
	c := &u.changes
	cur, err := u.rows.Changes(span.Start, span.End, c.counted, to)
	if err != nil {
		return err
	}
	defer cur.Close()
	at, _ := slices.BinarySearchFunc(c.roots, span.Start, func(r copyRoot, start []byte) int { return bytes.Compare(r.span.Start, start) })
	chunks := map[*wantedCopy][]columnar.Chunk{}
	for n := 0; cur.Next(); n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key := cur.Key()
		for at < len(c.roots) && bytes.Compare(c.roots[at].span.End, key) <= 0 {
			at++
		}
		if at == len(c.roots) {
			break
		}
		for _, w := range c.roots[at].copies {
			if !w.layout.Owns(key) {
				continue
			}
			list, ok := chunks[w]
			if !ok {
				list = w.Chunks()
				chunks[w] = list
			}
			c.add(w, list, key, cur.Version(), now)
			break
		}
	}
	return cur.Err()
}

// add counts a change of a key, unless the chunk that holds the key was copied after the change.
func (c *copyChanges) add(w *wantedCopy, chunks []columnar.Chunk, key []byte, version mvcc.Timestamp, now time.Time) {
	i, _ := slices.BinarySearchFunc(chunks, key, func(c columnar.Chunk, key []byte) int {
		if bytes.Compare(c.Span.End, key) <= 0 {
			return -1
		}
		return 1
	})
	if i == len(chunks) || bytes.Compare(key, chunks[i].Span.Start) < 0 || version <= chunks[i].At {
		return
	}
	id, number := w.layout.ID(), chunks[i].Number
	c.set(id, number, chunkChanges{c.of(id, number).rows + 1, now})
	w.due = true
}

// publishChanges shows the counts of copies to SPANNER_SYS.
func (u *upkeep) publishChanges(of ...schema.TableID) {
	u.copying.mu.Lock()
	defer u.copying.mu.Unlock()
	for _, id := range of {
		sum := int64(0)
		for _, c := range u.changes.byCopy[id] {
			sum += c.rows
		}
		u.copying.changed[id] = sum
	}
}
