package operators

import (
	"fmt"
	"math/bits"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Bitwise has the operators and functions on bits.
var Bitwise = []fn.Record{
	{Name: "$bitwise_not", Doc: "~x: all bits turned over.", Overloads: []fn.Overload{
		fn.On("INT64 -> INT64", fn.Strict(bitwiseNot)),
		fn.On("BYTES -> BYTES", fn.Strict(bitwiseNotBytes)),
	}},
	{Name: "$bitwise_and", Doc: "x & y; BYTES of the same length.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", bitwiseInt64(func(x, y int64) int64 { return x & y })),
		fn.On("BYTES, BYTES -> BYTES", bitwiseBytes(func(x, y byte) byte { return x & y })),
	}},
	{Name: "$bitwise_or", Doc: "x | y; BYTES of the same length.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", bitwiseInt64(func(x, y int64) int64 { return x | y })),
		fn.On("BYTES, BYTES -> BYTES", bitwiseBytes(func(x, y byte) byte { return x | y })),
	}},
	{Name: "$bitwise_xor", Doc: "x ^ y; BYTES of the same length.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", bitwiseInt64(func(x, y int64) int64 { return x ^ y })),
		fn.On("BYTES, BYTES -> BYTES", bitwiseBytes(func(x, y byte) byte { return x ^ y })),
	}},
	{Name: "$bitwise_left_shift", Doc: "x << n: n bits to the left, zeros from the right.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", fn.Strict(shiftLeft)),
		fn.On("BYTES, INT64 -> BYTES", fn.Strict(shiftLeftBytes)),
	}},
	{Name: "$bitwise_right_shift", Doc: "x >> n: n bits to the right, zeros from the left: the sign is a bit as any.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", fn.Strict(shiftRight)),
		fn.On("BYTES, INT64 -> BYTES", fn.Strict(shiftRightBytes)),
	}},
	{Name: "bit_count", Doc: "The number of bits that are 1.", Overloads: []fn.Overload{
		fn.On("INT64 -> INT64", fn.Strict(bitCount)),
		fn.On("BYTES -> INT64", fn.Strict(bitCountBytes)),
	}},
	{Name: "bit_reverse", Doc: "BIT_REVERSE(x, preserve_sign): the bits in reverse order, with the sign bit left in its place or not.", Overloads: []fn.Overload{
		fn.On("INT64, BOOL -> INT64", fn.Strict(bitReverse)),
	}},
}

func bitwiseNot(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfInt64(^a[0].AsInt64())
}

func bitwiseNotBytes(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := a[0].AsBytes()
	z := make([]byte, len(x))
	for i := range x {
		z[i] = ^x[i]
	}
	return fn.OfBytes(z)
}

func bitwiseInt64(f func(x, y int64) int64) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return fn.OfInt64(f(a[0].AsInt64(), a[1].AsInt64()))
	})
}

func bitwiseBytes(f func(x, y byte) byte) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		x, y := a[0].AsBytes(), a[1].AsBytes()
		if len(x) != len(y) {
			return value.Value{}, usererror.BadArgument(fmt.Sprintf("Bitwise binary operator for BYTES requires equal length of the inputs. "+
				"Got %d bytes on the left hand side and %d bytes on the right hand side.", len(x), len(y)))
		}
		z := make([]byte, len(x))
		for i := range x {
			z[i] = f(x[i], y[i])
		}
		return fn.OfBytes(z)
	})
}

// A shift by 64 or more bits gives 0, both in Go and in GoogleSQL.

func shiftLeft(_ *fn.Context, a []value.Value) (value.Value, error) {
	n := a[1].AsInt64()
	if n < 0 {
		return value.Value{}, usererror.NegativeShift()
	}
	return fn.OfInt64(a[0].AsInt64() << uint64(n))
}

func shiftRight(_ *fn.Context, a []value.Value) (value.Value, error) {
	n := a[1].AsInt64()
	if n < 0 {
		return value.Value{}, usererror.NegativeShift()
	}
	return fn.OfInt64(int64(uint64(a[0].AsInt64()) >> uint64(n)))
}

func shiftLeftBytes(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, n := a[0].AsBytes(), a[1].AsInt64()
	if n < 0 {
		return value.Value{}, usererror.NegativeShiftOfBytes()
	}
	z := make([]byte, len(x))
	if whole, rest := n/8, uint(n%8); whole < int64(len(x)) {
		for i, c := range x[whole:] {
			z[i] |= c << rest
			if i > 0 {
				z[i-1] |= c >> (8 - rest)
			}
		}
	}
	return fn.OfBytes(z)
}

func shiftRightBytes(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, n := a[0].AsBytes(), a[1].AsInt64()
	if n < 0 {
		return value.Value{}, usererror.NegativeShiftOfBytes()
	}
	z := make([]byte, len(x))
	if whole, rest := n/8, uint(n%8); whole < int64(len(x)) {
		for i, c := range x[:len(x)-int(whole)] {
			z[i+int(whole)] |= c >> rest
			if next := i + int(whole) + 1; next < len(z) {
				z[next] |= c << (8 - rest)
			}
		}
	}
	return fn.OfBytes(z)
}

func bitCount(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfInt64(int64(bits.OnesCount64(uint64(a[0].AsInt64()))))
}

func bitCountBytes(_ *fn.Context, a []value.Value) (value.Value, error) {
	n := 0
	for _, c := range a[0].AsBytes() {
		n += bits.OnesCount8(c)
	}
	return fn.OfInt64(int64(n))
}

func bitReverse(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := uint64(a[0].AsInt64())
	if !a[1].AsBool() {
		return fn.OfInt64(int64(bits.Reverse64(x)))
	}
	const sign = 1 << 63
	return fn.OfInt64(int64(bits.Reverse64(x<<1) | x&sign))
}
