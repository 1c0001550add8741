package columnar

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/value"
)

// textColumn is a column of STRING, BYTES, JSON or PROTO.
type textColumn struct {
	base
	offsets []int32
	text    []byte
	room    []byte // buffer for the text of a key part that AppendKey decodes
}

// errTooLong should never be returned, because callers end a batch long before a column reaches 2 GiB.
var errTooLong = fmt.Errorf("more than 2 GiB in one column of a batch")

func (c *textColumn) append(text []byte) error {
	if len(c.text)+len(text) > math.MaxInt32 {
		return errTooLong
	}
	c.set()
	c.text = append(c.text, text...)
	c.offsets = append(c.offsets, int32(len(c.text)))
	return nil
}

func (c *textColumn) AppendNull() {
	c.null()
	c.offsets = append(c.offsets, int32(len(c.text)))
}

func (c *textColumn) AppendValue(v value.Value) error {
	if v.IsNull() {
		c.AppendNull()
		return nil
	}
	return c.append(v.AsBytes())
}

func (c *textColumn) AppendRow(payload []byte) error { return c.append(payload) }

func (c *textColumn) AppendKey(key []byte, desc bool) error {
	text, room, null, err := value.KeyText(key, c.room, c.typ, desc)
	c.room = room
	switch {
	case err != nil:
		return err
	case null:
		c.AppendNull()
		return nil
	}
	return c.append(text)
}

func (c *textColumn) appendArray(a arrow.ArrayData, from, to int) error {
	if from == to {
		return nil
	}
	offsets := arrow.Int32Traits.CastFromBytes(a.Buffers()[1].Bytes())[a.Offset()+from : a.Offset()+to+1]
	first, last := offsets[0], offsets[len(offsets)-1]
	if len(c.text)+int(last-first) > math.MaxInt32 {
		return errTooLong
	}
	c.validity(a, from, to)
	c.offsets = rebase(c.offsets, offsets, int32(len(c.text)))
	if last > first { // if all values are empty, the array may have no buffer for texts
		c.text = append(c.text, a.Buffers()[2].Bytes()[first:last]...)
	}
	return nil
}

// rebase converts the offsets of an array to offsets in a column, and appends them, except the first, to dst. The first
// value begins at offsets[0] in the array. The parameter start is the offset in the column at which it begins there.
func rebase(dst, offsets []int32, start int32) []int32 {
	by := start - offsets[0]
	for _, o := range offsets[1:] {
		dst = append(dst, o+by)
	}
	return dst
}

func (c *textColumn) used() int64 { return int64(len(c.text) + 4*len(c.offsets) + len(c.valid)) }
func (c *textColumn) size() int64 { return int64(cap(c.text) + 4*cap(c.offsets) + cap(c.valid)) }
func (c *textColumn) truncate() {
	c.base.truncate()
	c.text, c.offsets = c.text[:0], c.offsets[:1]
}
func (c *textColumn) data() arrow.ArrayData {
	return c.arrayData(nil, arrow.Int32Traits.CastToBytes(c.offsets), c.text)
}

// listColumn is a column of ARRAY.
type listColumn struct {
	base
	offsets []int32
	elems   column
}

// end records that all elements of one array value were appended.
func (c *listColumn) end() error {
	if c.elems.len() > math.MaxInt32 {
		return errTooLong
	}
	c.set()
	c.offsets = append(c.offsets, int32(c.elems.len()))
	return nil
}

func (c *listColumn) AppendNull() {
	c.null()
	c.offsets = append(c.offsets, int32(c.elems.len()))
}

func (c *listColumn) AppendValue(v value.Value) error {
	if v.IsNull() {
		c.AppendNull()
		return nil
	}
	for _, e := range v.AsList() {
		if err := c.elems.AppendValue(e); err != nil {
			return err
		}
	}
	return c.end()
}

func (c *listColumn) AppendRow(payload []byte) error {
	count, elements, err := value.RowElements(payload)
	for i := 0; err == nil && i < count; i++ {
		elements, err = appendElement(c.elems, elements)
	}
	if err != nil {
		return err
	}
	return c.end()
}

// appendElement appends to c the stored element at the start of b, and returns the rest of b.
func appendElement(c column, b []byte) (rest []byte, err error) {
	payload, rest, err := value.NextElement(b)
	switch {
	case err != nil:
		return nil, err
	case payload == nil:
		c.AppendNull()
		return rest, nil
	}
	return rest, c.AppendRow(payload)
}

// AppendKey implements value.Column. It always fails, because a key cannot contain an ARRAY.
func (c *listColumn) AppendKey([]byte, bool) error { return errNoKey }

var errNoKey = fmt.Errorf("a part of a key that is an ARRAY or STRUCT")

func (c *listColumn) appendArray(a arrow.ArrayData, from, to int) error {
	if from == to {
		return nil
	}
	offsets := arrow.Int32Traits.CastFromBytes(a.Buffers()[1].Bytes())[a.Offset()+from : a.Offset()+to+1]
	first, last := offsets[0], offsets[len(offsets)-1]
	start := c.elems.len()
	if start+int(last-first) > math.MaxInt32 {
		return errTooLong
	}
	c.validity(a, from, to)
	c.offsets = rebase(c.offsets, offsets, int32(start))
	return c.elems.appendArray(a.Children()[0], int(first), int(last))
}

func (c *listColumn) used() int64 {
	return int64(4*len(c.offsets)+len(c.valid)) + c.elems.used()
}
func (c *listColumn) size() int64 {
	return int64(4*cap(c.offsets)+cap(c.valid)) + c.elems.size()
}
func (c *listColumn) truncate() {
	c.base.truncate()
	c.offsets = c.offsets[:1]
	c.elems.truncate()
}
func (c *listColumn) data() arrow.ArrayData {
	return c.arrayData([]arrow.ArrayData{c.elems.data()}, arrow.Int32Traits.CastToBytes(c.offsets))
}

// structColumn is a column of STRUCT.
type structColumn struct {
	base
	fields []column
}

func (c *structColumn) AppendNull() {
	c.null()
	for _, f := range c.fields {
		f.AppendNull()
	}
}

func (c *structColumn) AppendValue(v value.Value) error {
	if v.IsNull() {
		c.AppendNull()
		return nil
	}
	for i, f := range v.AsList() {
		if err := c.fields[i].AppendValue(f); err != nil {
			return err
		}
	}
	c.set()
	return nil
}

func (c *structColumn) AppendRow(payload []byte) (err error) {
	for _, f := range c.fields {
		if payload, err = appendElement(f, payload); err != nil {
			return err
		}
	}
	c.set()
	return nil
}

// AppendKey implements value.Column. It always fails, because a key cannot contain a STRUCT.
func (c *structColumn) AppendKey([]byte, bool) error { return errNoKey }

func (c *structColumn) appendArray(a arrow.ArrayData, from, to int) error {
	for i, f := range c.fields {
		// The children of a sliced array are not sliced, so the array's offset must be added here.
		if err := f.appendArray(a.Children()[i], a.Offset()+from, a.Offset()+to); err != nil {
			return err
		}
	}
	c.validity(a, from, to)
	return nil
}

func (c *structColumn) used() int64 {
	n := int64(len(c.valid))
	for _, f := range c.fields {
		n += f.used()
	}
	return n
}
func (c *structColumn) size() int64 {
	n := int64(cap(c.valid))
	for _, f := range c.fields {
		n += f.size()
	}
	return n
}
func (c *structColumn) truncate() {
	c.base.truncate()
	for _, f := range c.fields {
		f.truncate()
	}
}
func (c *structColumn) data() arrow.ArrayData {
	children := make([]arrow.ArrayData, len(c.fields))
	for i, f := range c.fields {
		children[i] = f.data()
	}
	return c.arrayData(children)
}
