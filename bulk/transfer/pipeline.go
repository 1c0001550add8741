package transfer

import (
	"context"
	"sync"

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
	segment   int
	state     segmentState
	next      int64 // number of the next row in the segment
	noted     int64 // rows that are noted as sent
	rows      *rows
	perRow    int // mutations that a row counts for

	mu        sync.Mutex
	done      map[int64]int64 // commits that are done and follow one that is not: from their first row to the row behind
	committed int64           // all rows up to this one are done
}

func newPipeline(ctx context.Context, i *importer, segment int) *pipeline {
	p := &pipeline{importer: i, segment: segment, state: i.states[segment], rows: &rows{}, done: map[int64]int64{}}
	p.committed, p.noted = p.state.rows, p.state.sent
	p.group, p.ctx = errgroup.WithContext(ctx)
	p.group.SetLimit(commitsAtOnce)
	p.committer = committer{client: i.Client, table: i.Table, columns: i.columns, mode: i.Mode, reject: i.Rejects.Add}
	for _, c := range i.columns {
		p.perRow += 1 + c.Indexes
	}
	return p
}

// add takes the rows of a batch that are not in yet.
func (p *pipeline) add(e *encoder, batch arrow.RecordBatch, of func(row int) bulk.Place) error {
	if err := e.set(batch); err != nil {
		return err
	}
	for row := range int(batch.NumRows()) {
		number := p.next
		p.next++
		if number < p.state.rows {
			continue
		}
		if p.rows.len() == 0 {
			p.rows.first = number
		}
		var wrong error
		before := len(p.rows.encoded)
		p.rows.encoded, wrong = e.append(p.rows.encoded, row)
		if wrong != nil {
			p.rows.encoded = p.rows.encoded[:before]
			if err := p.Rejects.Add(bulk.BadRow{Place: of(row), Reason: wrong.Error()}); err != nil {
				return err
			}
			p.flush()
			if err := p.finished(number, number+1); err != nil {
				return err
			}
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
	p.write(r.first, r.len(), func(ctx context.Context) (int, error) {
		r.mayBeIn = r.first < p.state.sent
		return p.committer.commit(ctx, r)
	})
}

// write has do write or reject rows, which are so many from the first on, at the same time as others. do returns how many it has written.
func (p *pipeline) write(first int64, rows int, do func(ctx context.Context) (int, error)) {
	end := first + int64(rows)
	if err := p.noteSent(end); err != nil {
		p.group.Go(func() error { return err })
		return
	}
	p.group.Go(func() error {
		written, err := do(p.ctx)
		p.written.Add(int64(written))
		p.Progress.addRows(int64(written))
		if err != nil {
			return err
		}
		return p.finished(first, end)
	})
}

// sentAhead is how many rows are noted as sent before they are, so that a sync of the state file is rare.
const sentAhead = 50_000

// noteSent notes, durably, that rows up to one may have been sent: an import that goes on takes them for its own if they are in the table as they were sent. Only Insert needs it.
func (p *pipeline) noteSent(end int64) error {
	if p.Mode != Insert || end <= p.noted {
		return nil
	}
	p.noted = end + sentAhead
	return p.journal.append(importStep{Segment: p.segment, Sent: p.noted})
}

// addColumns takes the rows of a batch that are not in yet, as columns.
func (p *pipeline) addColumns(batch arrow.RecordBatch, of func(row int) bulk.Place) error {
	first, rows := p.next, int(batch.NumRows())
	p.next += int64(rows)
	most := max(1, min(maxMutations/p.perRow, commitBytes/max(1, rowBytes(batch, 0, rows))))
	parts := (rows + most - 1) / most
	for begin := int(min(max(0, p.state.rows-first), int64(rows))); begin < rows; {
		end := begin + fitting(batch, begin, (rows+parts-1)/parts)
		c := &columns{batch: batch.NewSlice(int64(begin), int64(end)), of: of, row: begin}
		p.write(first+int64(begin), end-begin, func(ctx context.Context) (int, error) {
			defer c.batch.Release()
			return p.load(ctx, c, first+int64(c.row) < p.state.sent)
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

// finished notes that rows are committed or rejected.
func (p *pipeline) finished(from, end int64) error {
	p.mu.Lock()
	p.done[from] = end
	before := p.committed
	for next, ok := p.done[p.committed]; ok; next, ok = p.done[p.committed] {
		delete(p.done, p.committed)
		p.committed = next
	}
	committed := p.committed
	p.mu.Unlock()
	if committed == before {
		return nil
	}
	return p.journal.later(importStep{Segment: p.segment, Rows: committed})
}

// wait waits until all commits have ended.
func (p *pipeline) wait() error { return p.group.Wait() }
