package arrowmessage

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The numbers of the fields in the flatbuffer tables of a batch.
const (
	batchRows, batchNodes, batchBuffers, batchCompression, batchVariadic = 0, 1, 2, 3, 4

	compressionCodec, compressionMethod = 0, 1

	nodeSize, bufferSize = 16, 16
)

const (
	// mostUnpacked is the largest total size in bytes that the buffers of a message may have after decompression.
	// Larger messages are refused. The limit of 2 GiB is as much as one column with offsets of 32 bits can hold.
	mostUnpacked = math.MaxInt32
	// fewBytes is used for the largest number of values that an array may have. This is 8 values for each byte of the
	// message's body and of its decompressed buffers; if these have fewer than fewBytes bytes, they count as fewBytes.
	// Only values of Arrow's null type need this limit: they take no bytes, so a short message could claim any number
	// of them. Other values take at least one bit each.
	fewBytes = 8 << 10
	// metadataFactor is how many bytes of memory the decoder charges for each byte of the metadata of a batch or a
	// dictionary. It charges more bytes than the metadata has, because the objects that it makes from the metadata are
	// larger. For example, it makes an array from a node, which has 16 bytes in the metadata (see batch).
	metadataFactor = 16
)

// A batch makes the arrays of a message. The message has a list of nodes and a list of buffers. There is one node for
// each array, with the array's length and its number of nulls. Both lists are in the order of the columns, and the
// entries of a column come before those of its children.
type batch struct {
	of       *Decoder
	nodes    []byte
	buffers  []byte
	variadic []byte
	body     []byte
	codec    codec
	unpacked int64 // the total size of decompressed buffers, in bytes
	most     int64 // the largest number of values that an array may have
}

// readBatch reads the flatbuffer table of a batch. It does not make arrays yet.
func (d *Decoder) readBatch(t table, body []byte) *batch {
	b := &batch{of: d, body: body}
	b.nodes, _, _ = t.vector(batchNodes, nodeSize)
	b.buffers, _, _ = t.vector(batchBuffers, bufferSize)
	b.variadic, _, _ = t.vector(batchVariadic, 8)
	if compression, ok := t.table(batchCompression); ok {
		n := compression.uint8(compressionCodec)
		if b.codec = codecs[n]; b.codec == nil || compression.uint8(compressionMethod) != 0 {
			fail("it is compressed in a way that is not known")
		}
	}
	b.checkBuffers()
	b.most = 8 * max(int64(len(body))+b.unpacked, fewBytes)
	return b
}

// checkBuffers checks that all buffers lie in the message's body, and that their total length does not exceed that of
// the body. It also computes their total decompressed size.
func (b *batch) checkBuffers() {
	total := int64(0)
	for at := 0; at < len(b.buffers); at += bufferSize {
		offset, n := int64(binary.LittleEndian.Uint64(b.buffers[at:])), int64(binary.LittleEndian.Uint64(b.buffers[at+8:]))
		if offset < 0 || n < 0 || offset > int64(len(b.body)) || n > int64(len(b.body))-offset {
			fail("a buffer of %d bytes at byte %d is not in a body of %d", n, offset, len(b.body))
		}
		if total += n; total > int64(len(b.body)) {
			fail("its buffers are longer than its body of %d bytes", len(b.body))
		}
		if b.codec != nil && n > 0 {
			b.unpacked += max(0, unpackedSize(b.body[offset:offset+n]))
		}
		if b.unpacked > mostUnpacked {
			fail("its buffers say that they become more than %d bytes", mostUnpacked)
		}
	}
}

// node returns the length and the number of nulls of the next array.
func (b *batch) node() (n, nulls int) {
	if len(b.nodes) == 0 {
		fail("it has fewer arrays than its schema")
	}
	length, null := int64(binary.LittleEndian.Uint64(b.nodes)), int64(binary.LittleEndian.Uint64(b.nodes[8:]))
	b.nodes = b.nodes[nodeSize:]
	if length < 0 || length > b.most || null < 0 || null > length {
		fail("an array of it has %d values, %d of them null", length, null)
	}
	return int(length), int(null)
}

// skip skips the next buffer, and returns its offset and length.
func (b *batch) skip() (offset, n int64) {
	if len(b.buffers) == 0 {
		fail("it has fewer buffers than its schema")
	}
	offset, n = int64(binary.LittleEndian.Uint64(b.buffers)), int64(binary.LittleEndian.Uint64(b.buffers[8:]))
	b.buffers = b.buffers[bufferSize:]
	return offset, n
}

// buffer returns the next buffer, decompressed.
func (b *batch) buffer() []byte {
	offset, n := b.skip()
	stored := b.body[offset : offset+n : offset+n]
	if b.codec == nil || n == 0 {
		return stored
	}
	return b.codec.unpack(stored)
}

// product returns n times size. Both factors come from the message, so it fails if the product exceeds 64 bits.
func product(n, size int) int64 {
	if size > 0 && int64(n) > math.MaxInt64/int64(size) {
		fail("an array of it has %d values of size %d", n, size)
	}
	return int64(n) * int64(size)
}

// sized returns the next buffer. It fails if the buffer has fewer than n bytes; more bytes may follow as padding.
func (b *batch) sized(n int64) []byte {
	buf := b.buffer()
	if n > int64(len(buf)) {
		fail("a buffer has %d bytes in place of %d", len(buf), n)
	}
	return buf
}

// validity returns the validity bitmap of n values and the number of nulls in the bitmap. The bitmap is nil if there
// are no nulls.
func (b *batch) validity(n, nulls int) ([]byte, int) {
	if nulls == 0 {
		b.skip()
		return nil, 0
	}
	valid := b.sized(bitutil.BytesForBits(int64(n)))
	return valid, n - bitutil.CountSetBits(valid, 0, n)
}

func isNull(valid []byte, i int) bool { return valid != nil && bitutil.BitIsNotSet(valid, i) }

// record returns the batch as a record batch of Arrow's library.
func (b *batch) record(columns []column, schema *arrow.Schema, rows int64) arrow.RecordBatch {
	arrays := make([]arrow.Array, len(columns))
	for i := range columns {
		data := b.array(&columns[i])
		if int64(data.Len()) != rows {
			fail("column %.64q has %d rows in place of %d", columns[i].Name, data.Len(), rows)
		}
		arrays[i] = array.MakeFromData(data)
	}
	if rows < 0 || rows > b.most {
		fail("it says that it has %d rows", rows)
	}
	return array.NewRecordBatch(schema, arrays, rows)
}

// array reads the next array.
func (b *batch) array(c *column) *array.Data {
	n, nulls := b.node()
	switch t := c.storage.(type) {
	case *arrow.NullType:
		return arrayOf(c, n, n, nil, nil)
	case *arrow.DictionaryType:
		return b.encoded(c, t, n, nulls)
	case *arrow.BooleanType:
		valid, nulls := b.validity(n, nulls)
		return arrayOf(c, n, nulls, nil, valid, b.sized(bitutil.BytesForBits(int64(n))))
	case arrow.BinaryViewDataType:
		return b.views(c, n, nulls)
	case *arrow.ListViewType:
		valid, nulls := b.validity(n, nulls)
		offsets, sizes := b.sized(4*int64(n)), b.sized(4*int64(n))
		child := b.array(&c.children[0])
		checkSpans(int32s(offsets)[:n], int32s(sizes)[:n], child.Len())
		return arrayOf(c, n, nulls, child, valid, offsets, sizes)
	case *arrow.LargeListViewType:
		valid, nulls := b.validity(n, nulls)
		offsets, sizes := b.sized(8*int64(n)), b.sized(8*int64(n))
		child := b.array(&c.children[0])
		checkSpans(int64s(offsets)[:n], int64s(sizes)[:n], child.Len())
		return arrayOf(c, n, nulls, child, valid, offsets, sizes)
	case *arrow.FixedSizeListType:
		valid, nulls := b.validity(n, nulls)
		child := b.array(&c.children[0])
		if wanted := product(n, int(t.Len())); wanted > int64(child.Len()) {
			fail("a list of it has %d values in place of %d", child.Len(), wanted)
		}
		return arrayOf(c, n, nulls, child, valid)
	case *arrow.StructType:
		return b.structs(c, n, nulls)
	case arrow.FixedWidthDataType:
		valid, nulls := b.validity(n, nulls)
		return arrayOf(c, n, nulls, nil, valid, b.sized(product(n, t.Bytes())))
	}
	valid, nulls := b.validity(n, nulls)
	return b.offsets(c, n, nulls, valid)
}

// arrayOf returns the data of an array with the given buffers. A buffer may be nil, such as the bitmap of an array
// without nulls.
func arrayOf(c *column, n, nulls int, child *array.Data, buffers ...[]byte) *array.Data {
	list := make([]*memory.Buffer, len(buffers))
	for i, b := range buffers {
		if b != nil {
			list[i] = memory.NewBufferBytes(b)
		}
	}
	var children []arrow.ArrayData
	if child != nil {
		children = []arrow.ArrayData{child}
	}
	return array.NewData(c.Type, n, list, children, nulls, 0)
}

// offsets makes an array of a type whose values are given by offsets: texts, lists and maps.
func (b *batch) offsets(c *column, n, nulls int, valid []byte) *array.Data {
	wide := false
	switch c.storage.(type) {
	case *arrow.LargeStringType, *arrow.LargeBinaryType, *arrow.LargeListType:
		wide = true
	}
	offsets := b.buffer()
	if n == 0 && len(offsets) == 0 {
		offsets = make([]byte, 8) // an array without values has one offset, 0, which writers may omit
	}
	var child *array.Data
	var text []byte
	length := 0
	if len(c.children) > 0 {
		child = b.array(&c.children[0])
		length = child.Len()
		if _, isMap := c.storage.(*arrow.MapType); isMap && (child.NullN() > 0 || child.Children()[0].NullN() > 0) {
			fail("an entry of the map %.64q, or its key, is null", c.Name)
		}
	} else {
		text = b.buffer()
		length = len(text)
	}
	if wide {
		checkOffsets(int64s(offsets), n, length)
	} else {
		checkOffsets(int32s(offsets), n, length)
	}
	if child != nil {
		return arrayOf(c, n, nulls, child, valid, offsets)
	}
	if text == nil {
		text = []byte{}
	}
	return arrayOf(c, n, nulls, nil, valid, offsets, text)
}

func int32s(b []byte) []int32 { return arrow.Int32Traits.CastFromBytes(b) }
func int64s(b []byte) []int64 { return arrow.Int64Traits.CastFromBytes(b) }

// checkOffsets checks that the offsets of n values do not decrease, and that the values lie within the text or the
// child array to which the offsets refer. The parameter length is the number of bytes in the text, or of elements in
// the child array.
func checkOffsets[T int32 | int64](offsets []T, n, length int) {
	if n >= len(offsets) {
		fail("%d values have %d offsets", n, len(offsets))
	}
	last := T(0)
	for _, at := range offsets[:n+1] {
		if at < last {
			fail("an offset goes back from %d to %d", last, at)
		}
		last = at
	}
	if int64(last) > int64(length) {
		fail("an offset of %d leads beyond %d", last, length)
	}
}

// checkSpans checks that each list, given by an offset and a size, lies within the child array. The parameter length is
// the number of elements in the child array. The lists may be in any order and overlap.
func checkSpans[T int32 | int64](offsets, sizes []T, length int) {
	for i, at := range offsets {
		if n := sizes[i]; at < 0 || n < 0 || int64(at) > int64(length) || int64(n) > int64(length)-int64(at) {
			fail("a list of %d values from %d on leads beyond %d", n, at, length)
		}
	}
}

// structs makes an array of structs. The arrays of their fields must have the same length.
func (b *batch) structs(c *column, n, nulls int) *array.Data {
	valid, nulls := b.validity(n, nulls)
	children := make([]arrow.ArrayData, len(c.children))
	for i := range c.children {
		child := b.array(&c.children[i])
		if child.Len() != n {
			fail("field %.64q of a struct has %d values in place of %d", c.children[i].Name, child.Len(), n)
		}
		children[i] = child
	}
	data := arrayOf(c, n, nulls, nil, valid)
	return array.NewData(c.Type, n, data.Buffers(), children, nulls, 0)
}

const (
	viewSize = 16
	// shortView is the largest number of bytes of a text that is stored in its view. A view is the entry of viewSize
	// bytes that each text has in Arrow's view layout (see the method views).
	shortView = 12
)

// views makes an array of texts in view layout. The view of a short text contains the text. The view of a long text
// says in which of several buffers, and where, the text is.
func (b *batch) views(c *column, n, nulls int) *array.Data {
	if len(b.variadic) == 0 {
		fail("it has fewer counts of buffers than its schema")
	}
	count := int64(binary.LittleEndian.Uint64(b.variadic))
	b.variadic = b.variadic[8:]
	valid, nulls := b.validity(n, nulls)
	views := b.sized(viewSize * int64(n))
	if count < 0 || count > int64(len(b.buffers)/bufferSize) {
		fail("a column of views says that it has %d buffers", count)
	}
	buffers := make([][]byte, 2+count)
	buffers[0], buffers[1] = valid, views
	for i := range count {
		if buffers[2+i] = b.buffer(); buffers[2+i] == nil {
			buffers[2+i] = []byte{}
		}
	}
	for i := range n {
		v := views[viewSize*i:]
		size, in, at := int32(binary.LittleEndian.Uint32(v)), int32(binary.LittleEndian.Uint32(v[8:])), int32(binary.LittleEndian.Uint32(v[12:]))
		if size >= 0 && size <= shortView || isNull(valid, i) {
			continue
		}
		if size < 0 || in < 0 || int64(in) >= count || at < 0 || int64(at)+int64(size) > int64(len(buffers[2+in])) {
			fail("a view of %d bytes leads to byte %d of buffer %d of %d", size, at, in, count)
		}
	}
	return arrayOf(c, n, nulls, nil, buffers...)
}

// encoded makes an array of indices into a dictionary, and checks that each refers to a value of the dictionary.
func (b *batch) encoded(c *column, t *arrow.DictionaryType, n, nulls int) *array.Data {
	valid, nulls := b.validity(n, nulls)
	width := t.IndexType.(arrow.FixedWidthDataType).Bytes()
	indices := b.sized(int64(n) * int64(width))
	dictionary := b.of.dictionaries[c.dictionary]
	if dictionary == nil {
		fail("it has values of dictionary %d, which did not come", c.dictionary)
	}
	for i := range n {
		if at := indexAt(indices[i*width:], t.IndexType.ID()); (at < 0 || at >= int64(dictionary.values.Len())) && !isNull(valid, i) {
			fail("value %d of a dictionary of %d is asked for", at, dictionary.values.Len())
		}
	}
	data := arrayOf(c, n, nulls, nil, valid, indices)
	data.SetDictionary(dictionary.values)
	return data
}

// indexAt decodes an index of the given integer type. A UINT64 that does not fit into INT64 becomes negative, so that
// it is refused.
func indexAt(b []byte, of arrow.Type) int64 {
	switch of {
	case arrow.INT8:
		return int64(int8(b[0]))
	case arrow.UINT8:
		return int64(b[0])
	case arrow.INT16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case arrow.UINT16:
		return int64(binary.LittleEndian.Uint16(b))
	case arrow.INT32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case arrow.UINT32:
		return int64(binary.LittleEndian.Uint32(b))
	}
	return int64(binary.LittleEndian.Uint64(b))
}
