package fn

import (
	"fmt"
	"math/bits"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

var bitwise = []record{
	{name: "$bitwise_not", doc: "~x: all bits turned over.", overloads: []overload{
		on("INT64 -> INT64", strict(bitwiseNot)),
		on("BYTES -> BYTES", strict(bitwiseNotBytes)),
	}},
	{name: "$bitwise_and", doc: "x & y; BYTES of the same length.", overloads: []overload{
		on("INT64, INT64 -> INT64", bitwiseInt64(func(x, y int64) int64 { return x & y })),
		on("BYTES, BYTES -> BYTES", bitwiseBytes(func(x, y byte) byte { return x & y })),
	}},
	{name: "$bitwise_or", doc: "x | y; BYTES of the same length.", overloads: []overload{
		on("INT64, INT64 -> INT64", bitwiseInt64(func(x, y int64) int64 { return x | y })),
		on("BYTES, BYTES -> BYTES", bitwiseBytes(func(x, y byte) byte { return x | y })),
	}},
	{name: "$bitwise_xor", doc: "x ^ y; BYTES of the same length.", overloads: []overload{
		on("INT64, INT64 -> INT64", bitwiseInt64(func(x, y int64) int64 { return x ^ y })),
		on("BYTES, BYTES -> BYTES", bitwiseBytes(func(x, y byte) byte { return x ^ y })),
	}},
	{name: "$bitwise_left_shift", doc: "x << n: n bits to the left, zeros from the right.", overloads: []overload{
		on("INT64, INT64 -> INT64", strict(shiftLeft)),
		on("BYTES, INT64 -> BYTES", strict(shiftLeftBytes)),
	}},
	{name: "$bitwise_right_shift", doc: "x >> n: n bits to the right, zeros from the left: the sign is a bit as any.", overloads: []overload{
		on("INT64, INT64 -> INT64", strict(shiftRight)),
		on("BYTES, INT64 -> BYTES", strict(shiftRightBytes)),
	}},
	{name: "bit_count", doc: "The number of bits that are 1.", overloads: []overload{
		on("INT64 -> INT64", strict(bitCount)),
		on("BYTES -> INT64", strict(bitCountBytes)),
	}},
	{name: "bit_reverse", doc: "BIT_REVERSE(x, preserve_sign): the bits in reverse order, with the sign bit left in its place or not.", overloads: []overload{
		on("INT64, BOOL -> INT64", strict(bitReverse)),
	}},
}

func bitwiseNot(_ *Context, a []value.Value) (value.Value, error) { return ofInt64(^a[0].AsInt64()) }

func bitwiseNotBytes(_ *Context, a []value.Value) (value.Value, error) {
	x := a[0].AsBytes()
	z := make([]byte, len(x))
	for i := range x {
		z[i] = ^x[i]
	}
	return ofBytes(z)
}

func bitwiseInt64(f func(x, y int64) int64) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		return ofInt64(f(a[0].AsInt64(), a[1].AsInt64()))
	})
}

func bitwiseBytes(f func(x, y byte) byte) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		x, y := a[0].AsBytes(), a[1].AsBytes()
		if len(x) != len(y) {
			return value.Value{}, usererror.BadArgument(fmt.Sprintf("Bitwise binary operator for BYTES requires equal length of the inputs. "+
				"Got %d bytes on the left hand side and %d bytes on the right hand side.", len(x), len(y)))
		}
		z := make([]byte, len(x))
		for i := range x {
			z[i] = f(x[i], y[i])
		}
		return ofBytes(z)
	})
}

// A shift by 64 or more gives 0, in Go as in GoogleSQL.

func shiftLeft(_ *Context, a []value.Value) (value.Value, error) {
	n := a[1].AsInt64()
	if n < 0 {
		return value.Value{}, usererror.NegativeShift()
	}
	return ofInt64(a[0].AsInt64() << uint64(n))
}

func shiftRight(_ *Context, a []value.Value) (value.Value, error) {
	n := a[1].AsInt64()
	if n < 0 {
		return value.Value{}, usererror.NegativeShift()
	}
	return ofInt64(int64(uint64(a[0].AsInt64()) >> uint64(n)))
}

func shiftLeftBytes(_ *Context, a []value.Value) (value.Value, error) {
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
	return ofBytes(z)
}

func shiftRightBytes(_ *Context, a []value.Value) (value.Value, error) {
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
	return ofBytes(z)
}

func bitCount(_ *Context, a []value.Value) (value.Value, error) {
	return ofInt64(int64(bits.OnesCount64(uint64(a[0].AsInt64()))))
}

func bitCountBytes(_ *Context, a []value.Value) (value.Value, error) {
	n := 0
	for _, c := range a[0].AsBytes() {
		n += bits.OnesCount8(c)
	}
	return ofInt64(int64(n))
}

func bitReverse(_ *Context, a []value.Value) (value.Value, error) {
	x := uint64(a[0].AsInt64())
	if !a[1].AsBool() {
		return ofInt64(int64(bits.Reverse64(x)))
	}
	const sign = 1 << 63
	return ofInt64(int64(bits.Reverse64(x<<1) | x&sign))
}
