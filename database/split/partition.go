package split

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/table"
)

// How many partitions there are. What is asked for is a hint (https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#partitionoptions).
const (
	defaultPartitions = 64
	// sizedPartitions is how many there are at most if the request says only how large they are to be.
	sizedPartitions = 10_000
	// partitionRows is how many rows each partition has if the request does not say how large they are to be: fewer are not worth a request of their own.
	partitionRows = 1000
)

// Partitioning is what is to be cut into partitions: what a read, or the driving scan of a query, reads.
type Partitioning struct {
	Layout *table.Layout
	Spans  []table.Span // sorted and disjoint
	View   table.View
	Memory *memory.Account // is charged what finding the partitions takes; nil counts nothing
	// Bytes of each partition, and how many there are at most; 0: not said.
	Bytes, Most int64
}

// most is how many partitions there are at most.
func (p *Partitioning) most() int64 {
	switch {
	case p.Most > 0:
		return p.Most
	case p.Bytes > 0:
		return sizedPartitions
	}
	return defaultPartitions
}

// count is how many partitions what was found is to be cut into.
func (p *Partitioning) count(list []slice) int64 {
	rows := 0.0
	for i := range list {
		rows += list[i].rows
	}
	n := int64(rows) / partitionRows
	if p.Bytes > 0 {
		n = int64(math.Ceil(bytesOf(list) / float64(p.Bytes)))
	}
	if len(list) >= maxSlices/2 {
		n = min(n, int64(len(list))/leastSlicesEach)
	}
	return max(min(n, p.most()), 1)
}

// A slice is a part of what is partitioned that is not cut itself: the keys from start to the start of the next one.
type slice struct {
	start       []byte
	bytes, rows float64 // of what the statement reads there, about
}

// Partition cuts what a statement reads into parts with about as many bytes of rows each. They are in order, and cover all keys of the layout. They begin
// where users have set split points too, so that these parts may be smaller; without a row there is one part.
func (m *Manager) Partition(ctx context.Context, p Partitioning) ([]table.Span, error) {
	space, _ := p.Layout.Space()
	list, err := m.slices(ctx, &p)
	if err != nil {
		return nil, fmt.Errorf("partition %s: %w", p.Layout.Name(), err)
	}
	if len(list) == 0 {
		return []table.Span{space}, nil
	}
	return cut(space, bounds(list, m.pointsIn(space), p.count(list), p.most())), nil
}

// pointsIn are the split points of users within a span, in order.
func (m *Manager) pointsIn(span table.Span) (points [][]byte) {
	now := m.cfg.Clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.points {
		if r.live(now) && bytes.Compare(r.key, span.Start) > 0 && bytes.Compare(r.key, span.End) < 0 {
			points = append(points, r.key)
		}
	}
	return points
}

// bounds are where the partitions but the first begin: n of them, or as many as there are pieces between the points of users, but no more than most.
func bounds(list []slice, points [][]byte, n, most int64) (bounds [][]byte) {
	pieces := piecesOf(list, points)
	if int64(len(pieces)) >= most {
		for i := int64(1); i < most; i++ {
			bounds = append(bounds, pieces[i*int64(len(pieces))/most].start)
		}
		return bounds
	}
	// The other bounds are shared out among the pieces by their bytes.
	each, before, given := float64(max(n-int64(len(pieces)), 0))/bytesOf(list), 0.0, int64(0)
	for i, p := range pieces {
		if i > 0 {
			bounds = append(bounds, p.start)
		}
		size := bytesOf(p.slices)
		before += size
		more := int64(math.Round(each*before)) - given
		given += more
		bounds = append(bounds, quantiles(p.slices, size, 1+more)...)
	}
	return bounds
}

func bytesOf(list []slice) (n float64) {
	for i := range list {
		n += list[i].bytes
	}
	return n
}

// A piece is what lies between two points of users.
type piece struct {
	start  []byte
	slices []slice
}

// piecesOf divides slices at points, or next to them. No piece is empty.
func piecesOf(list []slice, points [][]byte) (pieces []piece) {
	start := list[0].start
	for _, point := range points {
		at, _ := slices.BinarySearchFunc(list, point, func(s slice, key []byte) int { return bytes.Compare(s.start, key) })
		if at > 0 {
			pieces = append(pieces, piece{start, list[:at]})
		}
		start, list = point, list[at:]
	}
	if len(list) > 0 {
		pieces = append(pieces, piece{start, list})
	}
	return pieces
}

// quantiles are the starts of the slices that come nearest to dividing a list of slices, with so many bytes, into n equal parts.
func quantiles(list []slice, size float64, n int64) (starts [][]byte) {
	before, k := 0.0, int64(1)
	for i := range list {
		reached := k
		for k < n && i > 0 && before+list[i].bytes/2 >= size*float64(k)/float64(n) {
			k++
		}
		if k > reached {
			starts = append(starts, list[i].start)
		}
		before += list[i].bytes
	}
	return starts
}

// cut cuts span at those of the bounds (in order) that lie inside it.
func cut(span table.Span, bounds [][]byte) []table.Span {
	var list []table.Span
	start := span.Start
	for _, bound := range bounds {
		if bytes.Compare(bound, start) <= 0 || bytes.Compare(bound, span.End) >= 0 {
			continue
		}
		list = append(list, table.Span{Start: start, End: bound})
		start = bound
	}
	return append(list, table.Span{Start: start, End: span.End})
}
