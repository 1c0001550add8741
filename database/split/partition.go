package split

import (
	"bytes"
	"fmt"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// Sizes of partitions: what is asked for is a hint
// (https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#partitionoptions); ours are smaller than
// the service's 1 GiB, since a data set here is smaller too.
const (
	defaultPartitionBytes = 32 << 20
	defaultMaxPartitions  = 64
	// fewPartitions is what a small table is cut into, so that code for many partitions meets more than one.
	fewPartitions = 2
)

// Partition cuts a span into parts of about partitionBytes (0: the default), at most maxPartitions of them (0: no limit is asked
// for). The parts are in order and together are the span. Each lies in one split, unless there are more splits than parts may be.
func (m *Manager) Partition(span table.Span, at mvcc.Timestamp, partitionBytes, maxPartitions int64) ([]table.Span, error) {
	if span.IsPoint() {
		return []table.Span{span}, nil
	}
	if partitionBytes <= 0 {
		partitionBytes = defaultPartitionBytes
	}
	pieces := cut(span, m.at(m.cfg.Clock()).bounds)
	if maxPartitions <= 0 {
		maxPartitions = max(defaultMaxPartitions, int64(len(pieces)))
	}
	pieces = joined(pieces, maxPartitions)
	least := int64(1)
	if len(pieces) == 1 {
		least = fewPartitions
	}
	var parts []table.Span
	for _, p := range pieces {
		more, err := m.partitionBySize(p, at, partitionBytes, least, maxPartitions/int64(len(pieces)))
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	return parts, nil
}

// joined joins neighbouring pieces so that there are no more than most.
func joined(pieces []table.Span, most int64) []table.Span {
	n := int64(len(pieces))
	if n <= most {
		return pieces
	}
	list := make([]table.Span, most)
	for i := range most {
		list[i] = table.Span{Start: pieces[i*n/most].Start, End: pieces[(i+1)*n/most-1].End}
	}
	return list
}

// partitionBySize cuts a span into parts of about partitionBytes, at least and at most so many.
//
// It finds the bounds by bisection: between the first and the last key it looks
// for the byte string up to which the engine estimates the wanted size.
func (m *Manager) partitionBySize(span table.Span, at mvcc.Timestamp, partitionBytes, least, most int64) ([]table.Span, error) {
	first, last, err := m.ends(span, at)
	if err != nil || first == nil || most == 1 || bytes.Equal(first, last) {
		return []table.Span{span}, err
	}
	total, err := m.size(span)
	if err != nil {
		return nil, err
	}
	parts := min(max(int64(total)/partitionBytes, least), most)
	var bounds [][]byte
	for i := int64(1); i < parts; i++ {
		bound, err := m.keyAt(span.Start, first, last, total, float64(i)/float64(parts))
		if err != nil {
			return nil, err
		}
		bounds = append(bounds, bound)
	}
	return cut(span, bounds), nil
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

// ends are the first and the last live key of a span; nil if there is none.
func (m *Manager) ends(span table.Span, at mvcc.Timestamp) (first, last []byte, err error) {
	for _, reverse := range []bool{false, true} {
		c, err := m.cfg.Rows.Scan(span.Start, span.End, at, reverse)
		if err != nil {
			return nil, nil, fmt.Errorf("find ends: %w", err)
		}
		if c.Next() {
			key := bytes.Clone(c.Key())
			if reverse {
				last = key
			} else {
				first = key
			}
		}
		err = c.Err()
		if closeErr := c.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return nil, nil, fmt.Errorf("find ends: %w", err)
		}
	}
	return first, last, nil
}

// keyAt finds a key between first and last with about share of total bytes before it. If total is 0 (the engine
// knows no sizes while all is in memory) it is the byte string at that share of the way from first to last.
func (m *Manager) keyAt(start, first, last []byte, total uint64, share float64) ([]byte, error) {
	common := commonPrefix(first, last)
	low, high := number(first[common:]), number(last[common:])
	place := low + uint64(float64(high-low)*share)
	if total > 0 {
		// Each step halves the numbers in question, so there are 64 at most; a dozen is close enough for a hint.
		lo, hi := low, high
		for range 16 {
			mid := lo + (hi-lo)/2
			size, err := m.cfg.Rows.Size(start, keyOf(first[:common], mid))
			if err != nil {
				return nil, fmt.Errorf("estimate size: %w", err)
			}
			if float64(size) < share*float64(total) {
				lo = mid
			} else {
				hi = mid
			}
		}
		if lo > low && hi < high {
			place = lo
		}
	}
	return keyOf(first[:common], place), nil
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// number reads the first eight bytes as a number, as if zeros followed.
func number(b []byte) uint64 {
	var n uint64
	for i := range 8 {
		n <<= 8
		if i < len(b) {
			n |= uint64(b[i])
		}
	}
	return n
}

// keyOf is prefix, the bytes of n up to the first zero, and the sentinel that ends every logical key. With a zero between them it could
// begin with the logical key of a row, and would then fall between that key and its versions.
func keyOf(prefix []byte, n uint64) []byte {
	key := bytes.Clone(prefix)
	for shift := 56; shift >= 0 && byte(n>>shift) != 0; shift -= 8 {
		key = append(key, byte(n>>shift))
	}
	return append(key, 0)
}

// Halve cuts a span in two in the middle of its keys; it returns nil if the span cannot be cut.
func (m *Manager) Halve(span table.Span) []table.Span {
	first, last, err := m.ends(span, mvcc.Latest)
	if err != nil || first == nil || bytes.Equal(first, last) {
		return nil
	}
	bound, err := m.keyAt(span.Start, first, last, 0, 0.5)
	if err != nil {
		return nil
	}
	halves := cut(span, [][]byte{bound})
	if len(halves) < 2 {
		return nil
	}
	return halves
}
