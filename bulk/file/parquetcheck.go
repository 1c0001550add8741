package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	parquetfile "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// The checks in this file are needed because a damaged Parquet file can make Arrow's library allocate much memory. The
// library limits the sizes of pages, but not four other allocations: for the children of a column, for the values of a
// dictionary, for the values of a block of deltas, and for values that share prefixes. The allocator of this package
// cannot limit them either, because the library does not use it for them. So we check the footer before the library
// reads it, and the pages of a row group before the library reads the row group. For that we read the headers of all
// pages. We read the contents only of pages with a delta encoding, which few writers choose.

// The limits of the checks. The reader returns an error for a file that exceeds one of them.
const (
	// mostStructs is the largest number of structs in a footer. A row group has about 6 structs for each column.
	mostStructs = 1 << 23
	// deepestColumn is the largest number of nested groups that a column may be in. A list consists of two groups.
	deepestColumn = 32
	// longestFixed is the largest number of bytes in a value of fixed length. This needs a limit because the library
	// allocates memory for a whole batch of such values.
	longestFixed = 64 << 10
	// mostPageBytes is the largest total size in bytes of the pages that are in memory at once: a page and a dictionary of
	// each column.
	mostPageBytes = 2 << 30
	// mostBlockValues is the largest number of values in a block of deltas. Writers make blocks of 128 to 1,024
	// values.
	mostBlockValues = 1 << 16
	// mostLengths is the largest number of values in a page with delta-encoded lengths.
	mostLengths = 1 << 24
	// longestPageHeader is the largest number of bytes in the header of a page. The library has the same limit.
	longestPageHeader = 16 << 20
)

// footerLayout says which fields of a footer are lists or contain lists. The keys are the ids of the fields.
var footerLayout = thriftLayout{
	2: {elements: thriftStruct}, // columns
	4: {elements: thriftStruct, within: thriftLayout{ // row groups
		1: {elements: thriftStruct, within: thriftLayout{ // column chunks
			3: {within: thriftLayout{
				2: {elements: thriftInt32}, 3: {elements: thriftBinary}, 8: {elements: thriftStruct}, 13: {elements: thriftStruct},
				16: {within: thriftLayout{2: {elements: thriftInt64}, 3: {elements: thriftInt64}}},
			}},
			8: {within: thriftLayout{2: {within: thriftLayout{1: {elements: thriftBinary}}}}},
		}},
		4: {elements: thriftStruct},
	}},
	5: {elements: thriftStruct}, // key-value metadata
	7: {elements: thriftStruct}, // column orders
}

// The ids of the Thrift fields, and the values of enumerations, that are checked. Source:
// https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
const (
	fileSchema = 2

	schemaType, schemaTypeLength, schemaChildren = 1, 2, 5

	pageType, pageUncompressed, pageCompressed, pageData, pageDictionary, pageDataV2 = 1, 2, 3, 5, 7, 8

	dataPageType, dictionaryPageType, dataPageV2Type = 0, 2, 3
)

// checkParquetFooter checks the counts and lengths in a footer.
func checkParquetFooter(f io.ReaderAt, size int64) error {
	var tail [8]byte
	if size < int64(len(tail)) {
		return errors.New("it is no Parquet file")
	}
	if _, err := f.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if string(tail[4:]) != "PAR1" || length > size-int64(len(tail)) {
		return nil // the library will report the error
	}
	footer := make([]byte, length)
	if _, err := f.ReadAt(footer, size-int64(len(tail))-length); err != nil {
		return err
	}
	t := &thrift{b: footer, structs: mostStructs}
	t.fields(0, footerLayout, func(id int64, kind byte) bool {
		if id != fileSchema || kind != thriftList {
			return false
		}
		n, kind := t.list()
		if kind != thriftStruct {
			t.fail(errors.New("its schema is no list of structs"))
		}
		checkSchemaElements(t, n)
		return true
	})
	return t.err
}

// checkSchemaElements checks the schema, which is a tree. A group precedes its children, and says how many there are.
func checkSchemaElements(t *thrift, n int) {
	var open []int64 // for each open group, how many of its children have not been read yet
	for left := int64(n); left > 0 && t.err == nil; {
		left--
		var kind, length, children int64
		t.int32s(1, map[int64]*int64{schemaType: &kind, schemaTypeLength: &length, schemaChildren: &children})
		fixed := parquet.Type(kind) == parquet.Types.FixedLenByteArray
		switch {
		case children < 0 || children > left:
			t.fail(fmt.Errorf("a column of its schema has %d children, of %d that follow", children, left))
		case length < 0 || length > longestFixed || fixed && length == 0:
			t.fail(fmt.Errorf("a column has values of %d bytes, more than %d or none", length, longestFixed))
		case len(open) > deepestColumn:
			t.fail(fmt.Errorf("a column of its schema stands in more than %d others", deepestColumn))
		}
		if len(open) > 0 {
			open[len(open)-1]--
		}
		if children > 0 {
			open = append(open, children)
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
	}
}

// checkRowGroup checks the pages of a row group before the library reads them.
func checkRowGroup(f io.ReaderAt, r *parquetfile.Reader, group int) error {
	total := int64(0)
	g := r.MetaData().RowGroup(group)
	for i := range g.NumColumns() {
		chunk, err := g.ColumnChunk(i)
		if err != nil {
			return err
		}
		c := &columnChunk{file: f, of: chunk, column: r.MetaData().Schema.Column(i), old: r.WriterVersion().LessThan(metadata.Parquet816FixedVersion)}
		n, err := c.check(r.MetaData().GetSourceFileSize())
		if err != nil {
			return fmt.Errorf("column %s: %w", c.column.Name(), err)
		}
		if total += n; total > mostPageBytes {
			return fmt.Errorf("its pages take more than %d bytes of memory at once", mostPageBytes)
		}
	}
	return nil
}

// columnChunk is a column of a row group.
type columnChunk struct {
	file   io.ReaderAt
	of     *metadata.ColumnChunkMetaData
	column *schema.Column
	old    bool   // true if the program Parquet MR up to version 1.2.8 has written the file
	header []byte // buffer into which the last page header was read
}

// check checks those pages of the column that the library will read. size is the size of the file in bytes. check
// returns how many bytes of memory the dictionary and the largest page take together.
func (c *columnChunk) check(size int64) (int64, error) {
	at := c.of.DataPageOffset()
	if d := c.of.DictionaryPageOffset(); c.of.HasDictionaryPage() && d > 0 && d < at {
		at = d
	}
	length := c.of.TotalCompressedSize()
	if c.old { // old writers left the dictionary's header out of the length, so the library reads 100 bytes more
		length += 100
	}
	if at < 0 || length < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	end := size
	if length < size && at < size-length {
		end = at + length
	}
	dictionary, largest := int64(0), int64(0)
	for read := int64(0); read < c.of.NumValues() && at < end; {
		p, err := c.page(at, end)
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("the page at byte %d: %w", at, err)
		}
		dictionary = max(dictionary, p.dictionary)
		largest = max(largest, p.takes)
		read += p.rows
		at = p.end
	}
	return dictionary + largest, nil
}

// page holds the fields of a page's header.
type page struct {
	kind, compressed, uncompressed int64
	values, encoding               int64
	rows                           int64 // number of rows as the library counts: in version 1, each value is a row
	levels                         int64 // bytes of the levels before the values in a page of version 2
	definitions, repetitions       int64 // encodings of the levels in a page of version 1, lengths of the levels in version 2
	headers                        int   // how many headers for particular page types are in the header; 1 if valid
	stored                         bool  // true for a page of version 2 that is not compressed
	dictionary                     int64 // of a dictionary: number of values; after page(), their bytes of memory
	takes                          int64 // bytes of memory that the page takes
	at, end                        int64 // the range of the page's data after the header
}

// page reads and checks the header of a page. The parameters at and end are the offsets in the file at which
// the page begins and at which the column's last page ends.
func (c *columnChunk) page(at, end int64) (p page, err error) {
	if p, err = c.readHeader(at, end); err != nil {
		return p, err
	}
	if p.headers != 1 || p.kind != dataPageType && p.kind != dictionaryPageType && p.kind != dataPageV2Type {
		return p, fmt.Errorf("it is of a type %d, with %d headers", p.kind, p.headers)
	}
	if p.compressed < 0 || p.uncompressed < 0 || p.values < 0 || p.rows < 0 || p.definitions < 0 || p.repetitions < 0 || p.compressed > end-p.at {
		return p, io.ErrUnexpectedEOF
	}
	p.end = p.at + p.compressed
	p.takes = p.compressed + p.uncompressed
	if p.dictionary < 0 || p.dictionary > p.uncompressed/c.width() {
		return p, fmt.Errorf("a dictionary of %d values has %d bytes", p.dictionary, p.uncompressed)
	}
	p.dictionary *= 24 // the library makes an object of up to 24 bytes for each value
	switch parquet.Encoding(p.encoding) {
	case parquet.Encodings.DeltaBinaryPacked, parquet.Encodings.DeltaLengthByteArray, parquet.Encodings.DeltaByteArray:
		if p.kind != dictionaryPageType {
			err = c.checkDifferences(&p)
		}
	}
	return p, err
}

// readHeader reads the header of a page. It does not know the header's length, so it reads more and more of the file
// until the header is complete.
func (c *columnChunk) readHeader(at, end int64) (p page, err error) {
	for window := int64(4 << 10); ; window *= 16 {
		if int64(len(c.header)) < window {
			c.header = make([]byte, window)
		}
		n, err := c.file.ReadAt(c.header[:min(window, end-at)], at)
		if n == 0 && err != nil {
			return p, err
		}
		t := &thrift{b: c.header[:n], structs: 100}
		p = page{}
		p.read(t)
		if t.err == nil {
			p.at = at + int64(n-len(t.b))
			return p, nil
		}
		if t.err != io.ErrUnexpectedEOF || int64(n) < window || window >= longestPageHeader {
			return p, t.err
		}
	}
}

func (p *page) read(t *thrift) {
	numbers := map[int64]*int64{pageType: &p.kind, pageUncompressed: &p.uncompressed, pageCompressed: &p.compressed}
	t.fields(0, nil, func(id int64, kind byte) bool {
		if kind != thriftStruct {
			return t.int32(kind, numbers[id])
		}
		switch id {
		case pageData:
			t.int32s(1, map[int64]*int64{1: &p.values, 2: &p.encoding, 3: &p.definitions, 4: &p.repetitions})
			p.rows = p.values
		case pageDictionary:
			t.int32s(1, map[int64]*int64{1: &p.dictionary})
		case pageDataV2:
			p.readV2(t)
		default:
			return false
		}
		p.headers++
		return true
	})
}

func (p *page) readV2(t *thrift) {
	numbers := map[int64]*int64{1: &p.values, 3: &p.rows, 4: &p.encoding, 5: &p.definitions, 6: &p.repetitions}
	t.fields(1, nil, func(id int64, kind byte) bool {
		p.stored = p.stored || id == 7 && kind == thriftFalse
		return t.int32(kind, numbers[id])
	})
	p.levels = p.definitions + p.repetitions
}

// width returns the minimum number of bytes that a value takes in the encoded dictionary.
func (c *columnChunk) width() int64 {
	switch c.column.PhysicalType() {
	case parquet.Types.Int32, parquet.Types.Float, parquet.Types.ByteArray: // a byte array has a 4-byte length prefix
		return 4
	case parquet.Types.Int64, parquet.Types.Double:
		return 8
	case parquet.Types.Int96:
		return 12
	case parquet.Types.FixedLenByteArray:
		return int64(c.column.TypeLength())
	}
	return 1
}

// checkDifferences checks a page of delta-encoded integers, or of byte arrays with delta-encoded lengths, before the
// library decodes the page.
func (c *columnChunk) checkDifferences(p *page) error {
	if p.uncompressed > parquet.DefaultMaxUncompressedPageSize || p.compressed > parquet.DefaultMaxCompressedPageSize || p.levels > min(p.compressed, p.uncompressed) {
		return nil // the library refuses the page
	}
	values, err := c.valuesOf(p)
	if err != nil || len(values) == 0 {
		return err
	}
	if parquet.Encoding(p.encoding) == parquet.Encodings.DeltaBinaryPacked {
		_, err := newDifferences(values)
		return err
	}
	if p.values > mostLengths {
		return fmt.Errorf("it has %d values, more than %d", p.values, mostLengths)
	}
	p.takes += 2 * 4 * p.values
	var shared []int64
	if parquet.Encoding(p.encoding) == parquet.Encodings.DeltaByteArray {
		values, err = eachDifference(values, p.values, func(n int64) error { shared = append(shared, n); return nil })
		if err != nil {
			return err
		}
	}
	total, i := int64(0), 0
	_, err = eachDifference(values, p.values, func(n int64) error {
		if i < len(shared) {
			n += shared[i]
		}
		i++
		if total += max(n, 0); total > largestBuffer {
			return fmt.Errorf("its values have more than %d bytes", largestBuffer)
		}
		return nil
	})
	p.takes += total
	return err
}

// valuesOf decompresses the values of a page.
func (c *columnChunk) valuesOf(p *page) ([]byte, error) {
	b := make([]byte, p.compressed)
	if _, err := c.file.ReadAt(b, p.at); err != nil {
		return nil, err
	}
	b = b[p.levels:]
	if !p.stored {
		codec, err := compress.GetCodec(c.of.Compression())
		if err != nil {
			return nil, err
		}
		if b, err = compress.Decode(codec, make([]byte, p.uncompressed-p.levels), b); err != nil {
			return nil, err
		}
	}
	if p.kind == dataPageV2Type {
		return b, nil
	}
	b, err := c.behindLevels(b, p, p.repetitions, c.column.MaxRepetitionLevel())
	if err != nil {
		return nil, err
	}
	return c.behindLevels(b, p, p.definitions, c.column.MaxDefinitionLevel())
}

// behindLevels returns the bytes of a page of version 1 that follow its repetition levels or its definition levels.
// most is the largest possible level. If it is 0, the page does not contain these levels.
func (c *columnChunk) behindLevels(b []byte, p *page, encoding int64, most int16) ([]byte, error) {
	if most == 0 {
		return b, nil
	}
	n := (p.values*int64(bits.Len16(uint16(most))) + 7) / 8
	if parquet.Encoding(encoding) == parquet.Encodings.RLE {
		if len(b) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		n = 4 + int64(binary.LittleEndian.Uint32(b))
	}
	if n > int64(len(b)) {
		return nil, io.ErrUnexpectedEOF
	}
	return b[n:], nil
}

// differences decodes integers in Parquet's encoding DELTA_BINARY_PACKED. The integers are stored in blocks, which
// consist of miniblocks. Each miniblock has a bit width of its own.
type differences struct {
	b           []byte
	block, mini uint64 // the number of values in a block and in a miniblock
	count       uint64
	first       int64
	perBlock    int // how many miniblocks a block has
}

func newDifferences(b []byte) (d differences, err error) {
	t := &thrift{b: b} // the encoding uses the same variable-length integers as Thrift
	d.block = t.unsigned()
	minis := t.unsigned()
	d.count = t.unsigned()
	d.first = t.int()
	if t.err != nil {
		return d, t.err
	}
	if d.block == 0 || d.block > mostBlockValues || minis == 0 || d.block%minis != 0 || d.block/minis%32 != 0 {
		return d, fmt.Errorf("it has blocks of %d values in %d parts", d.block, minis)
	}
	d.mini, d.perBlock, d.b = d.block/minis, int(minis), t.b
	return d, nil
}

// eachDifference calls f for each integer in b. It returns the bytes after the integers. The parameter most is the
// largest number of integers; if there are more, eachDifference returns an error.
func eachDifference(b []byte, most int64, f func(int64) error) ([]byte, error) {
	d, err := newDifferences(b)
	if err != nil {
		return nil, err
	}
	if d.count > uint64(most) {
		return nil, fmt.Errorf("it has %d lengths of %d values", d.count, most)
	}
	if d.count == 0 {
		return d.b, nil
	}
	if err := f(d.first); err != nil {
		return nil, err
	}
	value := d.first
	for left := d.count - 1; left > 0; {
		t := &thrift{b: d.b}
		least := t.int()
		widths := t.next(uint64(d.perBlock))
		for _, width := range widths {
			if left == 0 {
				break
			}
			packed := t.next(d.mini * uint64(width) / 8)
			if t.err != nil || width > 32 {
				return nil, io.ErrUnexpectedEOF
			}
			for i := range min(d.mini, left) {
				value = int64(int32(value + least + int64(packedBits(packed, i*uint64(width), width))))
				if err := f(value); err != nil {
					return nil, err
				}
				left--
			}
		}
		if t.err != nil {
			return nil, t.err
		}
		d.b = t.b
	}
	return d.b, nil
}

// packedBits decodes a number that is packed into b. at is the index of the number's first bit, which is its lowest
// one, and width is how many bits it has.
func packedBits(b []byte, at uint64, width byte) (v uint64) {
	for n := uint64(0); n < uint64(width); {
		shift := (at + n) % 8
		v |= uint64(b[(at+n)/8]>>shift) << n
		n += 8 - shift
	}
	return v & (1<<width - 1)
}
