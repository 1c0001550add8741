package bulk

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"
)

// Source is a set of rows of one schema: a table, the result of a query, or files.
type Source interface {
	// Schema returns the schema that all batches have. The metadata of its fields is described in package arrowtype.
	Schema() *arrow.Schema
	// Segments divides the source into about n segments of about equal size. Each row is in exactly one segment. There
	// are more than n segments if there are more than n files, and fewer if there is little to read. The same n always
	// gives the same segments.
	Segments(ctx context.Context, n int) ([]Segment, error)
	Close() error
}

// Segment is a part of a source. Segments can be read independently, concurrently and more than once.
type Segment interface {
	// Open opens the segment for reading from its first row.
	Open(ctx context.Context) (Reader, error)
	// Bytes estimates the size of the segment, as a measure of the work to read it: in bytes of the file for text and
	// Avro, in rows for Parquet and Arrow, and 0 if the size is unknown.
	Bytes() int64
	// Extent returns the part of a file that the segment reads. If the rows come from a database, the field File is
	// "".
	Extent() Extent
	// String names the segment for messages.
	String() string
}

// Reader reads a segment once, from start to end. Only one goroutine may use it, except where a method says otherwise.
type Reader interface {
	// Next returns a batch of the next rows, which has at least one row, or io.EOF after the last row. The caller must
	// release the batch.
	Next() (arrow.RecordBatch, error)
	// Places returns a function that says where each row of the batch that Next returned last comes from. The function
	// may be called from any goroutine, even after the next batch was read or the reader was closed.
	Places() func(row int) Place
	// Positions returns a function that gives the position in the file at which each row of the batch that Next
	// returned last begins: a byte offset or a row number, as in Extent. If the argument is the index after the last
	// row of the batch, the function returns the position where reading continues. The function may be called from any
	// goroutine, even after the next batch was read or the reader was closed.
	Positions() func(row int) int64
	// Progress returns how much of the segment was read, in the unit of Segment.Bytes.
	Progress() int64
	Close() error
}

// Extent is a part of a file. It begins at From and ends before To. In a text file, From and To are byte offsets at
// which a row starts or the last row ends. In other files, they are row numbers, counted from 0.
type Extent struct {
	File     string
	From, To int64
}

// Without returns those parts of the extent e that are in none of the extents in the list others. It ignores extents of
// other files.
func (e Extent) Without(others []Extent) (rest []Extent) {
	others = slices.Clone(others)
	slices.SortFunc(others, func(a, b Extent) int { return cmp.Compare(a.From, b.From) })
	from := e.From
	for _, o := range others {
		if o.File != e.File || o.To <= from || o.From >= e.To {
			continue
		}
		if o.From > from {
			rest = append(rest, Extent{e.File, from, o.From})
		}
		from = o.To
	}
	if from < e.To {
		rest = append(rest, Extent{e.File, from, e.To})
	}
	return rest
}

// Place says where a row comes from.
type Place struct {
	File string `json:"file,omitempty"`
	Line int64  `json:"line,omitempty"` // the line number in a text file, from 1
	Row  int64  `json:"row,omitempty"`  // the row number in a file of another format, from 1
}

// Each reads all rows of a source with n concurrent readers. Every reader runs in a goroutine, which calls visit with
// the number of the reader, from 0 to n-1, and with a batch. The batch is released when visit returns. After the first
// error, Each stops and returns that error.
func Each(ctx context.Context, source Source, n int, visit func(ctx context.Context, reader int, batch arrow.RecordBatch) error) error {
	segments, err := source.Segments(ctx, n)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan Segment, len(segments))
	for _, s := range segments {
		next <- s
	}
	close(next)
	for reader := range min(n, len(segments)) {
		group.Go(func() error {
			for s := range next {
				if err := EachOf(ctx, s, func(batch arrow.RecordBatch, _ Reader) error { return visit(ctx, reader, batch) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// EachOf reads all rows of one segment and calls visit with each batch. It releases the batch when visit returns.
func EachOf(ctx context.Context, s Segment, visit func(batch arrow.RecordBatch, from Reader) error) error {
	r, err := s.Open(ctx)
	if err != nil {
		return err
	}
	for {
		batch, err := r.Next()
		if err == io.EOF {
			return r.Close()
		}
		if err == nil {
			err = visit(batch, r)
			batch.Release()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return errors.Join(err, r.Close())
		}
	}
}
