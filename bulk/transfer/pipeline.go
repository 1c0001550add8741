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
	end := r.first + int64(r.len())
	if err := p.noteSent(end); err != nil {
		p.group.Go(func() error { return err })
		return
	}
	p.group.Go(func() error {
		r.mayBeIn = r.first < p.state.sent
		written, err := p.committer.commit(p.ctx, r)
		p.written.Add(int64(written))
		p.Progress.addRows(int64(written))
		if err != nil {
			return err
		}
		return p.finished(r.first, end)
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
