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

// The number of partitions. The client's options are hints
// (https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#partitionoptions).
const (
	defaultPartitions = 64
	// sizedPartitions is the largest number of partitions if the request gives only their size.
	sizedPartitions = 10_000
	// partitionRows is the number of rows of a partition if the request does not give their size. Fewer rows are not
	// worth a request of their own.
	partitionRows = 1000
)

// Partitioning is the input of Partition: what a read, or the driving scan of a query, reads.
type Partitioning struct {
	Layout *table.Layout
	Spans  []table.Span // sorted and disjoint
	View   table.View
	Memory *memory.Account // charged for the search for partitions; nil counts nothing
	// Bytes is the wanted size of a partition, Most the largest number of partitions; 0 if the request does not say.
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

// count returns the number of partitions to cut the slices into.
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

// A slice is a range of keys that partitions do not divide further. It ends where the next one starts.
type slice struct {
	start       []byte
	bytes, rows float64 // of the rows that the statement reads there, estimated
}

// Partition divides the keys of the layout into ranges in each of which the statement reads about as many bytes of
// rows. The ranges are in order and cover all keys of the layout. They also end at the split points of users, so that
// some may be smaller. If there are no rows, there is one range.
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

// bounds returns the keys at which the partitions after the first begin. There are n partitions, or one for each piece
// between the split points of users if these are more, but at most most.
func bounds(list []slice, points [][]byte, n, most int64) (bounds [][]byte) {
	pieces := piecesOf(list, points)
	if int64(len(pieces)) >= most {
		for i := int64(1); i < most; i++ {
			bounds = append(bounds, pieces[i*int64(len(pieces))/most].start)
		}
		return bounds
	}
	// The pieces share the other bounds in proportion to their bytes.
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

// piecesOf groups slices into the pieces between split points. A slice with a point inside belongs to the piece before
// the point. No piece is empty.
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

// quantiles returns the starts of the slices that come nearest to dividing a list of slices into n parts of equal size.
// size is the bytes of all slices.
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

// cut divides span at the bounds inside it. bounds are in order.
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
