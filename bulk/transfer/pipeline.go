package transfer

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// pipeline groups the rows of a segment into commits. Some commits run while the rows of the next commits are
// prepared.
type pipeline struct {
	*importer
	ctx       context.Context
	group     *errgroup.Group
	committer committer
	extent    bulk.Extent // the extent of the segment
	sent      bool        // whether the state already says that rows of the segment may have been sent
	rows      *rows
	perRow    int // the number of mutations that a row counts as

	// submitted is the position in the file up to which rows were given to commits. reached is the position up to
	// which rows were read. bad says that rows between the two positions were rejected.
	submitted, reached int64
	bad                bool
}

func newPipeline(ctx context.Context, i *importer, extent bulk.Extent) *pipeline {
	p := &pipeline{importer: i, extent: extent, rows: &rows{}, submitted: extent.From, reached: extent.From}
	p.group, p.ctx = errgroup.WithContext(ctx)
	p.group.SetLimit(commitsAtOnce)
	p.committer = committer{client: i.Client, table: i.Table, columns: i.columns, mode: i.Mode, reject: i.Rejects.Add}
	for _, c := range i.columns {
		p.perRow += 1 + c.Indexes
	}
	return p
}

// reach compares the field reached with the position of the first row of the next batch, which positions(0) returns. If
// they differ, the reader has left out bad rows between the two positions, and reach sets the field bad.
func (p *pipeline) reach(positions func(row int) int64) {
	p.bad = p.bad || positions(0) != p.reached
}

// add encodes the rows of a batch. Whenever enough rows are collected, it commits them.
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

// flush begins a commit of the collected rows. It waits while too many commits are running. If the commit fails, p.ctx
// is canceled.
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

// write starts a goroutine that calls the function do. This function writes or rejects the rows whose positions in the
// file are between the fields submitted and reached. It returns how many rows it has written. The parameter rows is the
// number of rows between the two positions, without those that are already rejected.
func (p *pipeline) write(rows int, do func(ctx context.Context, mayBeIn bool) (int, error)) {
	e, bad := bulk.Extent{File: p.extent.File, From: p.submitted, To: p.reached}, p.bad
	p.submitted, p.bad = p.reached, false
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

// noteSent records in the state that rows of the segment may have been sent. Only the mode Insert needs this, because
// with the other modes, sending a row twice has the same effect as sending it once.
func (p *pipeline) noteSent() error {
	if p.Mode != Insert || p.State == nil || p.sent {
		return nil
	}
	p.sent = true
	return p.State.noteSent(p.extent)
}

// noteDone records in the state that the rows of an extent were committed or rejected.
func (p *pipeline) noteDone(e bulk.Extent, rows int, bad bool) error {
	if p.State == nil {
		return nil
	}
	return p.State.noteDone(e, int64(rows), bad)
}

// end records that the segment was read to its end. All good rows of the segment must have been given to commits
// before.
func (p *pipeline) end() error {
	if p.submitted == p.extent.To {
		return nil
	}
	return p.noteDone(bulk.Extent{File: p.extent.File, From: p.submitted, To: p.extent.To}, 0, true)
}

// addColumns writes the rows of a batch as columns, divided into several commits.
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

// fitting returns how many rows of a batch go into one commit. The commit begins with the row whose index is from. It
// gets no more rows than the parameter most says, and fewer if these rows would take more than 2*commitBytes bytes.
func fitting(batch arrow.RecordBatch, from, most int) int {
	n := min(most, int(batch.NumRows())-from)
	for n > 1 && n*rowBytes(batch, from, from+n) > 2*commitBytes {
		n /= 2
	}
	return n
}

// rowBytes returns the average number of bytes of the rows [from, to) of a batch.
func rowBytes(batch arrow.RecordBatch, from, to int) (n int) {
	for _, c := range batch.Columns() {
		n += valueBytes(c.Data(), from, to)
	}
	return n / max(1, to-from)
}

// columns holds consecutive rows of a source's batch, in columnar form.
type columns struct {
	batch arrow.RecordBatch // the part of the source's batch that has the rows
	of    func(row int) bulk.Place
	row   int // the index in the source's batch of the first row
}

// load writes rows as columns. If the server refuses one of the rows, load writes all of them as mutations instead,
// which finds out which rows are bad. mayBeIn says that an earlier run may have inserted the rows.
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

// encode encodes rows for mutations. It rejects the rows that cannot be encoded.
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

// wait waits for all commits to end.
func (p *pipeline) wait() error { return p.group.Wait() }
