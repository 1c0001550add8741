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
	// Schema returns the schema of all batches. Its fields have the metadata that package arrowtype describes.
	Schema() *arrow.Schema
	// Segments divides the source into about n segments of about equal size. Each row is in exactly one of them. There are more segments if there
	// are more files, and fewer if there is little to read. The same source is always divided in the same way.
	Segments(ctx context.Context, n int) ([]Segment, error)
	Close() error
}

// Segment is a part of a source. Segments can be read independently, concurrently and more than once.
type Segment interface {
	// Open opens the segment for reading from its first row.
	Open(ctx context.Context) (Reader, error)
	// Bytes estimates the size of the segment in the source's own format; 0 if it is not known.
	Bytes() int64
	// Extent returns the part of a file that the segment reads. For rows of a database, its File is "".
	Extent() Extent
	// String names the segment for messages.
	String() string
}

// Reader reads a segment once, from start to end. Only one goroutine may use it, except where a method says otherwise.
type Reader interface {
	// Next returns the next rows, at least one, or io.EOF after the last. The caller releases the batch.
	Next() (arrow.RecordBatch, error)
	// Places returns a function that says where the rows of the last batch come from. Any goroutine may call the function, also after the next
	// batch was read or the reader was closed.
	Places() func(row int) Place
	// Positions returns a function that says where the rows of the last batch begin in their file, in the unit of Extent. For the index after the
	// last row, it returns the position where reading continues. Any goroutine may call the function, as with Places.
	Positions() func(row int) int64
	// Progress returns how much was read, in the unit of Segment.Bytes.
	Progress() int64
	Close() error
}

// Extent is a part of a file. From and To are byte offsets of row starts in a text file, and row numbers from 0 in other files.
type Extent struct {
	File     string
	From, To int64
}

// Without returns the parts of the extent that are not in others. Extents of other files are ignored.
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
	Line int64  `json:"line,omitempty"` // in a text file, from 1
	Row  int64  `json:"row,omitempty"`  // in another file, from 1
}

// Each reads all rows of a source with n concurrent readers. It calls visit from n goroutines, each with the number of its reader, 0 to n-1. The
// batch is released when visit returns. Each stops at the first error and returns it.
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

// EachOf reads all rows of one segment. The batch is released when visit returns.
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
