package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/pierrec/lz4/v4"
)

// The blob of a column holds the buffers of an Arrow array. The schema of the table determines the array's type. The
// layout is:
//
//	version (1 byte), CRC-32C of what follows (4 bytes, little endian), length of the head (uvarint), head, buffers
//
// The head describes the array and then each of its children. For an array it has the number of values, the number of
// NULLs, and for each buffer the length, the coding and the stored length. All of these are uvarints. The first buffer
// is the validity bitmap, which is empty if there are no NULLs.
const (
	blobVersion = 1
	blobHead    = 5
)

// Codings of a buffer.
const (
	asIs      = iota
	asLZ4     // an LZ4 block, if that is smaller by 1/minSaved
	asNarrow  // whole numbers, stored as differences from the smallest one (narrow.go)
	asLengths // offsets, stored as the lengths of the values (narrow.go)
)

// An LZ4 block is used only if it saves at least 1/minSaved of a buffer, since reading an uncompressed buffer takes a
// fraction of the time that reading an LZ4 block takes.
const minSaved = 3

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An encoder makes blobs. It reuses its buffers for the next blob.
type encoder struct {
	lz4  lz4.Compressor
	head []byte
	body []byte
	room []byte
}

// appendBlob appends the blob of an array to dst. A columnar.Batch must have made the array.
func (e *encoder) appendBlob(dst []byte, a arrow.ArrayData) ([]byte, error) {
	e.head, e.body = e.head[:0], e.body[:0]
	if err := e.array(a); err != nil {
		return nil, err
	}
	start := len(dst)
	dst = append(dst, blobVersion, 0, 0, 0, 0)
	dst = binary.AppendUvarint(dst, uint64(len(e.head)))
	dst = append(append(dst, e.head...), e.body...)
	seal(dst[start:])
	return dst, nil
}

// seal computes the checksum of a blob and writes it into the blob.
func seal(blob []byte) {
	binary.LittleEndian.PutUint32(blob[1:], crc32.Checksum(blob[blobHead:], castagnoli))
}

func (e *encoder) array(a arrow.ArrayData) error {
	e.head = binary.AppendUvarint(e.head, uint64(a.Len()))
	e.head = binary.AppendUvarint(e.head, uint64(a.NullN()))
	for i, b := range a.Buffers() {
		var raw []byte
		if b != nil {
			raw = b.Bytes()
		}
		if err := e.buffer(raw, formOf(a.DataType(), i)); err != nil {
			return err
		}
	}
	for _, child := range a.Children() {
		if err := e.array(child); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) buffer(raw []byte, f form) error {
	e.head = binary.AppendUvarint(e.head, uint64(len(raw)))
	coding, stored, err := e.code(raw, f)
	e.head = binary.AppendUvarint(e.head, coding)
	e.head = binary.AppendUvarint(e.head, uint64(len(stored)))
	e.body = append(e.body, stored...)
	return err
}

// code chooses the coding of a buffer, and returns the bytes to store. The parameter f is the type of the buffer's
// elements.
func (e *encoder) code(raw []byte, f form) (coding uint64, stored []byte, err error) {
	var ok bool
	switch f {
	case formBytes:
	case formOffsets:
		e.room = appendLengths(e.room[:0], raw)
		return asLengths, e.room, nil
	default:
		if e.room, ok = appendNarrow(e.room[:0], raw, f); ok {
			return asNarrow, e.room, nil
		}
	}
	most := len(raw) - len(raw)/minSaved
	if cap(e.room) < most {
		e.room = make([]byte, most)
	}
	n, err := e.lz4.CompressBlock(raw, e.room[:most])
	switch {
	case errors.Is(err, lz4.ErrInvalidSourceShortBuffer):
		return asIs, raw, nil
	case err != nil:
		return asIs, nil, err
	case n == 0:
		return asIs, raw, nil
	}
	return asLZ4, e.room[:n], nil
}

// A decoder decodes blobs to arrays. It reuses its memory for the next blob.
type decoder struct {
	buffers [][]byte
	next    int // index of the next free element of buffers
	head    fields
	body    []byte
}

var errBlob = errors.New("malformed blob of a column")

// checkBlob returns an error if the version or the checksum of a blob is wrong.
func checkBlob(blob []byte) error {
	if len(blob) < blobHead || blob[0] != blobVersion {
		return errBlob
	}
	if binary.LittleEndian.Uint32(blob[1:]) != crc32.Checksum(blob[blobHead:], castagnoli) {
		return fmt.Errorf("%w: wrong checksum", errBlob)
	}
	return nil
}

// decode returns the array of a blob. The array must have the type dt and the given number of rows. It does not refer
// to the blob, and is valid until the next call of decode.
func (d *decoder) decode(blob []byte, dt arrow.DataType, rows int64) (arrow.Array, error) {
	if err := checkBlob(blob); err != nil {
		return nil, err
	}
	length := fields{rest: blob[blobHead:]}
	n := length.uint()
	if n > uint64(len(length.rest)) {
		return nil, errBlob
	}
	d.head, d.body, d.next = fields{rest: length.rest[:n]}, length.rest[n:], 0
	data, err := d.array(dt)
	if err != nil {
		return nil, err
	}
	if int64(data.Len()) != rows || d.head.bad || len(d.head.rest) > 0 || len(d.body) > 0 {
		return nil, errBlob
	}
	return array.MakeFromData(data), nil
}

// size returns how many bytes of memory the decoder holds.
func (d *decoder) size() (n int64) {
	for _, b := range d.buffers {
		n += int64(cap(b))
	}
	return n
}

func (d *decoder) array(dt arrow.DataType) (arrow.ArrayData, error) {
	n, nulls := d.head.uint(), d.head.uint()
	if n > maxBuffer || nulls > n {
		return nil, errBlob
	}
	list := make([]*memory.Buffer, len(dt.Layout().Buffers))
	for i := range list {
		raw, err := d.buffer(formOf(dt, i))
		if err != nil {
			return nil, err
		}
		if i > 0 || nulls > 0 {
			list[i] = memory.NewBufferBytes(raw)
		}
	}
	elements, ok := fits(dt, int(n), list)
	if !ok {
		return nil, errBlob
	}
	var children []arrow.ArrayData
	if nested, is := dt.(arrow.NestedType); is {
		for _, f := range nested.Fields() {
			child, err := d.array(f.Type)
			if err != nil {
				return nil, err
			}
			if child.Len() != elements {
				return nil, errBlob
			}
			children = append(children, child)
		}
	}
	return array.NewData(dt, int(n), list, children, int(nulls), 0), nil
}

// fits checks the buffers of an array. ok is true if they are long enough for n values. elements is the number of
// values that the children of the array must have.
func fits(dt arrow.DataType, n int, list []*memory.Buffer) (elements int, ok bool) {
	if list[0] != nil && list[0].Len() < (n+7)/8 {
		return 0, false
	}
	switch dt := dt.(type) {
	case arrow.BinaryDataType:
		last, ok := lastOffset(list[1], n)
		return 0, ok && last <= list[2].Len()
	case *arrow.ListType:
		return lastOffset(list[1], n)
	case *arrow.StructType:
		return n, true
	case arrow.FixedWidthDataType:
		return 0, list[1].Len() >= (n*dt.BitWidth()+7)/8
	}
	return 0, false
}

func lastOffset(b *memory.Buffer, n int) (last int, ok bool) {
	offsets := arrow.Int32Traits.CastFromBytes(b.Bytes())
	if len(offsets) != n+1 {
		return 0, false
	}
	return int(offsets[n]), true
}

// buffer decodes the next buffer of the blob.
func (d *decoder) buffer(f form) ([]byte, error) {
	length, coding, stored := d.head.uint(), d.head.uint(), d.head.uint()
	if stored > uint64(len(d.body)) || length > maxBuffer {
		return nil, errBlob
	}
	from := d.body[:stored]
	d.body = d.body[stored:]
	to := d.room(int(length))
	ok := false
	if (f == formOffsets) != (coding == asLengths) || length%f.width() != 0 {
		return nil, errBlob
	}
	switch coding {
	case asIs:
		ok = copy(to, from) == len(to) && len(from) == len(to)
	case asLZ4:
		n, err := lz4.UncompressBlock(from, to)
		ok = err == nil && n == len(to)
	case asNarrow:
		ok = widen(to, from, f)
	case asLengths:
		ok = sumLengths(to, from)
	}
	if !ok {
		return nil, errBlob
	}
	return to, nil
}

// maxBuffer is the maximum size in bytes of a buffer in an array of a columnar.Batch.
const maxBuffer = 1 << 31

// room returns a buffer of n bytes, which it reuses for the next blob.
func (d *decoder) room(n int) []byte {
	if d.next == len(d.buffers) {
		d.buffers = append(d.buffers, nil)
	}
	b := &d.buffers[d.next]
	d.next++
	if cap(*b) < n {
		*b = make([]byte, (n+n/8+63)&^63) // a multiple of 64, as Arrow recommends
	}
	*b = (*b)[:n]
	return *b
}
