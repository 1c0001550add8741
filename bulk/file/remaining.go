package file

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// remaining is a source that reads files of all formats except text. It leaves out the rows of the extents in done.
type remaining struct {
	bulk.Source
	done []bulk.Extent
}

func (r *remaining) Segments(ctx context.Context, n int) (segments []bulk.Segment, err error) {
	all, err := r.Source.Segments(ctx, n)
	for _, s := range all {
		whole := s.Extent()
		for _, e := range whole.Without(r.done) {
			if e == whole {
				segments = append(segments, s)
			} else {
				segments = append(segments, remainingSegment{s, e, whole})
			}
		}
	}
	return segments, err
}

// remainingSegment is a segment of which only a range of rows is read.
type remainingSegment struct {
	bulk.Segment
	extent, whole bulk.Extent
}

func (s remainingSegment) Extent() bulk.Extent { return s.extent }

func (s remainingSegment) Open(ctx context.Context) (bulk.Reader, error) {
	r, err := s.Segment.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &remainingReader{Reader: r, skip: s.extent.From - s.whole.From, left: s.extent.To - s.extent.From}, nil
}

// remainingReader reads a range of a segment's rows. skip is the number of rows that it still has to skip, and left is
// the number of rows that it returns after them.
type remainingReader struct {
	bulk.Reader
	skip, left int64
	shift      int // how many rows at the start of the batch that was read last were skipped
}

func (r *remainingReader) Next() (arrow.RecordBatch, error) {
	for r.left > 0 {
		batch, err := r.Reader.Next()
		if err != nil {
			return nil, err
		}
		rows, from := batch.NumRows(), r.skip
		r.skip = max(0, r.skip-rows)
		if from >= rows {
			batch.Release()
			continue
		}
		end := min(rows, from+r.left)
		r.left -= end - from
		r.shift = int(from)
		slice := batch.NewSlice(from, end)
		batch.Release()
		return slice, nil
	}
	return nil, io.EOF
}

func (r *remainingReader) Places() func(row int) bulk.Place {
	of, shift := r.Reader.Places(), r.shift
	return func(row int) bulk.Place { return of(row + shift) }
}

func (r *remainingReader) Positions() func(row int) int64 {
	of, shift := r.Reader.Positions(), r.shift
	return func(row int) int64 { return of(row + shift) }
}
