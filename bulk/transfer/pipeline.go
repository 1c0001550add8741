package transfer

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// pipeline collects rows of a segment into commits, of which some are under way while others are made.
type pipeline struct {
	*importer
	ctx       context.Context
	group     *errgroup.Group
	committer committer
	extent    bulk.Extent // of the segment
	sent      bool        // it is noted that its rows may have been sent
	rows      *rows
	perRow    int // mutations that a row counts for

	// taken is how far rows were given to commits, and reached how far they were read. bad says that some between them were rejected.
	taken, reached int64
	bad            bool
}

func newPipeline(ctx context.Context, i *importer, extent bulk.Extent) *pipeline {
	p := &pipeline{importer: i, extent: extent, rows: &rows{}, taken: extent.From, reached: extent.From}
	p.group, p.ctx = errgroup.WithContext(ctx)
	p.group.SetLimit(commitsAtOnce)
	p.committer = committer{client: i.Client, table: i.Table, columns: i.columns, mode: i.Mode, reject: i.Rejects.Add}
	for _, c := range i.columns {
		p.perRow += 1 + c.Indexes
	}
	return p
}

// reach goes on with a batch: its first row begins behind others that the reader has left out, or where the rows before end.
func (p *pipeline) reach(positions func(row int) int64) {
	p.bad = p.bad || positions(0) != p.reached
}

// add takes the rows of a batch.
func (p *pipeline) add(e *encoder, batch arrow.RecordBatch, from bulk.Reader) error {
	if err := e.set(batch); err != nil {
		return err
	}
	of, positions := from.Places(), from.Positions()
	p.reach(positions)
	for row := range int(batch.NumRows()) {
		p.reached = positions(row + 1)
		var wrong error
		before := len(p.rows.encoded)
		p.rows.encoded, wrong = e.append(p.rows.encoded, row)
		if wrong != nil {
			p.rows.encoded = p.rows.encoded[:before]
			if err := p.Rejects.Add(bulk.BadRow{Place: of(row), Reason: wrong.Error()}); err != nil {
				return err
			}
			p.bad = true
			continue
		}
		p.rows.ends = append(p.rows.ends, len(p.rows.encoded))
		p.rows.places = append(p.rows.places, place{of, row})
		if len(p.rows.encoded) >= commitBytes || (p.rows.len()+1)*p.perRow > maxMutations {
			p.flush()
		}
	}
	return p.ctx.Err()
}

// flush commits the rows that are collected, and waits while too many commits are under way. What fails ends the context.
func (p *pipeline) flush() {
	r := p.rows
	if r.len() == 0 {
		return
	}
	p.rows = &rows{encoded: make([]byte, 0, cap(r.encoded))}
	p.write(r.len(), func(ctx context.Context, mayBeIn bool) (int, error) {
		r.mayBeIn = mayBeIn
		return p.committer.commit(ctx, r)
	})
}

// write has do write or reject the rows up to that which was reached, at the same time as others. do returns how many it has written.
func (p *pipeline) write(rows int, do func(ctx context.Context, mayBeIn bool) (int, error)) {
	e, bad := bulk.Extent{File: p.extent.File, From: p.taken, To: p.reached}, p.bad
	p.taken, p.bad = p.reached, false
	if err := p.noteSent(); err != nil {
		p.group.Go(func() error { return err })
		return
	}
	mayBeIn := p.State != nil && p.State.mayBeIn(e)
	p.group.Go(func() error {
		written, err := do(p.ctx, mayBeIn)
		p.written.Add(int64(written))
		p.Progress.addRows(int64(written))
		if err != nil {
			return err
		}
		return p.noteDone(e, written, bad || written < rows)
	})
}

// noteSent notes that rows of the segment may have been sent. Only Insert needs it.
func (p *pipeline) noteSent() error {
	if p.Mode != Insert || p.State == nil || p.sent {
		return nil
	}
	p.sent = true
	return p.State.noteSent(p.extent)
}

// noteDone notes that the rows of an extent are committed or rejected.
func (p *pipeline) noteDone(e bulk.Extent, rows int, bad bool) error {
	if p.State == nil {
		return nil
	}
	return p.State.noteDone(e, int64(rows), bad)
}

// end notes the end of the segment, which has no good rows that were not taken.
func (p *pipeline) end() error {
	if p.taken == p.extent.To {
		return nil
	}
	return p.noteDone(bulk.Extent{File: p.extent.File, From: p.taken, To: p.extent.To}, 0, true)
}

// addColumns takes the rows of a batch, as columns.
func (p *pipeline) addColumns(batch arrow.RecordBatch, from bulk.Reader) error {
	of, positions, rows := from.Places(), from.Positions(), int(batch.NumRows())
	p.reach(positions)
	most := max(1, min(maxMutations/p.perRow, commitBytes/max(1, rowBytes(batch, 0, rows))))
	parts := (rows + most - 1) / most
	for begin := 0; begin < rows; {
		end := begin + fitting(batch, begin, (rows+parts-1)/parts)
		c := &columns{batch: batch.NewSlice(int64(begin), int64(end)), of: of, row: begin}
		p.reached = positions(end)
		p.write(end-begin, func(ctx context.Context, mayBeIn bool) (int, error) {
			defer c.batch.Release()
			return p.load(ctx, c, mayBeIn)
		})
		begin = end
	}
	return p.ctx.Err()
}

// fitting is how many rows of a batch, from one on, go into one commit: so many, or fewer where they are larger than others.
func fitting(batch arrow.RecordBatch, from, most int) int {
	n := min(most, int(batch.NumRows())-from)
	for n > 1 && n*rowBytes(batch, from, from+n) > 2*commitBytes {
		n /= 2
	}
	return n
}

// rowBytes is how many bytes a row of a batch has, of those from one on, on average.
func rowBytes(batch arrow.RecordBatch, from, to int) (n int) {
	for _, c := range batch.Columns() {
		n += valueBytes(c.Data(), from, to)
	}
	return n / max(1, to-from)
}

// columns are rows of a batch of the source, from one on.
type columns struct {
	batch arrow.RecordBatch // these alone
	of    func(row int) bulk.Place
	row   int // of the source's batch
}

// load writes rows as columns. Where the server refuses one of them, they are written as mutations, of which each bad one is found. mayBeIn says that a
// run before may have inserted them.
func (p *pipeline) load(ctx context.Context, c *columns, mayBeIn bool) (written int, err error) {
	unanswered, err := repeat(ctx, func() error { return p.loader.load(ctx, c.batch) })
	switch {
	case err == nil:
		return int(c.batch.NumRows()), nil
	case !isOfRow(err):
		return 0, err
	}
	r, err := p.encode(c)
	if err != nil {
		return 0, err
	}
	r.mayBeIn = mayBeIn || unanswered && p.Mode == Insert
	return p.committer.commit(ctx, r)
}

// encode makes mutations of rows, and rejects those of which there can be none.
func (p *pipeline) encode(c *columns) (*rows, error) {
	e, err := newEncoder(p.schema, p.columns)
	if err != nil {
		return nil, err
	}
	if err := e.set(c.batch); err != nil {
		return nil, err
	}
	r := &rows{}
	for row := range int(c.batch.NumRows()) {
		before := len(r.encoded)
		var wrong error
		if r.encoded, wrong = e.append(r.encoded, row); wrong != nil {
			r.encoded = r.encoded[:before]
			if err := p.Rejects.Add(bulk.BadRow{Place: c.of(c.row + row), Reason: wrong.Error()}); err != nil {
				return nil, err
			}
			continue
		}
		r.ends = append(r.ends, len(r.encoded))
		r.places = append(r.places, place{c.of, c.row + row})
	}
	return r, nil
}

// wait waits until all commits have ended.
func (p *pipeline) wait() error { return p.group.Wait() }
