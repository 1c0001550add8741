package arrowmessage

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A FormatError is the error for a malformed message.
type FormatError struct{ text string }

func (e *FormatError) Error() string { return e.text }

// fail ends the decoding of a message with a panic. Exported functions turn the panic into an error with
// recoverFormat.
func fail(format string, args ...any) { panic(&FormatError{fmt.Sprintf(format, args...)}) }

// recoverFormat turns a panic of fail into an error, which it stores in err. It must be called directly by a defer
// statement.
func recoverFormat(err *error) {
	switch p := recover().(type) {
	case nil:
	case *FormatError:
		*err = p
	default:
		panic(p)
	}
}

// A flatbuffer is the metadata of a message (https://flatbuffers.dev/internals). Offsets to tables, vectors and
// strings always point forward, so no table can contain itself.
type flatbuffer struct {
	bytes []byte
	// left is how many bytes of tables, vectors and strings may still be read. A limit is needed because a part that
	// is shared is read several times: if tables were shared at every level, each level would double the number of
	// reads. Programs that write flatbuffers share some strings, but little else.
	left int
}

// sharing limits how much is shared in a flatbuffer: the total size of the parts that are read may be at most this
// many times the size of the flatbuffer.
const sharing = 4

func newFlatbuffer(b []byte) *flatbuffer { return &flatbuffer{b, sharing * len(b)} }

// part returns the n bytes that begin at position at, and subtracts n from left, the number of bytes that may still be
// read. It fails if some of the bytes lie outside of the flatbuffer, or if n is greater than left.
func (f *flatbuffer) part(at, n int) []byte {
	if at < 0 || n < 0 || n > len(f.bytes)-at {
		fail("its metadata lead to byte %d of %d", at, len(f.bytes))
	}
	if f.left -= n; f.left < 0 {
		fail("its metadata refer to the same parts again and again")
	}
	return f.bytes[at : at+n : at+n]
}

// target reads the offset at position at, and returns the position to which that offset points.
func (f *flatbuffer) target(at int) int {
	offset := binary.LittleEndian.Uint32(f.part(at, 4))
	if offset < 4 || offset > math.MaxInt32 {
		fail("its metadata have an offset of %d", offset)
	}
	return at + int(offset)
}

// root returns the root table of the flatbuffer.
func (f *flatbuffer) root() table { return f.table(f.target(0)) }

// A table is a flatbuffer table. It has numbered fields. The zero table has no fields.
type table struct {
	of     *flatbuffer
	at     int    // the position of its bytes in the flatbuffer
	bytes  []byte // the table; its first 4 bytes say how far before the table its layout is
	layout []byte // for each field, 2 bytes with its index in the slice bytes; 0 if the field is missing
}

func (f *flatbuffer) table(at int) table {
	layout := at - int(int32(binary.LittleEndian.Uint32(f.part(at, 4))))
	head := f.part(layout, 4)
	size := int(binary.LittleEndian.Uint16(head))
	if size < 4 || size%2 != 0 {
		fail("a table of its metadata has a layout of %d bytes", size)
	}
	t := table{of: f, at: at, bytes: f.part(at, max(4, int(binary.LittleEndian.Uint16(head[2:]))))}
	f.left += size // tables may share layouts without limit
	t.layout = f.part(layout, size)[4:]
	return t
}

// field returns the bytes of field i, or nil if the field is missing. The parameter width is the field's size in bytes.
func (t table) field(i, width int) []byte {
	if 2*i >= len(t.layout) {
		return nil
	}
	at := int(binary.LittleEndian.Uint16(t.layout[2*i:]))
	if at == 0 {
		return nil
	}
	if at < 4 || at+width > len(t.bytes) {
		fail("a field of its metadata is not within its table")
	}
	return t.bytes[at : at+width]
}

func (t table) uint8(i int) uint8 {
	if b := t.field(i, 1); b != nil {
		return b[0]
	}
	return 0
}

func (t table) bool(i int) bool { return t.uint8(i) != 0 }

func (t table) int16(i int, absent int16) int16 {
	if b := t.field(i, 2); b != nil {
		return int16(binary.LittleEndian.Uint16(b))
	}
	return absent
}

func (t table) int32(i int, absent int32) int32 {
	if b := t.field(i, 4); b != nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return absent
}

func (t table) int64(i int) int64 {
	if b := t.field(i, 8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// target returns the position to which field i of a table points. ok is false if the field is missing.
func (t table) target(i int) (at int, ok bool) {
	if t.field(i, 4) == nil {
		return 0, false
	}
	return t.of.target(t.at + int(binary.LittleEndian.Uint16(t.layout[2*i:]))), true
}

// table returns the table to which field i refers. ok is false if the field is missing.
func (t table) table(i int) (_ table, ok bool) {
	at, ok := t.target(i)
	if !ok {
		return table{}, false
	}
	return t.of.table(at), true
}

// vector returns the bytes of the vector to which field i refers, the number of its elements, and its position. Each
// element has width bytes.
func (t table) vector(i, width int) (b []byte, n, at int) {
	at, ok := t.target(i)
	if !ok {
		return nil, 0, 0
	}
	n = int(binary.LittleEndian.Uint32(t.of.part(at, 4)))
	if n > len(t.of.bytes)/width {
		fail("a list of %d elements does not fit into its metadata", n)
	}
	return t.of.part(at+4, n*width), n, at + 4
}

// tables returns the tables in the vector to which field i refers.
func (t table) tables(i int) []table {
	_, n, at := t.vector(i, 4)
	if n == 0 {
		return nil
	}
	list := make([]table, n)
	for k := range list {
		list[k] = t.of.table(t.of.target(at + 4*k))
	}
	return list
}

func (t table) string(i int) string {
	b, _, _ := t.vector(i, 1)
	return string(b)
}
