package file

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/zstd"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// TestClaims checks that files that claim false counts or lengths are refused, and that refusing them takes neither
// much memory nor much time.
func TestClaims(t *testing.T) {
	const huge = 1<<31 - 1
	for _, c := range []struct {
		name, content, want string
	}{
		{"a block of values without bytes.avro", avroFile(`{"type":"fixed","name":"F","size":0}`, 1<<20), "fixed of 0 bytes"},
		{"an array of values without bytes.avro", avroFile(`{"type":"array","items":{"type":"fixed","name":"F","size":0}}`, 1, varint(1<<60)), "fixed of 0 bytes"},
		{"an array of NULL.avro", avroFile(`{"type":"array","items":"null"}`, 1, varint(1<<60)), "null has no Spanner type"},
		{"an array of empty records.avro", avroFile(`{"type":"array","items":{"type":"record","name":"E","fields":[]}}`, 1, varint(1<<60)), "record has no Spanner type"},
		{"an array that is longer than its block.avro", avroFile(`{"type":"array","items":"long"}`, 1, varint(1<<60), varint(0)), "ends within a value"},
		{"an array with a size that is longer than its block.avro", avroFile(`{"type":"array","items":"long"}`, 1, varint(-1<<60), varint(1), varint(0)), "ends within a value"},
		{"a block of more rows than bytes.avro", avroFile(`"long"`, 1<<60, varint(1)), "is damaged"},
		{"a decimal with a long scale.avro", avroFile(`{"type":"bytes","logicalType":"decimal","precision":60000,"scale":60000}`, 1, varint(1), "\x01"), "scale of 60000"},

		{"children.parquet", parquetFile(schemaElements{{children: 1}, {name: "G", children: huge}, {name: "C"}}), "2147483647 children"},
		{"children in children.parquet", parquetFile(slices.Concat(schemaElements{{children: 1}}, slices.Repeat(schemaElements{{name: "G", children: 1}}, 1_000_000), schemaElements{{name: "C"}})), "more than 32"},
		{"a fixed length.parquet", parquetFile(schemaElements{{children: 1}, {name: "C", kind: parquet.Types.FixedLenByteArray, length: huge}}), "2147483647 bytes"},
		{"a list of the footer.parquet", ofFooter(thriftStructOf(thriftFieldOf(2, thriftList, "\xfc"+uvarint(100<<20)))), "EOF"},
		{"a list of another type.parquet", ofFooter(thriftStructOf(thriftFieldOf(4, thriftList, "\x13\x00"))), "type 3 in place of 12"},
		{"structs.parquet", ofFooter(thriftStructOf(thriftFieldOf(4, thriftList, "\xfc"+uvarint(9<<20)+strings.Repeat("\x00", 9<<20)))), "more structs"},

		{"a dictionary.parquet", parquetPages(pageOf(dictionaryPageType, 0, huge, 0, "\x01\x00\x00\x00a"), pageOf(dataPageType, 4, 8, int32(parquet.Encodings.RLEDict), "\x20"+uvarint(8<<1)+"\xfe\xff\xff\x7f")), "dictionary of 2147483647 values"},
		{"lengths.parquet", parquetPages(pageOf(dataPageType, huge, huge, int32(parquet.Encodings.DeltaLengthByteArray), uvarint(128)+uvarint(4)+uvarint(huge)+varint(1))), "2147483647 values"},
		{"a block of differences.parquet", parquetPages(pageOf(dataPageType, 1<<20, 0, int32(parquet.Encodings.DeltaLengthByteArray), uvarint(1<<32-128)+uvarint(1)+uvarint(1<<20)+varint(0)+varint(0)+"\x00")), "blocks of 4294967168 values"},
		{"values that share their bytes.parquet", parquetPages(sharing()), "more than 1073741824 bytes"},
		{"a page of another type.parquet", parquetPages(pageOf(1, 0, 0, 0, "")), "type 1"},
		{"what Snappy becomes.parquet", parquetPagesIn(compress.Codecs.Snappy, pageOf(dataPageType, 1<<20, 0, 0, uvarint(1<<32-1)+"\x00")), "becomes 4294967295"},
		{"what Zstandard becomes.parquet", parquetPagesIn(compress.Codecs.Zstd, pageOf(dataPageType, 1<<20, 0, 0, string(zstdOf(make([]byte, 256<<20))))), "exceeds"},
		{"pages at once.parquet", manyColumns(20, string(zstdOf(make([]byte, 120<<20))), 120<<20), "more than 2147483648 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			name := write(t, strings.ReplaceAll(c.name, " ", ""), c.content)
			rows := int64(0)
			source, err := Open([]string{name}, Options{})
			if err == nil {
				err = bulk.Each(context.Background(), source, 1, func(_ context.Context, _ int, batch arrow.RecordBatch) error {
					if rows += batch.NumRows(); rows > 1<<20 {
						return fmt.Errorf("it gives %d rows and more", rows)
					}
					return nil
				})
			}
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if n := int64(after.TotalAlloc-before.TotalAlloc) - 20*int64(len(c.content)); n > 64<<20 {
				t.Errorf("it took %d MiB", n>>20)
			}
		})
	}
}

func varint(n int64) string   { return string(binary.AppendVarint(nil, n)) }
func uvarint(n uint64) string { return string(binary.AppendUvarint(nil, n)) }

// avroFile returns an Avro file with one column and one block that claims the given number of rows.
func avroFile(kind string, rows int64, block ...string) string {
	schema := `{"type":"record","name":"R","fields":[{"name":"C","type":` + kind + `}]}`
	mark, content := strings.Repeat("m", avroMark), strings.Join(block, "")
	return avroMagic + varint(1) + varint(int64(len("avro.schema"))) + "avro.schema" + varint(int64(len(schema))) + schema + varint(0) + mark +
		varint(rows) + varint(int64(len(content))) + content + mark
}

// thriftFieldOf returns an encoded field of a Thrift struct. value holds the encoded bytes of the field's value.
func thriftFieldOf(id int64, kind byte, value string) string {
	return string([]byte{kind}) + varint(id) + value
}

func thriftStructOf(fields ...string) string { return strings.Join(fields, "") + "\x00" }

func thriftInt(id, n int64) string { return thriftFieldOf(id, thriftInt32, varint(n)) }

func thriftLong(id, n int64) string { return thriftFieldOf(id, thriftInt64, varint(n)) }

func thriftText(id int64, s string) string {
	return thriftFieldOf(id, thriftBinary, uvarint(uint64(len(s)))+s)
}

func thriftListOf(id int64, kind byte, elements ...string) string {
	return thriftFieldOf(id, thriftList, string([]byte{0xf0 | kind})+uvarint(uint64(len(elements)))+strings.Join(elements, ""))
}

// ofFooter returns a Parquet file that has only a footer.
func ofFooter(footer string) string {
	return "PAR1" + footer + string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + "PAR1"
}

// schemaElements are the columns and groups in the schema of a Parquet file.
type schemaElements []struct {
	name             string
	kind             parquet.Type
	length, children int64
}

func (s schemaElements) field() string {
	var list []string
	for _, e := range s {
		fields := []string{thriftText(4, e.name)}
		if e.children > 0 {
			fields = append(fields, thriftInt(5, e.children))
		} else {
			fields = append(fields, thriftInt(1, int64(e.kind)), thriftInt(2, e.length), thriftInt(3, 0))
		}
		list = append(list, thriftStructOf(fields...))
	}
	return thriftListOf(2, thriftStruct, list...)
}

func parquetFile(s schemaElements) string {
	return ofFooter(thriftStructOf(thriftInt(1, 1), s.field(), thriftLong(3, 0), thriftListOf(4, thriftStruct)))
}

// pageOf returns an uncompressed page of values or of a dictionary.
func pageOf(kind, values, dictionary int64, encoding int32, content string) string {
	return pageOfSize(kind, values, dictionary, encoding, content, int64(len(content)))
}

func pageOfSize(kind, values, dictionary int64, encoding int32, content string, size int64) string {
	of := thriftFieldOf(5, thriftStruct, thriftStructOf(thriftInt(1, values), thriftInt(2, int64(encoding)), thriftInt(3, 3), thriftInt(4, 3)))
	if kind == dictionaryPageType {
		of = thriftFieldOf(7, thriftStruct, thriftStructOf(thriftInt(1, dictionary), thriftInt(2, 0)))
	}
	return thriftStructOf(thriftInt(1, kind), thriftInt(2, size), thriftInt(3, int64(len(content))), of) + content
}

func parquetPages(pages ...string) string {
	return parquetPagesIn(compress.Codecs.Uncompressed, pages...)
}

// parquetPagesIn returns a Parquet file whose only row group has one column, of byte arrays, with the given pages.
func parquetPagesIn(codec compress.Compression, pages ...string) string {
	return parquetColumns(codec, []string{strings.Join(pages, "")})
}

func parquetColumns(codec compress.Compression, columns []string) string {
	const rows = 1 << 20
	elements := schemaElements{{children: int64(len(columns))}}
	var chunks []string
	content := "PAR1"
	for i, pages := range columns {
		name := fmt.Sprint("C", i)
		elements = append(elements, schemaElements{{name: name, kind: parquet.Types.ByteArray}}...)
		data := thriftStructOf(thriftInt(1, int64(parquet.Types.ByteArray)), thriftListOf(2, thriftInt32, varint(0)), thriftListOf(3, thriftBinary, uvarint(uint64(len(name)))+name),
			thriftInt(4, int64(codec)), thriftLong(5, rows), thriftLong(6, int64(len(pages))), thriftLong(7, int64(len(pages))), thriftLong(9, int64(len(content))))
		chunks = append(chunks, thriftStructOf(thriftLong(2, int64(len(content))), thriftFieldOf(3, thriftStruct, data)))
		content += pages
	}
	group := thriftStructOf(thriftListOf(1, thriftStruct, chunks...), thriftLong(2, int64(len(content))), thriftLong(3, rows))
	footer := thriftStructOf(thriftInt(1, 1), elements.field(), thriftLong(3, rows), thriftListOf(4, thriftStruct, group))
	return content + footer + string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + "PAR1"
}

// manyColumns returns a Parquet file of n columns, each of which has the same page.
func manyColumns(n int, content string, size int64) string {
	return parquetColumns(compress.Codecs.Zstd, slices.Repeat([]string{pageOfSize(dataPageType, 1<<20, 0, 0, content, size)}, n))
}

func zstdOf(b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(b, nil)
}

// sharing returns a page whose values all begin with the same 1 MiB of text.
func sharing() string {
	const n, length = 1 << 12, 1 << 20
	b := &bytes.Buffer{}
	// The page has two lists of lengths. The first list has the length of the prefix that each value shares with the
	// value before it. The second list has the length of each value's suffix. The field first is the length for the
	// first value, and the field then is the length for every other value.
	for _, of := range []struct{ first, then int64 }{{0, length}, {length, 1}} {
		b.WriteString(uvarint(n) + uvarint(1) + uvarint(n) + varint(of.first))
		if of.first == 0 {
			b.WriteString(varint(0) + "\x20" + string(binary.LittleEndian.AppendUint32(nil, uint32(of.then))) + strings.Repeat("\x00", 4*(n-1)))
			continue
		}
		b.WriteString(varint(0) + "\x20" + string(binary.LittleEndian.AppendUint32(nil, uint32(of.then-of.first)&0xffffffff)) + strings.Repeat("\x00", 4*(n-1)))
	}
	b.WriteString(strings.Repeat("x", length+n))
	return pageOf(dataPageType, n, 0, int32(parquet.Encodings.DeltaByteArray), b.String())
}
