package columnar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// Verify reads a copy and calls report for each fault: a blob that cannot be read, or a chunk whose rows differ from
// those of the table or index at the chunk's timestamp. Nothing may write to the database during the call. p is the
// projection to all columns, or nil if the table or index is unknown. The function at returns a view at a timestamp.
// Verify does not compare the rows of a chunk if the chunk's timestamp can no longer be read, or if the chunk has
// other columns than the table. It returns an error if it could not verify everything.
func (c *Copy) Verify(ctx context.Context, p *table.Projection, at func(mvcc.Timestamp) table.View, report func(error)) error {
	dir := c.acquire()
	defer c.release(dir)
	var before *chunk
	for _, ch := range dir.chunks {
		if before != nil && bytes.Compare(before.end, ch.start) > 0 || bytes.Compare(ch.start, ch.end) >= 0 {
			report(fmt.Errorf("the range of chunk %d is not behind that of the chunk before", ch.number))
		}
		before = ch
		if err := c.verifyBlobs(ch, report); err != nil {
			return err
		}
		if p == nil || ch.at < c.rows.Horizon() {
			continue
		}
		read := Read{Projection: p, Spans: []table.Span{{Start: ch.start, End: ch.end}}, At: ch.at}
		if err := c.verifyRows(ctx, at(ch.at), read); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			report(fmt.Errorf("chunk %d: %w", ch.number, err))
		}
	}
	return nil
}

// verifyBlobs reads the blobs of a chunk.
func (c *Copy) verifyBlobs(ch *chunk, report func(error)) error {
	for _, col := range ch.columns {
		key := columnKey(c.rows.Space(), c.id, ch.number, col.ID)
		it, err := c.rows.KV().NewIter(key, append(bytes.Clone(key), 0))
		if err != nil {
			return err
		}
		blob, err := []byte(nil), errors.New("it is not there")
		if it.First() {
			blob, err = it.Value()
		}
		if err = errors.Join(it.Error(), err); err == nil {
			err = checkBlob(blob)
		}
		if err != nil {
			report(fmt.Errorf("column %d of chunk %d: %w", col.ID, ch.number, err))
		}
		if err := it.Close(); err != nil {
			return err
		}
	}
	return nil
}

// verifyRows reads the same rows from the copy and from the table, and returns an error at the first difference.
func (c *Copy) verifyRows(ctx context.Context, view table.View, read Read) error {
	got, want := side{Reader: c.Open(ctx, view, read)}, side{Reader: (*Copy)(nil).Open(ctx, view, read)}
	defer got.Close()
	defer want.Close()
	var a, b []byte
	for row := 0; ; row++ {
		moreGot, err := got.next()
		if err != nil {
			return err
		}
		moreWant, err := want.next()
		if err != nil {
			return err
		}
		if moreGot != moreWant {
			return fmt.Errorf("it does not have as many rows as the table: %d are equal", row)
		}
		if !moreGot {
			return nil
		}
		for i, col := range read.Columns {
			var wrong [2]error
			a, wrong[0] = got.append(a[:0], i, col)
			b, wrong[1] = want.append(b[:0], i, col)
			if err := errors.Join(wrong[:]...); err != nil {
				return err
			}
			if !bytes.Equal(a, b) {
				return fmt.Errorf("column %s of row %d is not as in the table", col.Name, row)
			}
		}
	}
}

// side is one of the two Readers whose rows verifyRows compares. It moves from row to row.
type side struct {
	*Reader
	row, rows int
}

func (s *side) next() (more bool, err error) {
	if s.row++; s.row >= s.rows {
		s.row = 0
		s.rows, err = s.Next()
	}
	return s.rows > 0, err
}

// append appends the value of column i in the current row, in the form in which rows store it.
func (s *side) append(dst []byte, i int, c *schema.Column) ([]byte, error) {
	var a arrow.Array = s.Array(i)
	v, err := columnar.StoredValueAt(a, s.row, c.Type)
	if err != nil || v.IsNull() {
		return append(dst, 0), err
	}
	return value.AppendRow(append(dst, 1), v, c.Type), nil
}

// Orphans returns a message for each blob to which no chunk's record refers.
func (c *Copies) Orphans(ctx context.Context) (list []string, err error) {
	named := map[schema.TableID]map[uint64][]schema.ColumnID{}
	for _, tableCopy := range c.All() {
		named[tableCopy.id] = tableCopy.named()
	}
	prefix := spacePrefix(columnName, c.rows.Space())
	it, err := c.rows.KV().NewIter(within(prefix))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for ok := it.First(); ok && ctx.Err() == nil; ok = it.Next() {
		id, number, column, err := parseColumnKey(it.Key(), len(prefix))
		if err != nil {
			list = append(list, err.Error())
		} else if !slices.Contains(named[id][number], column) {
			list = append(list, fmt.Sprintf("column %d of chunk %d of table or index %d belongs to no chunk", column, number, id))
		}
	}
	return list, errors.Join(it.Error(), ctx.Err())
}

// named returns, by chunk number, the columns of the chunks in the newest directory and of dead chunks.
func (c *Copy) named() map[uint64][]schema.ColumnID {
	c.mu.Lock()
	defer c.mu.Unlock()
	columns := map[uint64][]schema.ColumnID{}
	add := func(b *blobs) {
		for _, col := range b.columns {
			columns[b.number] = append(columns[b.number], col.ID)
		}
	}
	for _, ch := range c.dir.chunks {
		add(ch.blobs)
	}
	for _, dead := range c.dead {
		add(dead)
	}
	return columns
}
