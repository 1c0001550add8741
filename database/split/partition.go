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

// Limits of the number of partitions. Partition applies them because the client's options are only hints
// (https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#partitionoptions). defaultPartitions is the
// largest number if the request gives neither a number nor a size.
const (
	defaultPartitions = 64
	// sizedPartitions is the largest number of partitions if the request gives only their size in bytes.
	sizedPartitions = 10_000
	// partitionRows is the number of rows of a partition if the request gives no size. A client reads each partition
	// with a request of its own, and the cost of a request is too high for fewer rows.
	partitionRows = 1000
)

// Partitioning is the input of Partition: what a read, or the driving scan of a query, reads.
type Partitioning struct {
	Layout *table.Layout
	Spans  []table.Span // the key ranges that are read, sorted and disjoint
	View   table.View
	Memory *memory.Account // charged for the memory of Partition; nil counts nothing
	// Bytes is the requested size of a partition. Most is the largest number of partitions. Each is 0 if the request
	// does not give it.
	Bytes, Most int64
}

// most returns the largest number of partitions.
func (p *Partitioning) most() int64 {
	switch {
	case p.Most > 0:
		return p.Most
	case p.Bytes > 0:
		return sizedPartitions
	}
	return defaultPartitions
}

// count returns the number of partitions into which the slices in list are grouped.
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

// A slice is a range of keys that Partition does not divide further. It ends where the next slice starts.
type slice struct {
	start       []byte
	bytes, rows float64 // estimated size and number of the rows that the statement reads in the slice
}

// Partition divides the keys of the layout into ranges so that the statement reads about the same number of bytes in
// each. The ranges are in order and cover all keys of the layout. A range also ends at each split point of a user, so
// some ranges may be smaller. If there are more of these points than the number of ranges allows, ranges end at some of
// them only. If there are no rows, there is one range.
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

// pointsIn returns the split points of users within a span, in order.
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

// bounds returns the keys at which the second and all further partitions begin. n is the wanted number of partitions,
// and most is the largest number allowed. If the split points of users divide the slices into more than n pieces, there
// is a partition for each piece. But the number of partitions is never larger than most.
func bounds(list []slice, points [][]byte, n, most int64) (bounds [][]byte) {
	pieces := piecesOf(list, points)
	if int64(len(pieces)) >= most {
		for i := int64(1); i < most; i++ {
			bounds = append(bounds, pieces[i*int64(len(pieces))/most].start)
		}
		return bounds
	}
	// A partition begins at the start of each piece. The bounds for the other partitions, up to n, are distributed over
	// the pieces in proportion to their bytes.
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

// A piece is the slices between two split points of users.
type piece struct {
	start  []byte
	slices []slice
}

// piecesOf groups slices into the pieces between split points. A slice that contains a split point belongs to the piece
// before that point. No piece is empty.
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

// quantiles divides a list of slices into n parts of about equal size and returns the start keys of all parts but the
// first. It may return fewer than n-1 keys, since it never divides a slice. size is the number of bytes of all slices.
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

// cut divides span at those bounds that lie inside it. bounds are in order.
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
