package columnar

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// A chunk has at most MaxRows rows. Its Arrow buffers take at most MaxBytes bytes, unless it is a single larger row.
const (
	MaxRows  = 32 << 10
	MaxBytes = 8 << 20
)

// Write writes one chunk of the rows at src.At and makes it part of the copy. The chunk begins at the start of span,
// or at the start of the chunk that contains it. The chunk ends at the end of span, or earlier if there are more rows
// than a chunk may have; then the caller continues at the end of the chunk. The new chunk replaces the chunks in its
// range. Write reads the rows from the copy itself, merged with later changes, and from the table where the copy has
// no chunk. If there is not enough space on disk, the error is kv.ErrRefused, and nothing has changed. If the copy was
// dropped in the meantime, the error is ErrDropped.
func (c *Copy) Write(ctx context.Context, src Source, span table.Span) (Chunk, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.dropped {
		return Chunk{}, ErrDropped
	}
	old := c.dir.covering(span.Start, span.End)
	if len(old) > 0 && bytes.Compare(old[0].start, span.Start) < 0 {
		span.Start = old[0].start
	}
	w := writer{copy: c, src: src, batch: batchOf(src.Columns), memory: src.Memory.Beside(memory.Stream)}
	defer w.memory.Close()
	end, err := w.fill(ctx, span)
	if err != nil {
		return Chunk{}, err
	}
	return w.commit(table.Span{Start: span.Start, End: end})
}

// writer writes one chunk.
type writer struct {
	copy    *Copy
	src     Source
	batch   *columnar.Batch
	rows    int
	bytes   int64
	memory  *memory.Account
	charged int64
}

// fill reads rows of span into the batch until the chunk is full, and returns the end of the chunk.
func (w *writer) fill(ctx context.Context, span table.Span) (end []byte, err error) {
	r := w.copy.Open(ctx, w.src.View, Read{Projection: w.src.Projection, Spans: []table.Span{span}, At: w.src.At, Memory: w.src.Memory})
	defer r.Close()
	for {
		n, err := r.Next()
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return span.End, nil
		}
		added, err := w.appendRows(ctx, r, n)
		if err != nil {
			return nil, err
		}
		if added < n {
			return w.endBehind(w.rows - 1)
		}
	}
}

// stepRows is the number of rows that appendRows adds at a time. If the chunk would become too large, appendRows
// halves the number.
const stepRows = 256

// appendRows adds rows to the chunk until it is full. It takes them from the n rows that the last call of r.Next has
// read. It returns the number of rows added.
func (w *writer) appendRows(ctx context.Context, r *Reader, n int) (added int, err error) {
	for step := stepRows; added < n; {
		to := min(added+step, n, added+w.maxRows()-w.rows)
		size := int64(0)
		for i := range w.src.Columns {
			size += sizeOf(r.Array(i).Data(), added, to)
		}
		switch {
		case to == added:
			return added, nil
		case w.bytes+size > w.copy.maxBytes && to > added+1:
			step = (to - added) / 2
			continue
		case w.bytes+size > w.copy.maxBytes && w.rows > 0:
			return added, nil
		}
		for i := range w.src.Columns {
			if err := w.batch.AppendArray(i, r.Array(i), added, to); err != nil {
				return added, err
			}
		}
		w.rows += to - added
		w.bytes += size
		added = to
		if err := w.charge(ctx, w.batch.Size()); err != nil {
			return added, err
		}
	}
	return added, nil
}

func (w *writer) maxRows() int {
	if w.src.Rows > 0 {
		return min(w.src.Rows, w.copy.maxRows)
	}
	return w.copy.maxRows
}

func (w *writer) charge(ctx context.Context, size int64) error {
	if size <= w.charged {
		return nil
	}
	err := w.memory.Grow(ctx, size-w.charged)
	if err == nil {
		w.charged = size
	}
	return err
}

// endBehind returns the bound just after the key of row i in the batch.
func (w *writer) endBehind(i int) ([]byte, error) {
	k := newKeys(w.src.Layout)
	for part := range k.columns {
		place := w.placeOf(part)
		k.columns[part] = w.batch.Array(place)
	}
	key, err := k.at(i)
	if err != nil {
		return nil, err
	}
	return table.Ranges([]table.Span{{Start: key}})[0].End, nil
}

// placeOf returns the index of the column that holds the given part of the key.
func (w *writer) placeOf(part int) int {
	for i, c := range w.src.Columns {
		if c == w.src.Key[part].Column {
			return i
		}
	}
	panic("a copy without a column of the key")
}

// commit stores the chunk and publishes it.
func (w *writer) commit(span table.Span) (Chunk, error) {
	c := w.copy
	b := c.rows.KV().NewBatch()
	defer b.Close()
	made := &chunk{blobs: &blobs{number: c.last.Add(1), rows: int64(w.rows)}, at: w.src.At, start: span.Start, end: span.End}
	if err := w.put(b, made); err != nil {
		return Chunk{}, err
	}
	with, dead, rest := []*chunk{made}, []*chunk(nil), []*chunk(nil)
	for _, old := range c.dir.chunks {
		switch {
		case bytes.Compare(old.end, span.Start) <= 0 || bytes.Compare(span.End, old.start) <= 0:
			rest = append(rest, old)
		case bytes.Compare(old.end, span.End) <= 0:
			dead = append(dead, old)
		default: // the old chunk extends beyond the end of the new one, and keeps that part of its range
			narrow := *old
			narrow.start, narrow.startCut = span.End, true
			with = append(with, &narrow)
		}
	}
	if err := c.replace(b, with, dead, rest); err != nil {
		return Chunk{}, fmt.Errorf("write columnar copy: %w", err)
	}
	if err := c.sweep(); err != nil && !errors.Is(err, kv.ErrRefused) {
		return Chunk{}, err
	}
	return made.describe(), nil
}

// put encodes the rows that the writer has collected, column by column. It adds the encoded columns, the blobs, to
// batch b, and appends the columns to the list of columns of a chunk. The parameter to is this chunk.
func (w *writer) put(b kv.Batch, to *chunk) error {
	if w.rows == 0 {
		return nil
	}
	var e encoder
	var blob []byte
	for i, col := range w.src.Columns {
		a := w.batch.Array(i)
		var err error
		if blob, err = e.appendBlob(blob[:0], a.Data()); err != nil {
			return fmt.Errorf("code column %s: %w", col.Name, err)
		}
		if err := b.Put(columnKey(w.copy.rows.Space(), w.copy.id, to.number, col.ID), blob); err != nil {
			return err
		}
		to.columns = append(to.columns, column{
			ID: col.ID, definition: col.ComputedFrom(), stored: columnar.IsStored(a, col.Type), Size: sizeOf(a.Data(), 0, w.rows), Bytes: int64(len(blob)),
		})
	}
	return nil
}

// sizeOf returns how many bytes the values [from, to) of an array take.
func sizeOf(a arrow.ArrayData, from, to int) int64 {
	n, offset := int64(to-from), a.Offset()
	size := n / 8
	switch dt := a.DataType().(type) {
	case arrow.BinaryDataType:
		first, last := ends(a, from, to)
		return size + 4*n + int64(last-first)
	case *arrow.ListType:
		first, last := ends(a, from, to)
		return size + 4*n + sizeOf(a.Children()[0], first, last)
	case *arrow.StructType:
		for _, child := range a.Children() {
			size += sizeOf(child, offset+from, offset+to)
		}
		return size
	case arrow.FixedWidthDataType:
		return size + n*int64(dt.BitWidth())/8
	}
	return size
}

// ends returns where the values [from, to) of an array begin and end: in the array's buffer of bytes or, for lists,
// among the elements.
func ends(a arrow.ArrayData, from, to int) (first, last int) {
	if from == to {
		return 0, 0
	}
	offsets := arrow.Int32Traits.CastFromBytes(a.Buffers()[1].Bytes())
	return int(offsets[a.Offset()+from]), int(offsets[a.Offset()+to])
}

// Renewal is the result of Renew.
type Renewal struct {
	Renewed int     // number of chunks with a new timestamp
	Changed []Chunk // chunks in which rows have changed, and which must be written anew
}

// Renew looks for changes in the chunks whose timestamps are below the parameter before. If nothing has changed in a
// chunk, Renew gives the chunk the timestamp src.At, which must not be below the parameter before. A chunk also counts
// as changed if versions that Renew would need to see may have been collected.
func (c *Copy) Renew(ctx context.Context, src Source, before mvcc.Timestamp) (Renewal, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	var done Renewal
	if c.dropped {
		return done, ErrDropped
	}
	var rest, with []*chunk
	for _, ch := range c.dir.chunks {
		if ch.at >= before {
			rest = append(rest, ch)
			continue
		}
		changed, err := c.changed(ctx, src, ch, 1)
		if err != nil && !errors.Is(err, mvcc.ErrCollected) {
			return done, err
		}
		if changed > 0 || err != nil {
			rest = append(rest, ch)
			done.Changed = append(done.Changed, ch.describe())
			continue
		}
		renewed := *ch
		renewed.at = src.At
		with = append(with, &renewed)
	}
	if len(with) == 0 {
		return done, nil
	}
	b := c.rows.KV().NewBatch()
	defer b.Close()
	if err := c.replace(b, with, nil, rest); err != nil {
		return done, fmt.Errorf("renew columnar copy: %w", err)
	}
	done.Renewed = len(with)
	return done, c.sweep()
}

// Changed returns how many rows in the range of a chunk have changed after the chunk's timestamp and up to src.At. It
// stops counting at limit. The error is mvcc.ErrCollected if some of these changes may have been collected.
func (c *Copy) Changed(ctx context.Context, src Source, of Chunk, limit int) (int, error) {
	return c.changed(ctx, src, &chunk{at: of.At, start: of.Span.Start, end: of.Span.End}, limit)
}

func (c *Copy) changed(ctx context.Context, src Source, ch *chunk, limit int) (n int, err error) {
	cur, err := c.rows.Changes(ch.start, ch.end, ch.at, src.At)
	if err != nil {
		return 0, err
	}
	defer cur.Close()
	d := table.NewDecoder(src.Projection)
	for n < limit && cur.Next() {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		own, skip, err := d.Find(cur.Key())
		switch {
		case err != nil:
			return n, err
		case own:
			n++
		default:
			cur.SkipTo(skip)
		}
	}
	return n, cur.Err()
}
