package split

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

const (
	// slicesEach is the number of slices per partition. The size of a partition may be wrong by half a slice at each
	// end.
	slicesEach = 16
	// maxSlices is the largest number of slices that readSlices makes, so that their memory is bounded. If there are
	// more rows, readSlices joins slices. Then a partition may get few slices, so that partitions differ in size.
	// Therefore, if there are at least maxSlices/2 slices, the method count returns so few partitions that each has
	// leastSlicesEach slices or more on average.
	maxSlices       = 128 << 10
	leastSlicesEach = 4
	// sliceBytes is a size in bytes on disk. If slices would be smaller than this, the method slices reads all rows,
	// because reading so few bytes is quicker than finding the bound of a slice by the sizes of ranges.
	sliceBytes = 64 << 10
	// sampleRows is how many rows of a slice are read to estimate the number and size of all its rows.
	sampleRows = 64
	// blockBytes is about the precision, in bytes, with which the engine knows the size of a range.
	blockBytes = 4 << 10
	// sliceMemory is the memory of a slice in bytes, without its key.
	sliceMemory = 64
)

// slices divides the rows that the statement reads into slices. It reads all rows if that is quicker. Otherwise it
// divides the ranges by the sizes that the engine knows, and reads a sample of each slice.
func (m *Manager) slices(ctx context.Context, p *Partitioning) ([]slice, error) {
	total, ranges := uint64(0), table.Ranges(p.Spans)
	for _, span := range ranges {
		n, err := m.size(span)
		if err != nil {
			return nil, err
		}
		total += n
	}
	each := total / uint64(slicesEach*p.most())
	if each < sliceBytes {
		return p.readSlices(ctx)
	}
	_ = m.cfg.Rows.Flush(ctx, each) // if it fails, rows that are only in memory count as 0 bytes
	var list []slice
	for _, span := range ranges {
		if err := m.halve(ctx, span, each, func(span table.Span, size uint64) error {
			s, err := m.sample(ctx, p, span, size)
			if err == nil && s.rows > 0 {
				list = append(list, s)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p *Partitioning) read(ctx context.Context, spans []table.Span) *table.Rows {
	return table.Read{Projection: &table.Projection{Layout: p.Layout}, Spans: spans, Partial: true, AllowPending: true, Memory: p.Memory}.Open(ctx, p.View)
}

// readSlices reads all rows and makes a slice of each row. If there are more than maxSlices rows, a slice has several
// rows.
func (p *Partitioning) readSlices(ctx context.Context) (list []slice, err error) {
	rows := p.read(ctx, p.Spans)
	defer rows.Close()
	each, charge := 1.0, int64(0)
	for scanned := 0; ; scanned++ {
		if scanned%partitionRows == 0 {
			if err := errors.Join(ctx.Err(), p.Memory.Grow(ctx, charge)); err != nil {
				return nil, err
			}
			charge = 0
		}
		ok, err := rows.Next()
		if !ok || err != nil {
			return list, err
		}
		if n := len(list); n == 0 || list[n-1].rows >= each {
			if n == maxSlices {
				list, each = joinPairs(list), 2*each
			}
			list = append(list, slice{start: bytes.Clone(rows.Key())})
			charge += sliceMemory + int64(len(rows.Key()))
		}
		last := &list[len(list)-1]
		last.bytes, last.rows = last.bytes+float64(rows.StoredSize()), last.rows+1
	}
}

// joinPairs joins the first and second slice, the third and fourth, and so on. The number of slices is even.
func joinPairs(list []slice) []slice {
	for i := range len(list) / 2 {
		a, b := list[2*i], list[2*i+1]
		list[i] = slice{a.start, a.bytes + b.bytes, a.rows + b.rows}
	}
	clear(list[len(list)/2:])
	return list[:len(list)/2]
}

// halve divides a span into halves, and the halves again, until each part is small enough: it has a single key, or at
// most as many bytes on disk as the parameter each says. It calls emit with the parts, in order.
func (m *Manager) halve(ctx context.Context, span table.Span, each uint64, emit func(span table.Span, size uint64) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	size, err := m.size(span)
	if err != nil {
		return err
	}
	if size <= each {
		return emit(span, size)
	}
	bound, err := m.half(span, size)
	if err != nil {
		return err
	}
	if bound == nil {
		return emit(span, size)
	}
	if err := m.halve(ctx, table.Span{Start: span.Start, End: bound}, each, emit); err != nil {
		return err
	}
	return m.halve(ctx, table.Span{Start: bound, End: span.End}, each, emit)
}

// half returns a stored key near the middle of a span, which has size bytes. It never returns the first key of the
// span, so that both halves have a key. It returns nil if the span has fewer than two keys. To find the middle, it
// compares only the eight bytes that follow the common prefix of all keys in the span.
func (m *Manager) half(span table.Span, size uint64) ([]byte, error) {
	first, last, err := m.cfg.Rows.Ends(span.Start, span.End)
	if err != nil || bytes.Equal(first, last) {
		return nil, err
	}
	common := commonPrefix(first, last)
	low, high := number(first[common:]), number(last[common:])
	var below, above uint64 // bytes from the start of the span to the keys of the numbers low and high
	above = size
	for high-low > 1 {
		mid := low + (high-low)/2
		place, err := m.place(first[:common:common], mid)
		if err != nil {
			return nil, err
		}
		n, err := m.cfg.Rows.Size(span.Start, place)
		if err != nil {
			return nil, err
		}
		if n < size/2 {
			low, below = mid, n
		} else {
			high, above = mid, n
		}
		if above-below <= size/8 {
			break
		}
	}
	if low > number(first[common:]) && size/2-below < above-size/2 {
		high = low
	}
	place, err := m.place(first[:common:common], high)
	if err != nil {
		return nil, err
	}
	bound, err := m.cfg.Rows.From(place, span.End)
	if err == nil && bytes.Equal(bound, first) { // the first half would be empty, so the next key becomes the bound
		bound, err = m.cfg.Rows.From(mvcc.After(nil, first), span.End)
	}
	return bound, err
}

// place returns the bytes in the parameter common, followed by the eight bytes of n. If that key begins with a stored
// key, place returns the stored key instead: the versions of a stored key follow it, and a bound must not lie between
// them (see package mvcc).
func (m *Manager) place(common []byte, n uint64) ([]byte, error) {
	p := binary.BigEndian.AppendUint64(common, n)
	for i := len(common); i < len(p)-1; i++ {
		if p[i] != 0 { // only a zero byte ends a key
			continue
		}
		key := p[: i+1 : i+1]
		if stored, err := m.cfg.Rows.From(key, mvcc.After(nil, key)); bytes.Equal(stored, key) || err != nil {
			return key, err
		}
	}
	return p, nil
}

// sample returns the slice for a span of size bytes on disk. It reads the first rows that the statement reads in the
// span, and extrapolates their number and size to the whole span.
func (m *Manager) sample(ctx context.Context, p *Partitioning, span table.Span, size uint64) (slice, error) {
	s := slice{start: span.Start}
	rows := p.read(ctx, []table.Span{span})
	defer rows.Close()
	for {
		ok, err := rows.Next()
		if !ok || err != nil {
			return s, err
		}
		if s.rows == sampleRows {
			break
		}
		s.bytes, s.rows = s.bytes+float64(rows.StoredSize()), s.rows+1
	}
	read, err := m.size(table.Span{Start: span.Start, End: rows.Key()})
	if share := float64(size) / float64(max(read, blockBytes)); share > 1 {
		s.bytes, s.rows = s.bytes*share, s.rows*share
	}
	return s, err
}
