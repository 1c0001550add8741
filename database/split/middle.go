package split

import (
	"bytes"
	"fmt"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// ends returns the first and the last key of a span that have a value at a timestamp; both are nil if there is none.
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

// keyAt returns a key between first and last. About the given share (0 to 1) of the total bytes lies between start and
// that key.
func (m *Manager) keyAt(start, first, last []byte, total uint64, share float64) ([]byte, error) {
	common := commonPrefix(first, last)
	low, high := number(first[common:]), number(last[common:])
	place := low + uint64(float64(high-low)*share)
	// Each step halves the interval from lo to hi. 64 steps would find the exact key; 16 are close enough for the
	// middle of a large split.
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
	return keyOf(first[:common], place), nil
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// number returns the first eight bytes of b as a big-endian number. If b is shorter, zero bytes are appended.
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

// keyOf returns prefix, the bytes of n up to the first zero, and the 0x00 that ends every logical key. The bytes end
// before the first zero for this reason: with a zero byte inside, the key could begin with the logical key of a row,
// and would then sort between that row's key and its versions.
func keyOf(prefix []byte, n uint64) []byte {
	key := bytes.Clone(prefix)
	for shift := 56; shift >= 0 && byte(n>>shift) != 0; shift -= 8 {
		key = append(key, byte(n>>shift))
	}
	return append(key, 0)
}
