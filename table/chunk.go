package table

import "context"

// Long work on a table proceeds in chunks, each in a transaction of its own. A chunk must be small, so that it does
// not delay other transactions for long, and so that its buffered writes stay far below the limit of a commit
// (MaxCommitBytes). It must also be large, so that its sync to disk costs little in proportion.
const (
	// ChunkRows and ChunkBytes limit the rows, and the bytes of keys and values, that a chunk reads.
	ChunkRows  = 1000
	ChunkBytes = 4 << 20
	// ChunkWriteBytes limits the bytes that a chunk writes: keys and values, index entries included.
	ChunkWriteBytes = 16 << 20
)

// Limits bounds the rows of a chunk, and the bytes of their keys and values. A chunk takes its first row even if this
// row alone exceeds Bytes.
type Limits struct{ Rows, Bytes int64 }

// FullChunk holds the limits of a chunk of normal size.
var FullChunk = Limits{Rows: ChunkRows, Bytes: ChunkBytes}

// Chunk is a range of consecutive rows of a table, or of entries of an index, in key order. It begins after the key
// After and ends with the key Last.
type Chunk struct {
	After []byte // nil: the chunk begins at the first row
	Last  []byte // equals After if there are no more rows
	Rows  int64  // how many rows of the chunk the caller must handle: all, or only the expired ones
	Bytes int64  // size of the keys and values of all rows in the chunk
	More  bool   // whether there may be rows after Last
}

// FindChunk returns the next chunk of rows or entries of a layout. The parameter after is the last key of the previous
// chunk; nil for the first chunk.
func FindChunk(ctx context.Context, view View, l *Layout, after []byte, limits Limits) (Chunk, error) {
	rows := Read{Projection: &Projection{Layout: l}, Spans: []Span{l.rest(after)}, Partial: true, AllowPending: true}.Open(ctx, view)
	defer rows.Close()
	return limits.readChunk(rows, after, func() (bool, error) { return true, nil })
}

// readChunk reads rows until the chunk is full. It calls the function wanted for each row. The chunk has at most
// limits.Rows rows for which this function returns true. In all, the chunk has at most ChunkRows rows and about
// limits.Bytes bytes.
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

// Span returns the range of keys that the chunk covers. l is the layout of the chunk's rows.
func (c *Chunk) Span(l *Layout) Span {
	span := l.rest(c.After)
	span.End = afterKey(c.Last)
	return span
}

// rest returns the range of those keys of the layout that sort after the key in the parameter after. If the parameter
// is nil, rest returns the range of all keys of the layout.
func (l *Layout) rest(after []byte) Span {
	span, _ := l.Space()
	if after != nil {
		span.Start = afterKey(after)
	}
	return span
}
