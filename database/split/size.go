package split

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// LargeBytes is the size above which a split is cut in two. Cloud Spanner's documentation says some GiB:
// https://cloud.google.com/spanner/docs/schema-and-data-model#database-splits.
const LargeBytes = 4 << 30

// SplitBySize divides each split that has more bytes than the parameter large says into two halves. It joins
// neighbouring splits that together have fewer than half as many bytes. The limit for joining is lower than the limit
// for dividing, so that a bound stays in place while rows come and go. It puts bounds only before rows of root tables
// and before index entries.
func (m *Manager) SplitBySize(large uint64) error {
	all, err := m.size(table.Span{})
	if err != nil {
		return err
	}
	if all < large/2 { // then no split is large; this saves the look at each table, as there may be thousands
		m.setSizeBounds(nil)
		return nil
	}
	s := m.at(m.cfg.Clock())
	m.mu.Lock()
	old := m.sizeBounds
	m.mu.Unlock()
	points := slices.DeleteFunc(slices.Clone(s.bounds), func(b []byte) bool {
		return slices.ContainsFunc(old, func(o []byte) bool { return bytes.Equal(b, o) })
	})
	var bounds [][]byte
	for l := range table.Layouts(m.cfg.Catalog()) {
		space, alone := l.Space()
		if !alone {
			continue
		}
		list, err := m.splitSpace(l, space, points, old, large)
		if err != nil {
			return err
		}
		bounds = append(bounds, list...)
	}
	m.setSizeBounds(union(bounds, nil))
	return nil
}

func (m *Manager) setSizeBounds(bounds [][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.EqualFunc(m.sizeBounds, bounds, bytes.Equal) {
		m.sizeBounds = bounds
		m.current.Store(nil)
	}
}

// splitSpace returns the bounds that divide the key range of a table or index by size. l is the layout of the table or
// index, and the parameter space is its key range. The parameter points holds the bounds that users have set. The
// parameter old holds the bounds that the previous SplitBySize found. A part with more bytes than the parameter large
// says is divided.
func (m *Manager) splitSpace(l *table.Layout, space table.Span, points, old [][]byte, large uint64) ([][]byte, error) {
	total, err := m.size(space)
	if err != nil || total < large/2 {
		return nil, err
	}
	kept, err := m.kept(space, points, old, large)
	if err != nil {
		return nil, err
	}
	added, err := m.middles(l, cut(space, union(points, kept)), large)
	return append(kept, added...), err
}

func (m *Manager) size(span table.Span) (uint64, error) {
	n, err := m.cfg.Rows.Size(span.Start, span.End)
	if err != nil {
		return 0, fmt.Errorf("estimate size: %w", err)
	}
	return n, nil
}

// kept returns those of the old bounds that lie inside the key range space and that stay. A bound stays if the two
// splits beside it together have at least large/2 bytes.
func (m *Manager) kept(space table.Span, points, old [][]byte, large uint64) (kept [][]byte, err error) {
	for i, bound := range old {
		if bytes.Compare(bound, space.Start) <= 0 || bytes.Compare(bound, space.End) >= 0 {
			continue
		}
		sides, err := m.size(partWith(bound, space, union(points, slices.Concat(kept, old[i+1:]))))
		if err != nil {
			return nil, err
		}
		if sides >= large/2 {
			kept = append(kept, bound)
		}
	}
	return kept, nil
}

// partWith divides a space at bounds and returns the part that contains a key.
func partWith(key []byte, space table.Span, bounds [][]byte) table.Span {
	parts := cut(space, bounds)
	at := slices.IndexFunc(parts, func(p table.Span) bool { return bytes.Compare(key, p.End) < 0 })
	return parts[at]
}

// middles returns a bound in the middle of each part that has more bytes than the parameter large says.
func (m *Manager) middles(l *table.Layout, parts []table.Span, large uint64) (bounds [][]byte, err error) {
	for _, p := range parts {
		total, err := m.size(p)
		if err != nil {
			return nil, err
		}
		if total <= large {
			continue
		}
		bound, err := m.middle(l, p, total)
		if err != nil {
			return nil, err
		}
		if bound != nil {
			bounds = append(bounds, bound)
		}
	}
	return bounds, nil
}

// middle returns the key of a row of the layout near the middle of a span, which has total bytes. It returns nil if it
// finds no such row after the first row of the span.
func (m *Manager) middle(l *table.Layout, span table.Span, total uint64) ([]byte, error) {
	first, last, err := m.ends(span, mvcc.Latest)
	if err != nil || first == nil {
		return nil, err
	}
	bound, err := m.keyAt(span.Start, first, last, total, 0.5)
	if err != nil {
		return nil, err
	}
	next, _, err := m.ends(table.Span{Start: bound, End: span.End}, mvcc.Latest)
	if err != nil || next == nil {
		return nil, err
	}
	vals, _ := l.DecodeStart(next)
	bound = l.AppendKey(nil, vals)
	if bytes.Compare(bound, first) <= 0 || bytes.Compare(bound, span.End) >= 0 {
		return nil, nil
	}
	return bound, nil
}
