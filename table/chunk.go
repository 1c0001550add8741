package table

import "context"

// Long work on a table proceeds in chunks, each in a transaction of its own. A chunk must be small enough not to hold
// up other transactions. Its buffered writes must stay far below the limit of a commit (MaxCommitBytes). Yet it must be
// large enough that its sync to disk costs little in proportion.
const (
	// ChunkRows and ChunkBytes limit what a chunk reads.
	ChunkRows  = 1000
	ChunkBytes = 4 << 20
	// ChunkWriteBytes limits what a chunk writes: keys and values, index entries included.
	ChunkWriteBytes = 16 << 20
)

// Limits bounds the rows of a chunk, and the bytes of their keys and values. A chunk takes its first row even if that
// is larger.
type Limits struct{ Rows, Bytes int64 }

// FullChunk holds the limits of most chunks.
var FullChunk = Limits{Rows: ChunkRows, Bytes: ChunkBytes}

// Chunk is a run of rows of a table, or of entries of an index, in key order: those after the key After, up to and
// including the key Last.
type Chunk struct {
	After []byte // nil begins at the first row
	Last  []byte // equals After if there are no more rows
	Rows  int64  // the rows that need work
	Bytes int64  // of the keys and values of all rows in the run
	More  bool   // there may be rows after Last
}

// FindChunk finds the next chunk of the rows or entries of a layout.
func FindChunk(ctx context.Context, view View, l *Layout, after []byte, limits Limits) (Chunk, error) {
	rows := Read{Projection: &Projection{Layout: l}, Spans: []Span{l.rest(after)}, Partial: true, AllowPending: true}.Open(ctx, view)
	defer rows.Close()
	return limits.readChunk(rows, after, func() (bool, error) { return true, nil })
}

// readChunk reads rows until the chunk is full. A chunk has at most limits.Rows rows for which wanted returns true, and at
// most ChunkRows rows with limits.Bytes bytes in all.
func (limits Limits) readChunk(rows *Rows, after []byte, wanted func() (bool, error)) (Chunk, error) {
	c := Chunk{After: after, Last: after}
	var last []byte
	for scanned := int64(0); ; scanned++ {
		if c.Rows == limits.Rows || scanned == ChunkRows {
			c.More = true
			return c, nil
		}
		ok, err := rows.Next()
		if !ok || err != nil {
			return c, err
		}
		size := int64(rows.StoredSize())
		if scanned > 0 && c.Bytes+size > limits.Bytes {
			c.More = true
			return c, nil
		}
		ok, err = wanted()
		if err != nil {
			return c, err
		}
		if ok {
			c.Rows++
		}
		c.Bytes += size
		last = append(last[:0], rows.row.key...)
		c.Last = last
	}
}

// Span returns the range of the chunk's keys in the space of its layout.
func (c *Chunk) Span(l *Layout) Span {
	span := l.rest(c.After)
	span.End = afterKey(c.Last)
	return span
}

// rest returns the part of the layout's space after the key after, or all of the space if after is nil.
func (l *Layout) rest(after []byte) Span {
	span, _ := l.Space()
	if after != nil {
		span.Start = afterKey(after)
	}
	return span
}
