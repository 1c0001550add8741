package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// columnarFormat holds the functions that read files in a columnar format with a library. Both functions may panic,
// since the library may.
type columnarFormat struct {
	// parts returns the columns of a file, and the number of rows in each part that can be read separately.
	parts func(f *os.File) (*arrow.Schema, []int64, error)
	// read begins to read the parts of a segment. The returned function gives the next batch, and its caller releases
	// the batch.
	read func(f *os.File, s *columnarSegment) (next func() (arrow.RecordBatch, error), err error)
}

// columnar is a source that reads Parquet or Arrow files.
type columnar struct {
	format   columnarFormat
	schema   *arrow.Schema
	segments []*columnarSegment // one for each part that can be read separately
}

// columnarSegment is a range of parts of a file. A part is a row group in Parquet and a record batch in Arrow.
type columnarSegment struct {
	name      string
	from, end int   // the indexes in the file of the first part, and of the first part after the segment
	firstRow  int64 // the number of rows in the file before the segment
	rows      int64
	format    columnarFormat
}

func openColumnar(names []string, format columnarFormat) (bulk.Source, error) {
	c := &columnar{format: format}
	for _, name := range names {
		err := guard(name, func() error {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			schema, rows, err := format.parts(f)
			if err != nil {
				return err
			}
			return c.add(name, schema, rows)
		})
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *columnar) Schema() *arrow.Schema { return c.schema }

func (c *columnar) Close() error { return nil }

// add adds the parts of a file to the source. The parameter rows holds the number of rows of each part. All files must
// have the same columns.
func (c *columnar) add(name string, schema *arrow.Schema, rows []int64) error {
	switch {
	case schema.NumFields() == 0:
		return errors.New("it has no columns")
	case c.schema == nil:
		c.schema = schema
	case !sameColumns(c.schema, schema):
		return fmt.Errorf("%s has other columns than the files before it: read them one after the other", name)
	}
	before := int64(0)
	for i, n := range rows {
		c.segments = append(c.segments, &columnarSegment{name, i, i + 1, before, n, c.format})
		before += n
	}
	return nil
}

func sameColumns(a, b *arrow.Schema) bool {
	if a.NumFields() != b.NumFields() {
		return false
	}
	for i, f := range a.Fields() {
		if g := b.Field(i); f.Name != g.Name || !arrow.TypeEqual(f.Type, g.Type) {
			return false
		}
	}
	return true
}

// Segments returns about n segments. Each consists of adjacent parts of a file.
func (c *columnar) Segments(_ context.Context, n int) (segments []bulk.Segment, err error) {
	total := int64(0)
	for _, s := range c.segments {
		total += s.rows
	}
	size := max(total/int64(max(n, 1)), 1)
	var last *columnarSegment
	for _, s := range c.segments {
		if last != nil && last.name == s.name && last.rows+s.rows <= size {
			last.end, last.rows = s.end, last.rows+s.rows
			continue
		}
		joined := *s
		last = &joined
		segments = append(segments, last)
	}
	return segments, nil
}

func (s *columnarSegment) Bytes() int64 { return s.rows }

func (s *columnarSegment) Extent() bulk.Extent {
	return bulk.Extent{File: s.name, From: s.firstRow, To: s.firstRow + s.rows}
}

func (s *columnarSegment) String() string {
	return fmt.Sprintf("%s, rows %d to %d", s.name, s.firstRow+1, s.firstRow+s.rows)
}

func (s *columnarSegment) Open(context.Context) (bulk.Reader, error) {
	f, err := os.Open(s.name)
	if err != nil {
		return nil, err
	}
	r := &columnarReader{segment: s, file: f}
	err = guard(s.name, func() (err error) {
		r.next, err = s.format.read(f, s)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// columnarReader reads a segment of a Parquet or Arrow file.
type columnarReader struct {
	segment *columnarSegment
	file    *os.File
	next    func() (arrow.RecordBatch, error) // reads a batch, which the caller must release; may panic
	batch   arrow.RecordBatch                 // the batch that was read last; nil if there is none
	given   int64                             // how many rows of the field batch were returned
	read    int64                             // how many rows of the segment were returned
	last    int64                             // how many rows the last returned batch had
}

func (r *columnarReader) Next() (arrow.RecordBatch, error) {
	for r.batch == nil || r.given == r.batch.NumRows() {
		r.release()
		err := guard(fmt.Sprintf("%s, row %d or one behind it", r.segment.name, r.segment.firstRow+r.read+1), func() (err error) {
			if r.batch, err = r.next(); err == nil {
				err = array.ValidateRecordFull(r.batch) // so that wrong offsets in a damaged file cause no panic later
			}
			return err
		})
		if err != nil {
			return nil, r.checkEnd(err)
		}
	}
	end := min(r.given+bulk.BatchRows, r.batch.NumRows())
	slice := r.batch.NewSlice(r.given, end)
	r.last = end - r.given
	r.read, r.given = r.read+r.last, end
	return slice, nil
}

// checkEnd returns the error err, except if err is io.EOF, the end of the segment, and the segment had a wrong number
// of rows. In this case checkEnd returns an error with the wrong and the right number.
func (r *columnarReader) checkEnd(err error) error {
	if err == io.EOF && r.read != r.segment.rows {
		return fmt.Errorf("%s is damaged: it has %d rows in place of %d", r.segment, r.read, r.segment.rows)
	}
	return err
}

func (r *columnarReader) release() {
	if r.batch != nil {
		r.batch.Release()
	}
	r.batch, r.given = nil, 0
}

func (r *columnarReader) Places() func(row int) bulk.Place {
	first, name := r.segment.firstRow+r.read-r.last+1, r.segment.name
	return func(row int) bulk.Place { return bulk.Place{File: name, Row: first + int64(row)} }
}

func (r *columnarReader) Positions() func(row int) int64 {
	first := r.segment.firstRow + r.read - r.last
	return func(row int) int64 { return first + int64(row) }
}

func (r *columnarReader) Progress() int64 { return r.read }

func (r *columnarReader) Close() error {
	r.release()
	return r.file.Close()
}
