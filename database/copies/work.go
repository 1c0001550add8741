package copies

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/background"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A chunk is rewritten when 1/shareChanged of its rows have changed, and at least fewChanged rows. It is also rewritten
// when 1/shareSettled of its rows have changed and then no row changed for settledAfter. So, while rows change, the
// upkeep writes about shareChanged rows for each changed row. When a read uses a chunk, at most about 1/shareChanged of
// the chunk's rows have changed, or fewChanged rows if that is more.
const (
	shareChanged = 8
	fewChanged   = 1 << 10
	shareSettled = 128
	settledAfter = 10 * time.Second
)

// A chunk gets a new timestamp when it is older than 1/shareRenewed of the version retention period. The upkeep looks
// for such chunks at least twice in that time.
const shareRenewed = 3

// Two neighbouring chunks are merged if they have together at most 1/shareMerged of the rows and bytes that one chunk
// may have, so that the next inserts do not divide the merged chunk again.
const shareMerged = 2

// copyWork is one piece of work of the upkeep.
type copyWork struct {
	*wantedCopy
	kind      copyKind
	span      table.Span // the range of keys for which the work writes chunks
	continued bool       // a chunk for the keys directly before span was written already, by the same piece of work
}

// copyKind is the reason for a copyWork. The constants are in order of urgency, the most urgent first.
type copyKind uint8

const (
	renew   copyKind = iota // a chunk is old, and garbage collection may soon remove versions that it needs
	build                   // no chunk can serve reads of the span, or the chunk lacks columns
	rewrite                 // many rows of the chunk have changed, or it has columns that were dropped
	merge                   // neighbouring chunks are small
)

// lookEvery is how long the upkeep works on the queue before it looks again for more urgent work.
const lookEvery = 10 * time.Second

// lookForWork fills the queue with all work that is due. It does nothing if the queue has work and was filled less than
// lookEvery ago.
func (u *Upkeep) lookForWork() {
	now := u.cfg.Clock()
	if len(u.queue) > 0 && now.Sub(u.looked) < lookEvery {
		return
	}
	u.requeue()
	retention := u.cfg.Transactions.Retention()
	anew := retention != u.retention
	u.looked, u.retention = now, retention
	for _, w := range u.wanted {
		if anew || w.due || !now.Before(w.look) {
			u.queue = append(u.queue, u.workOn(w, now)...)
		}
	}
	slices.SortStableFunc(u.queue, func(a, b copyWork) int { return int(a.kind) - int(b.kind) })
}

// requeue empties the queue, and marks its copies as due, so that the next lookForWork finds the work again.
func (u *Upkeep) requeue() {
	for _, w := range u.queue {
		w.due = true
	}
	u.queue = nil
}

// workOn returns the work that is due on a copy, and sets w.look, the time of the next look at the copy.
func (u *Upkeep) workOn(w *wantedCopy, now time.Time) (list []copyWork) {
	retention := u.cfg.Transactions.Retention()
	old := u.cfg.Transactions.Now() - mvcc.Timestamp((retention / shareRenewed).Microseconds())
	w.due, w.look = false, now.Add(retention/shareRenewed/2)
	add := func(kind copyKind, span table.Span) {
		list = append(list, copyWork{wantedCopy: w, kind: kind, span: span})
	}
	p, err := w.columns()
	if err != nil {
		return nil // a request that reads the table reports the error
	}
	for _, span := range w.Estimate(columnar.Read{Projection: p, Spans: []table.Span{w.space()}, At: u.cfg.Transactions.Now()}).Rest {
		add(build, span)
	}
	chunks, renewed := w.Chunks(), false
	for i, c := range chunks {
		changes := u.changes.byCopy[w.layout.ID()][c.Number]
		switch settled := changes.since.Add(settledAfter); {
		case c.At < old:
			if !renewed {
				add(renew, w.space())
			}
			renewed = true
		case changes.rows >= rewriteThreshold(c), w.hasDropped(c):
			add(rewrite, c.Span)
		case changes.rows > c.Rows/shareSettled && !now.Before(settled):
			add(rewrite, c.Span)
		case changes.rows > 0 && settled.Before(w.look) && now.Before(settled):
			w.look = settled
		case changes.rows == 0 && i > 0 && mergeable(chunks[i-1], c):
			add(merge, table.Span{Start: chunks[i-1].Span.Start, End: c.Span.End})
		}
	}
	return list
}

// rewriteThreshold returns how many rows of a chunk must have changed so that the chunk is rewritten even while further
// rows change.
func rewriteThreshold(c columnar.Chunk) int64 { return max(c.Rows/shareChanged, fewChanged) }

// hasDropped reports whether a chunk has a column that the table no longer has.
func (w *wantedCopy) hasDropped(c columnar.Chunk) bool {
	return slices.ContainsFunc(c.Columns, func(id schema.ColumnID) bool {
		return !slices.ContainsFunc(w.projection.Columns, func(col *schema.Column) bool { return col.ID == id })
	})
}

func mergeable(a, b columnar.Chunk) bool {
	return bytes.Equal(a.Span.End, b.Span.Start) && a.Rows+b.Rows <= columnar.MaxRows/shareMerged && a.Size+b.Size <= columnar.MaxBytes/shareMerged
}

// work does the first work in the queue, then pauses. It holds Config.Token until the pause ends, so that no other
// database of the store writes a chunk.
func (u *Upkeep) work(ctx context.Context) error {
	if err := u.cfg.Token.Acquire(ctx); err != nil {
		return err
	}
	defer u.cfg.Token.Release()
	w := u.queue[0]
	u.queue = u.queue[1:]
	var err error
	began := u.cfg.Clock()
	u.cfg.Task.Do(ctx, func(ctx context.Context) { err = u.do(ctx, w) })
	switch {
	case errors.Is(err, errCatalogChanged):
		w.due = true
		return nil // the next step follows the newer catalog
	// In a build, the error does not mean that the copy is damaged, since a build reads only rows of the table.
	case usererror.CodeOf(err) == codes.DataLoss && w.kind != build:
		u.cfg.Log.Error("a columnar copy is damaged and will be made anew", slog.String("of", w.layout.Name()), slog.Any("error", err))
		w.due = true
		err = errors.Join(err, u.cfg.Copies.Drop(w.layout.ID()))
		u.catalog = nil
		return err
	case err != nil:
		w.due = true
		return err
	}
	rest := u.cfg.Clock().Sub(began)
	commits := u.cfg.Transactions.Commits()
	if commits != u.commits && w.kind != build {
		rest *= restBesideCommits
	}
	u.commits = commits
	background.Sleep(ctx, rest)
	return nil
}

// errCatalogChanged says that there is a newer catalog than the one that the upkeep has looked at.
var errCatalogChanged = errors.New("the catalog has changed")

// do does one piece of work. It reads the rows from a new strong snapshot, and the columns from the catalog that the
// upkeep has looked at last.
func (u *Upkeep) do(ctx context.Context, w copyWork) error {
	p, err := w.columns()
	if err != nil {
		return err
	}
	snapshot, err := u.cfg.Transactions.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return err
	}
	src := columnar.Source{Projection: p, View: snapshot, At: snapshot.Timestamp()}
	if u.cfg.Memory != nil {
		src.Memory = u.cfg.Memory.Open(memory.Spilling)
	}
	defer src.Memory.Close()
	if u.cfg.Catalog() != u.catalog {
		return errCatalogChanged
	}
	switch {
	case w.kind == renew:
		period := mvcc.Timestamp((u.cfg.Transactions.Retention() / shareRenewed).Microseconds())
		done, err := w.Renew(ctx, src, src.At-period/2)
		for _, c := range done.Changed {
			u.queue = append(u.queue, copyWork{wantedCopy: w.wantedCopy, kind: rewrite, span: c.Span})
		}
		return err
	case w.kind == rewrite && !w.continued:
		if done, err := u.recount(ctx, w, src); done || err != nil {
			return err
		}
	}
	src.Rows = u.splitRows(w)
	made, err := w.Write(ctx, src, w.span)
	if err != nil {
		return err
	}
	if bytes.Compare(made.Span.End, w.span.End) < 0 { // the chunk was full before the end of the span
		w.span.Start, w.continued = made.Span.End, true
		u.queue = append(u.queue, w)
	}
	if w.kind == merge {
		w.due = true // the merged chunk may be small enough to merge again
	}
	chunks := w.Chunks()
	// The counts of replaced chunks are not needed any more.
	maps.DeleteFunc(u.changes.byCopy[w.layout.ID()], func(number uint64, _ chunkChanges) bool {
		return !slices.ContainsFunc(chunks, func(c columnar.Chunk) bool { return c.Number == number })
	})
	u.publishChanges(w.layout.ID())
	return nil
}

// splitRows decides whether a chunk that has grown too large is divided into two. If so, it returns the number of rows
// of the first of the two, about half, so that both can grow. If not, it returns 0. The last chunk is never divided
// into halves: if the table grows in the order of its keys, all new rows go to the last chunk, so a full chunk followed
// by a small one is better than two half-full chunks.
func (u *Upkeep) splitRows(w copyWork) int {
	if w.kind != rewrite || bytes.Equal(w.span.End, w.space().End) {
		return 0
	}
	for _, c := range w.Chunks() {
		if !bytes.Equal(c.Span.Start, w.span.Start) {
			continue
		}
		if rows := c.Rows + u.changes.byCopy[w.layout.ID()][c.Number].rows; rows > columnar.MaxRows || c.Size/max(c.Rows, 1)*rows > columnar.MaxBytes {
			return int(rows/2) + 1
		}
	}
	return 0
}

// recount counts the changed rows of a chunk exactly, up to the number that a rewrite needs, since copyChanges may have
// counted a row several times. If they are too few for a rewrite, it corrects the count and returns true.
func (u *Upkeep) recount(ctx context.Context, w copyWork, src columnar.Source) (bool, error) {
	id := w.layout.ID()
	for _, c := range w.Chunks() {
		threshold, counted := rewriteThreshold(c), u.changes.byCopy[id][c.Number]
		if !bytes.Equal(c.Span.Start, w.span.Start) || counted.rows < threshold {
			continue
		}
		n, err := w.Changed(ctx, src, c, int(threshold))
		if errors.Is(err, mvcc.ErrCollected) {
			return false, nil
		}
		if err != nil || int64(n) >= threshold {
			return false, err
		}
		u.changes.set(id, c.Number, chunkChanges{int64(n), counted.since})
		w.due = true // the corrected count may be enough for a rewrite once no more rows change
		u.publishChanges(id)
		return true, nil
	}
	return false, nil
}
