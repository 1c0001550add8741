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
	// Schema has the columns of all batches. Its fields have the metadata that package arrowtype describes.
	Schema() *arrow.Schema
	// Segments cuts the source into about n segments of about equal size: each row is in one of them. There are more where there are more files, and
	// fewer where there is little to read. The same source is always cut in the same way.
	Segments(ctx context.Context, n int) ([]Segment, error)
	Close() error
}

// Segment is a part of a source. Segments are read independently of each other, also at the same time and more than once.
type Segment interface {
	// Open begins to read at the first row.
	Open(ctx context.Context) (Reader, error)
	// Bytes is about how much there is to read, in the source's own form; 0 if that is not known.
	Bytes() int64
	// Extent is the part of a file that the segment reads. That of a database's rows has no file.
	Extent() Extent
	// String names the segment for messages.
	String() string
}

// Reader reads a segment once, from begin to end. It is used by one goroutine.
type Reader interface {
	// Next returns the next rows, at least one, or io.EOF behind the last. The caller releases the batch.
	Next() (arrow.RecordBatch, error)
	// Places tells where the rows of the batch that Next returned last come from. It may be called from any goroutine, also when the reader went on or is closed.
	Places() func(row int) Place
	// Positions tells where the rows of the batch that Next returned last begin in their file, in the unit of Extent; behind the last row, where reading goes on.
	// It may be called as Places may.
	Positions() func(row int) int64
	// Progress is how much was read, in the unit of Segment.Bytes.
	Progress() int64
	Close() error
}

// Extent is a part of a file: bytes of a file of text, from the begin of a row to that of another, and rows, from 0, of another file.
type Extent struct {
	File     string
	From, To int64
}

// Without returns what is left of an extent without others, which may be of other files.
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

// Place is where a row stands.
type Place struct {
	File string `json:"file,omitempty"`
	Line int64  `json:"line,omitempty"` // of a text file, from 1
	Row  int64  `json:"row,omitempty"`  // of another file, from 1
}

// Each reads all rows of a source with n readers at once. visit is called by n goroutines, each with the number of its reader, 0 to n-1; the batch is
// released when it returns. The first error ends everything and is returned.
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

// EachOf reads one segment. The batch is released when visit returns.
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
