package copies

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

// copyChanges counts, for each chunk, the rows that have changed since the chunk was copied. The upkeep counts in
// passes: each pass reads the changes since the previous pass. A row that changes again is counted again in the next
// pass, so a count is an upper bound.
type copyChanges struct {
	counted mvcc.Timestamp                             // the changes up to this timestamp are counted
	commits uint64                                     // how many commits the database had made when the last pass began
	ended   time.Time                                  // when the last pass ended
	roots   []copyRoot                                 // the roots that have copies, in the order of their key ranges
	spans   []table.Span                               // the key ranges that a pass reads
	byCopy  map[schema.TableID]map[uint64]chunkChanges // by table or index, then by number of the chunk
}

// copyRoot is a table or index that is not interleaved. Its field copies holds the columnar copy of this table or
// index, and those of all tables and indexes that are interleaved in it.
type copyRoot struct {
	span   table.Span
	copies []*wantedCopy
}

type chunkChanges struct {
	rows  int64
	since time.Time // when the last change was counted
}

// set sets the number of changed rows of a chunk, and the time of the last count.
func (c *copyChanges) set(id schema.TableID, number uint64, to chunkChanges) {
	if c.byCopy[id] == nil {
		c.byCopy[id] = map[uint64]chunkChanges{}
	}
	c.byCopy[id][number] = to
}

// A pass also reads versions that earlier passes have counted, if they are still in memory. Passes must therefore be
// rare: the upkeep pauses after a pass for restOfCounts times the CPU time of the pass. While there are few commits, it
// pauses for restOfFew times that CPU time. Commits are few as long as another pass would cost more than countOfCommit
// for each commit since the last pass. The pause depends on CPU time and not on elapsed time, because a pass that waits
// for a processor or the disk delays no commit. The pause is never longer than CountWithin: even one commit may change
// many rows, and reads of the copy are slower until these rows are counted and copied again. The memory that a pass
// reads is bounded, so the passes use a small part of a core even when CountWithin shortens the pause.
const (
	restOfCounts  = 49
	restOfFew     = 399
	countOfCommit = 10 * time.Microsecond
	CountWithin   = 10 * time.Second
)

// countIsDue reports whether it is time for the next pass.
func (u *Upkeep) countIsDue() bool {
	c, commits := &u.changes, u.cfg.Transactions.Commits()
	rest := u.cfg.Clock().Sub(c.ended)
	if commits == c.commits && c.counted > 0 || rest < max(countEvery, min(u.Took*restOfCounts, CountWithin)) {
		return false
	}
	return rest >= min(u.Took*restOfFew, CountWithin) || time.Duration(commits-c.commits)*countOfCommit >= u.Took
}

// follow sets the key ranges that passes read, so that they cover every table and index in wanted, which lists the
// columnar copies to keep up to date.
func (c *copyChanges) follow(catalog *schema.Catalog, wanted []*wantedCopy) {
	if len(wanted) == 0 { // then the loop over all tables, which may be thousands, is not needed
		c.roots, c.spans = nil, nil
		clear(c.byCopy)
		return
	}
	of, ids := map[schema.TableID][]*wantedCopy{}, map[schema.TableID]bool{}
	for _, w := range wanted {
		ids[w.layout.ID()] = true
		root := w.table.Path()[0].ID // ID of the table or index at the top of the interleaving hierarchy
		switch x := w.index; {
		case x != nil && x.Parent == nil:
			root = x.ID
		case x != nil:
			root = x.Parent.Path()[0].ID
		}
		of[root] = append(of[root], w)
	}
	var all []copyRoot // all roots, including those without copies
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

// Count makes a pass over the changes, and sets Took to the CPU time that the pass used. The caller holds StepMu.
func (u *Upkeep) Count(ctx context.Context) (err error) {
	u.Took = cpu.Spent(ctx, func() { err = u.pass(ctx) })
	return err
}

// pass counts the changes since the previous pass. The first pass after a start counts the changes since the oldest
// chunk was copied.
func (u *Upkeep) pass(ctx context.Context) error {
	began, c := u.cfg.Clock(), &u.changes
	commits := u.cfg.Transactions.Commits()
	snapshot, err := u.cfg.Transactions.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return err
	}
	if c.byCopy == nil {
		c.byCopy = map[schema.TableID]map[uint64]chunkChanges{}
		c.counted = snapshot.Timestamp()
		for _, w := range u.wanted {
			for _, chunk := range w.Chunks() {
				c.counted = min(c.counted, chunk.At)
			}
		}
	}
	// Changes before the horizon need not be counted: a chunk that is older than the horizon will be built again, and
	// all other chunks were copied after the horizon.
	c.counted = max(c.counted, u.cfg.Rows.Horizon())
	for _, span := range c.spans {
		err := u.countIn(ctx, span, snapshot.Timestamp(), began)
		// If the horizon has moved meanwhile, the changes after the new horizon are enough: older chunks are built again.
		for errors.Is(err, mvcc.ErrCollected) && c.counted < u.cfg.Rows.Horizon() {
			c.counted = u.cfg.Rows.Horizon()
			err = u.countIn(ctx, span, snapshot.Timestamp(), began)
		}
		if err != nil {
			return err
		}
	}
	c.counted, c.commits, c.ended = snapshot.Timestamp(), commits, u.cfg.Clock()
	u.publishChanges(slices.Collect(maps.Keys(c.byCopy))...)
	return nil
}

// countIn counts the changes in a span whose timestamps are above c.counted and not above the timestamp in the
// parameter to. It does not count a change that is older than the chunk of its row, since the chunk has the change
// already.
func (u *Upkeep) countIn(ctx context.Context, span table.Span, to mvcc.Timestamp, now time.Time) error {
	c := &u.changes
	cur, err := u.cfg.Rows.Changes(span.Start, span.End, c.counted, to)
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
			i, _ := slices.BinarySearchFunc(list, key, func(c columnar.Chunk, key []byte) int {
				if bytes.Compare(c.Span.End, key) <= 0 {
					return -1
				}
				return 1
			})
			if i < len(list) && bytes.Compare(list[i].Span.Start, key) <= 0 && cur.Version() > list[i].At {
				id, number := w.layout.ID(), list[i].Number
				c.set(id, number, chunkChanges{c.byCopy[id][number].rows + 1, now})
				w.due = true
			}
			break
		}
	}
	return cur.Err()
}

// publishChanges sets the numbers of changed rows that Policies shows for the copies of these tables and indexes.
func (u *Upkeep) publishChanges(of ...schema.TableID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range of {
		sum := int64(0)
		for _, c := range u.changes.byCopy[id] {
			sum += c.rows
		}
		u.changed[id] = sum
	}
}
