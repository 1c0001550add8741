package columnar

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Whole numbers that differ little are stored in few bytes: the smallest number (8 bytes), a width (1 byte: 1, 2 or
// 4), and for each number its difference from the smallest one, in as many bytes as the width says. Offsets are stored
// as a width (1 byte), followed by the differences between neighbouring offsets. All numbers are little-endian. Both
// forms are smaller than LZ4 blocks, and are several times as fast to read.

// form is the type of the elements in a buffer of an array.
type form uint8

const (
	formBytes form = iota
	formOffsets
	formInt32
	formInt64
	formInt128
)

func formOf(dt arrow.DataType, buffer int) form {
	if buffer != 1 {
		return formBytes
	}
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY, arrow.LIST:
		return formOffsets
	case arrow.DATE32:
		return formInt32
	case arrow.INT64, arrow.TIMESTAMP:
		return formInt64
	case arrow.DECIMAL128:
		return formInt128
	}
	return formBytes
}

// width returns the number of bytes of an element of the buffer.
func (f form) width() uint64 {
	switch f {
	case formOffsets, formInt32:
		return 4
	case formInt64:
		return 8
	case formInt128:
		return 16
	}
	return 1
}

// narrowHead is the number of bytes that the smallest number and the width take, before the differences.
const narrowHead = 9

// appendNarrow appends the smallest of the numbers in raw, a width, and the difference of each number from the smallest
// one. It then returns true. If a difference needs more than 2 bytes (formInt32) or 4 bytes (other forms), or if there
// are no numbers, it appends nothing and returns false.
func appendNarrow(dst, raw []byte, f form) (_ []byte, ok bool) {
	switch f {
	case formInt32:
		return narrow(dst, arrow.Int32Traits.CastFromBytes(raw), 2, func(n int32) (int64, bool) { return int64(n), true })
	case formInt64:
		return narrow(dst, arrow.Int64Traits.CastFromBytes(raw), 4, func(n int64) (int64, bool) { return n, true })
	}
	return narrow(dst, arrow.Decimal128Traits.CastFromBytes(raw), 4, func(n decimal128.Num) (int64, bool) {
		lo := int64(n.LowBits())
		return lo, n.HighBits() == lo>>63
	})
}

func narrow[T any](dst []byte, numbers []T, most int, whole func(T) (int64, bool)) (_ []byte, ok bool) {
	least, greatest := int64(math.MaxInt64), int64(math.MinInt64)
	for _, x := range numbers {
		n, ok := whole(x)
		if !ok {
			return dst, false
		}
		least, greatest = min(least, n), max(greatest, n)
	}
	if len(numbers) == 0 {
		return dst, false
	}
	width := widthOf(uint64(greatest) - uint64(least))
	if width > most {
		return dst, false
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(least))
	dst = append(dst, byte(width))
	for _, x := range numbers {
		n, _ := whole(x)
		dst = appendWidth(dst, uint64(n)-uint64(least), width)
	}
	return dst, true
}

// widthOf returns how many bytes a number needs: 1, 2, 4 or 8.
func widthOf(n uint64) int {
	switch {
	case n <= math.MaxUint8:
		return 1
	case n <= math.MaxUint16:
		return 2
	case n <= math.MaxUint32:
		return 4
	}
	return 8
}

func appendWidth(dst []byte, n uint64, width int) []byte {
	switch width {
	case 1:
		return append(dst, byte(n))
	case 2:
		return binary.LittleEndian.AppendUint16(dst, uint16(n))
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(n))
}

// widen decodes numbers that appendNarrow has encoded. The parameter from holds the encoded numbers, and the parameter
// to is the buffer for the decoded ones. widen returns false if the decoded numbers do not fill this buffer exactly.
func widen(to, from []byte, f form) bool {
	if len(from) < narrowHead {
		return false
	}
	least, width := int64(binary.LittleEndian.Uint64(from)), int(from[8])
	from = from[narrowHead:]
	switch f {
	case formInt32:
		return widenTo(arrow.Int32Traits.CastFromBytes(to), from, width, func(n int64) int32 { return int32(least + n) })
	case formInt64:
		return widenInt64(arrow.Int64Traits.CastFromBytes(to), from, width, least)
	case formInt128:
		return widenTo(arrow.Decimal128Traits.CastFromBytes(to), from, width, func(n int64) decimal128.Num { return decimal128.FromI64(least + n) })
	}
	return false
}

func widenInt64(to []int64, from []byte, width int, least int64) bool {
	if len(from) != width*len(to) {
		return false
	}
	switch width {
	case 1:
		for i := range to {
			to[i] = least + int64(from[i])
		}
	case 2:
		for i := range to {
			to[i] = least + int64(binary.LittleEndian.Uint16(from[2*i:]))
		}
	case 4:
		for i := range to {
			to[i] = least + int64(binary.LittleEndian.Uint32(from[4*i:]))
		}
	default:
		return false
	}
	return true
}

func widenTo[T any](to []T, from []byte, width int, of func(int64) T) bool {
	if len(from) != width*len(to) {
		return false
	}
	switch width {
	case 1:
		for i := range to {
			to[i] = of(int64(from[i]))
		}
	case 2:
		for i := range to {
			to[i] = of(int64(binary.LittleEndian.Uint16(from[2*i:])))
		}
	case 4:
		for i := range to {
			to[i] = of(int64(binary.LittleEndian.Uint32(from[4*i:])))
		}
	default:
		return false
	}
	return true
}

// appendLengths appends the differences between neighbouring offsets. The first offset must be 0.
func appendLengths(dst, raw []byte) []byte {
	offsets := arrow.Int32Traits.CastFromBytes(raw)
	longest := int32(0)
	for i, o := range offsets[1:] {
		longest = max(longest, o-offsets[i])
	}
	width := widthOf(uint64(longest))
	dst = append(dst, byte(width))
	for i, o := range offsets[1:] {
		dst = appendWidth(dst, uint64(o-offsets[i]), width)
	}
	return dst
}

// sumLengths decodes offsets that appendLengths has encoded. The parameter from holds the encoded offsets, and the
// parameter to is the buffer for the decoded ones. sumLengths returns false if the decoded offsets do not fill this
// buffer exactly, or if an offset overflows.
func sumLengths(to, from []byte) bool {
	if len(from) == 0 || len(to) < 4 {
		return false
	}
	width, offsets := int(from[0]), arrow.Int32Traits.CastFromBytes(to)
	from = from[1:]
	offsets[0] = 0
	offsets = offsets[1:]
	if len(from) != width*len(offsets) {
		return false
	}
	sum := int64(0)
	switch width {
	case 1:
		for i := range offsets {
			sum += int64(from[i])
			offsets[i] = int32(sum)
		}
	case 2:
		for i := range offsets {
			sum += int64(binary.LittleEndian.Uint16(from[2*i:]))
			offsets[i] = int32(sum)
		}
	case 4:
		for i := range offsets {
			sum += int64(binary.LittleEndian.Uint32(from[4*i:]))
			offsets[i] = int32(sum)
		}
	default:
		return false
	}
	return sum <= math.MaxInt32
}
