package database

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

const (
	// largeSplit is from what size on a split is cut in two. The service says some GiB:
	// https://cloud.google.com/spanner/docs/schema-and-data-model#database-splits.
	largeSplit = 4 << 30
	// cutLargeEvery is how often sizes are looked at.
	cutLargeEvery = time.Minute
)

// cutLarge cuts, while the server runs, what has grown large.
func (r *Registry) cutLarge(ctx context.Context) {
	tick := time.NewTicker(cutLargeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, d := range *r.databases.Load() {
			if err := d.cutLarge(largeSplit); err != nil && !d.Dropped() {
				d.log().Error("cut large splits", "error", err)
			}
		}
	}
}

// cutLarge halves the splits that are larger than size, once each, and takes back the cuts between what is smaller
// than half of that: so cuts stay where they are while data comes and goes. They are where a row of a root table, or an entry
// of an index, begins, are kept in memory only, and are found again after a start.
func (d *Database) cutLarge(size uint64) error {
	s := d.splits(d.registry.cfg.Clock())
	old := d.points.cutsNow()
	points := slices.DeleteFunc(slices.Clone(s.bounds), func(b []byte) bool { return slices.ContainsFunc(old, func(c []byte) bool { return bytes.Equal(b, c) }) })
	var cuts [][]byte
	for _, l := range d.newest().objects() {
		space, alone := l.Space()
		if !alone {
			continue
		}
		total, err := d.rows.Size(space.Start, space.End)
		if err != nil {
			return fmt.Errorf("estimate size: %w", err)
		}
		if total < size/2 {
			continue
		}
		kept, err := d.keptCuts(space, points, old, size)
		if err != nil {
			return err
		}
		added, err := d.halves(l, cutSpan(space, united(points, kept)), size)
		if err != nil {
			return err
		}
		cuts = append(append(cuts, kept...), added...)
	}
	d.points.setCuts(united(cuts, nil))
	return nil
}

func (p *splitPoints) cutsNow() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

func (p *splitPoints) setCuts(cuts [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.EqualFunc(p.cuts, cuts, bytes.Equal) {
		p.cuts = cuts
		p.splits.Store(nil)
	}
}

// keptCuts are the old cuts in a space that still part enough.
func (d *Database) keptCuts(space table.Span, points, old [][]byte, size uint64) (kept [][]byte, err error) {
	for i, cut := range old {
		if bytes.Compare(cut, space.Start) <= 0 || bytes.Compare(cut, space.End) >= 0 {
			continue
		}
		around := between(space, united(points, slices.Concat(kept, old[i+1:])), cut)
		parted, err := d.rows.Size(around.Start, around.End)
		if err != nil {
			return nil, fmt.Errorf("estimate size: %w", err)
		}
		if parted >= size/2 {
			kept = append(kept, cut)
		}
	}
	return kept, nil
}

// between is the part of a space, cut at bounds, that a key lies in.
func between(space table.Span, bounds [][]byte, key []byte) table.Span {
	parts := cutSpan(space, bounds)
	at := slices.IndexFunc(parts, func(p table.Span) bool { return bytes.Compare(key, p.End) < 0 })
	return parts[at]
}

// halves are cuts in the middle of what is too large.
func (d *Database) halves(l *table.Layout, parts []table.Span, size uint64) (cuts [][]byte, err error) {
	for _, p := range parts {
		total, err := d.rows.Size(p.Start, p.End)
		if err != nil {
			return nil, fmt.Errorf("estimate size: %w", err)
		}
		if total <= size {
			continue
		}
		cut, err := d.middle(l, p, total)
		if err != nil {
			return nil, err
		}
		if cut != nil {
			cuts = append(cuts, cut)
		}
	}
	return cuts, nil
}

// middle is where the row, of the layout, begins that lies in the middle of a span; nil if none begins there.
func (d *Database) middle(l *table.Layout, span table.Span, total uint64) ([]byte, error) {
	first, last, err := d.ends(span, mvcc.Latest)
	if err != nil || first == nil {
		return nil, err
	}
	cut, err := d.cutAt(span.Start, first, last, total, 0.5)
	if err != nil {
		return nil, err
	}
	next, _, err := d.ends(table.Span{Start: cut, End: span.End}, mvcc.Latest)
	if err != nil || next == nil {
		return nil, err
	}
	vals, _ := l.DecodeStart(next)
	cut = l.AppendKey(nil, vals)
	if bytes.Compare(cut, first) <= 0 || bytes.Compare(cut, span.End) >= 0 {
		return nil, nil
	}
	return cut, nil
}
