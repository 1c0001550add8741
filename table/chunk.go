package table

import "context"

// Long work on a table goes on in chunks, each in a transaction of its own. These limits keep a chunk small enough not to
// hold up others, and its buffered writes far below what a commit may hold (MaxCommitBytes), yet large enough to make its sync cheap.
const (
	// ChunkRows and ChunkBytes bound what a chunk reads.
	ChunkRows  = 1000
	ChunkBytes = 4 << 20
	// ChunkWriteBytes bounds what it writes: keys and values, those of index entries included.
	ChunkWriteBytes = 16 << 20
)

// Limits bound how many rows, and how many bytes of keys and values, are taken at a time. The first row is taken even if it is larger.
type Limits struct{ Rows, Bytes int64 }

// FullChunk are the limits of most chunks.
var FullChunk = Limits{Rows: ChunkRows, Bytes: ChunkBytes}

// Chunk is a run of rows of a table, or of entries of an index, in the order of their keys: those behind the key After, up to and
// including the key Last.
type Chunk struct {
	After []byte // nil: from the first row on
	Last  []byte // After, if there are no more rows
	Rows  int64  // that there is work for
	Bytes int64  // of the keys and values of all rows in the run
	More  bool   // there may be rows behind Last
}

// FindChunk finds the next chunk of the rows or entries of a layout.
func FindChunk(ctx context.Context, view View, l *Layout, after []byte, limits Limits) (Chunk, error) {
	rows := Read{Projection: &Projection{Layout: l}, Spans: []Span{l.rest(after)}, Partial: true, AllowPending: true}.Open(ctx, view)
	defer rows.Close()
	return limits.take(rows, after, func() (bool, error) { return true, nil })
}

// take reads rows until it has a chunk: at most limits.Rows of those for which wanted is true, and at most ChunkRows and
// limits.Bytes of all.
func (limits Limits) take(rows *Rows, after []byte, wanted func() (bool, error)) (Chunk, error) {
	c := Chunk{After: after, Last: after}
	var last []byte
	for seen := int64(0); ; seen++ {
		if c.Rows == limits.Rows || seen == ChunkRows {
			c.More = true
			return c, nil
		}
		ok, err := rows.Next()
		if !ok || err != nil {
			return c, err
		}
		size := int64(rows.StoredSize())
		if seen > 0 && c.Bytes+size > limits.Bytes {
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

// Span holds the keys of the chunk, in the space of its layout.
func (c *Chunk) Span(l *Layout) Span {
	span := l.rest(c.After)
	span.End = afterKey(c.Last)
	return span
}

// rest is the part of the layout's space behind the key after, all of it if that is nil.
func (l *Layout) rest(after []byte) Span {
	span, _ := l.Space()
	if after != nil {
		span.Start = afterKey(after)
	}
	return span
}
