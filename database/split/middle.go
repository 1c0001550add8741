package split

import (
	"bytes"
	"fmt"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

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

// keyAt finds a key between first and last with about share of total bytes, from start on, before it.
func (m *Manager) keyAt(start, first, last []byte, total uint64, share float64) ([]byte, error) {
	common := commonPrefix(first, last)
	low, high := number(first[common:]), number(last[common:])
	place := low + uint64(float64(high-low)*share)
	// Each step halves the numbers in question, so there are 64 at most; a dozen is close enough for the middle of a large split.
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
