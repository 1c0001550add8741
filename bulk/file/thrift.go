package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// thrift decodes structs in the compact protocol of Apache Thrift
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md). Parquet files have such structs
// in the footer and before each page. Each count and length is checked against the number of remaining bytes. After
// the first error, which is stored in err, all further values are 0.
type thrift struct {
	b       []byte // bytes that are not yet read
	structs int    // how many more structs are allowed
	err     error  // io.ErrUnexpectedEOF if the bytes end within the struct
}

// The types of values and of fields.
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftInt16  = 4
	thriftInt32  = 5
	thriftInt64  = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// thriftDepth limits the nesting of structs and containers. Parquet's own structs are up to 7 deep.
const thriftDepth = 20

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.b, t.err = nil, err
	}
}

// next returns the next n bytes, or nil if fewer bytes remain.
func (t *thrift) next(n uint64) []byte {
	if n > uint64(len(t.b)) {
		t.fail(io.ErrUnexpectedEOF)
		return nil
	}
	b := t.b[:n]
	t.b = t.b[n:]
	return b
}

func (t *thrift) byte() byte {
	if b := t.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (t *thrift) unsigned() uint64 {
	v, n := binary.Uvarint(t.b)
	if n < 0 {
		t.fail(errors.New("a number has more than 64 bits"))
		return 0
	}
	if n == 0 {
		t.fail(io.ErrUnexpectedEOF)
		return 0
	}
	t.b = t.b[n:]
	return v
}

func (t *thrift) int() int64 {
	v := t.unsigned()
	return int64(v>>1) ^ -int64(v&1)
}

// list reads the header of a list: the number n of its elements, and their type. It checks that n bytes remain, since
// each element has at least one byte.
func (t *thrift) list() (n int, kind byte) {
	head := t.byte()
	count := uint64(head >> 4)
	if count == 15 {
		count = t.unsigned()
	}
	if count > uint64(len(t.b)) {
		t.fail(io.ErrUnexpectedEOF)
		return 0, 0
	}
	return int(count), head & 15
}

// thriftLayout describes, by field id, those fields of a struct that are lists or that contain lists. Arrow's library
// reads the elements of a list as the type that the Parquet format prescribes, without checking the type in the list's
// header. So skip, which checks the bytes before Arrow's library reads them, refuses a list whose header has another
// type.
type thriftLayout map[int64]thriftField

type thriftField struct {
	elements byte         // the type of a list's elements
	within   thriftLayout // the layout of the struct, or of the structs in the list
}

// fields reads a struct and calls the function read for each field. If the function returns true, it has read the
// field's value. If it returns false, it has read nothing, and fields skips the value.
func (t *thrift) fields(depth int, layout thriftLayout, read func(id int64, kind byte) bool) {
	if t.structs--; t.structs < 0 || depth > thriftDepth {
		t.fail(errors.New("it has more structs than a file has, or deeper ones"))
	}
	id := int64(0)
	for t.err == nil {
		head := t.byte()
		kind := head & 15
		if kind == thriftStop {
			return
		}
		if delta := head >> 4; delta > 0 {
			id += int64(delta)
		} else {
			id = t.int()
		}
		if read == nil || !read(id, kind) {
			t.skip(kind, depth, layout[id])
		}
	}
}

// int32s reads a struct and stores the values of some of its fields. The map to has an entry for each of these fields:
// the key is the field's id, and the value points to the variable that gets the field's value.
func (t *thrift) int32s(depth int, to map[int64]*int64) {
	t.fields(depth, nil, func(id int64, kind byte) bool { return t.int32(kind, to[id]) })
}

// int32 reads the value of a field into the variable to which the parameter to points. If the parameter is nil, or if
// the field has another type than a 32-bit integer, it reads nothing and returns false.
func (t *thrift) int32(kind byte, to *int64) bool {
	if to == nil || kind != thriftInt32 {
		return false
	}
	if *to = t.int(); *to != int64(int32(*to)) {
		t.fail(fmt.Errorf("%d has more than 32 bits", *to))
	}
	return true
}

// skip skips the value of a field.
func (t *thrift) skip(kind byte, depth int, f thriftField) {
	switch kind {
	case thriftTrue, thriftFalse: // the type contains the value
	case thriftList, thriftSet:
		n, kind := t.list()
		if f.elements != 0 && f.elements != kind {
			t.fail(fmt.Errorf("a list has values of the type %d in place of %d", kind, f.elements))
		}
		for ; n > 0 && t.err == nil; n-- {
			t.skipElement(kind, depth+1, f.within)
		}
	case thriftMap:
		n := t.unsigned()
		if n == 0 {
			return
		}
		kinds := t.byte()
		for ; n > 0 && t.err == nil; n-- {
			t.skipElement(kinds>>4, depth+1, nil)
			t.skipElement(kinds&15, depth+1, nil)
		}
	default:
		t.skipElement(kind, depth, f.within)
	}
}

// skipElement skips an element of a container. Unlike in a field, a boolean in a container takes a byte.
func (t *thrift) skipElement(kind byte, depth int, layout thriftLayout) {
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		t.byte()
	case thriftInt16, thriftInt32, thriftInt64:
		t.unsigned()
	case thriftDouble:
		t.next(8)
	case thriftBinary:
		t.next(t.unsigned())
	case thriftUUID:
		t.next(16)
	case thriftStruct:
		t.fields(depth+1, layout, nil)
	case thriftList, thriftSet, thriftMap:
		if depth > thriftDepth {
			t.fail(errors.New("its containers stand deeper in each other than in a file"))
			return
		}
		t.skip(kind, depth, thriftField{})
	default:
		t.fail(fmt.Errorf("it has values of a type %d", kind))
	}
}
