package arrowmessage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestSame checks that messages that Arrow's library has written are decoded to the same batches. It tests every type
// and codec, streams and files.
func TestSame(t *testing.T) {
	for name, batches := range samples(t) {
		for _, options := range [][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}, {ipc.WithDictionaryDeltas(true)}} {
			c := &counter{most: 1 << 20}
			got, err := decodeAll(messages(t, batches, options...), c.charge)
			compare(t, name, batches, got, err)
			if c.bytes != 0 {
				t.Errorf("%s: %d bytes stay charged", name, c.bytes)
			}
			if name == "delta" || name == "replaced" {
				continue // in an Arrow file, a dictionary must not change between batches
			}
			file := writeFile(t, batches, options...)
			got, err = readFile(file, c.charge)
			compare(t, name+" as a file", batches, got, err)
			if c.bytes != 0 {
				t.Errorf("%s as a file: %d bytes stay charged", name, c.bytes)
			}
		}
	}
}

// TestChanged checks what the decoder does with a stream or a file in which random bytes are changed. It must return a
// *FormatError or the error of the Charge, or else batches all of whose values can be read. When it is closed, it must
// have given back all charged bytes.
func TestChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	bad := 0
	for name, batches := range samples(t) {
		for _, options := range [][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}} {
			good := messages(t, batches, options...)
			file := writeFile(t, batches, options...)
			for range 30 {
				list := slices.Clone(good)
				at := r.IntN(len(list))
				list[at].Metadata, list[at].Body = slices.Clone(list[at].Metadata), slices.Clone(list[at].Body)
				part := list[at].Metadata
				if len(list[at].Body) > 0 && r.IntN(3) == 0 {
					part = list[at].Body
				}
				change(r, part)
				c := &counter{most: 8 << 20}
				got, err := decodeAll(list, c.charge)
				bad += judge(t, name, got, err)
				changed := slices.Clone(file)
				change(r, changed)
				got, err = readFile(changed, c.charge)
				bad += judge(t, name+" as a file", got, err)
				if c.bytes != 0 {
					t.Errorf("%s: %d bytes stay charged", name, c.bytes)
				}
			}
		}
	}
	t.Logf("%d were refused", bad)
}

// TestClaims checks that the decoder charges for nearly all memory that it allocates, even if a number in a message's
// metadata is changed. For each changed stream, it may allocate at most 32 KiB more than it has charged.
func TestClaims(t *testing.T) {
	var before, after runtime.MemStats
	for name, batches := range samples(t) {
		good := messages(t, batches)
		for i, m := range good {
			runtime.ReadMemStats(&before)
			c, streams := &counter{most: 1 << 20}, int64(0)
			for at := 0; at+4 <= len(m.Metadata); at += 4 {
				for _, n := range []uint32{1 << 20, 1 << 30, 1<<31 - 1, 1<<32 - 1} {
					list := slices.Clone(good)
					list[i].Metadata = slices.Clone(m.Metadata)
					binary.LittleEndian.PutUint32(list[i].Metadata[at:], n)
					if _, err := decodeAll(list, c.charge); errors.As(err, new(*FormatError)) || err == nil || err == errFull {
						streams++
						continue
					}
					t.Errorf("%s, byte %d of message %d", name, at, i)
				}
			}
			runtime.ReadMemStats(&after)
			if n := int64(after.TotalAlloc - before.TotalAlloc); n > c.total+streams<<15 {
				t.Errorf("%s, message %d: %d bytes were allocated for %d streams, and %d charged", name, i, n, streams, c.total)
			}
		}
	}
}

// TestShared checks that a message is refused if its metadata refer to the same tables again and again. In the test's
// metadata, each of 40 levels of tables refers twice to the next level. A decoder that followed every reference would
// read 2^40 tables.
func TestShared(t *testing.T) {
	f := []byte{4, 0, 0, 0}
	const levels = 40
	// Each level is a table with one field: a vector of two tables, which both are the table of the next level. The
	// layout begins 8 bytes after the start of the table. The vector begins 12 bytes after the start of the field.
	for range levels {
		f = append(f, 0xf8, 0xff, 0xff, 0xff, 12, 0, 0, 0) // the table
		f = append(f, 6, 0, 8, 0, 4, 0, 0, 0)              // the layout
		f = append(f, 2, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0)  // the vector
	}
	f = append(f, 0xfc, 0xff, 0xff, 0xff, 4, 0, 4, 0)
	var visit func(t table)
	visited := 0
	visit = func(t table) {
		visited++
		for _, child := range t.tables(0) {
			visit(child)
		}
	}
	err := func() (err error) {
		defer recoverFormat(&err)
		visit(newFlatbuffer(f).root())
		return nil
	}()
	if err == nil || !strings.Contains(err.Error(), "again and again") || visited > len(f) {
		t.Errorf("%d tables: %v", visited, err)
	}
}

// TestScales checks that a decimal type is refused if its scale is impossible for its width.
func TestScales(t *testing.T) {
	for _, of := range []arrow.DataType{
		&arrow.Decimal128Type{Precision: 38, Scale: 1 << 30}, &arrow.Decimal128Type{Precision: 38, Scale: -1 << 30}, &arrow.Decimal128Type{Precision: 0, Scale: 0},
		&arrow.Decimal256Type{Precision: 77, Scale: 0}, &arrow.Decimal64Type{Precision: 18, Scale: 19}, &arrow.Decimal32Type{Precision: 10, Scale: 0},
	} {
		empty := array.NewBuilder(memory.DefaultAllocator, of).NewArray()
		batch := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "c", Type: of}}, nil), []arrow.Array{empty}, 0)
		if _, err := decodeAll(messages(t, []arrow.RecordBatch{batch}), (&counter{most: 1 << 20}).charge); err == nil || !strings.Contains(err.Error(), "precision") {
			t.Errorf("%s: %v", of, err)
		}
	}
}

// TestMapNulls checks that a map is refused if an entry or a key is null, which its type does not allow.
func TestMapNulls(t *testing.T) {
	schema := messages(t, []arrow.RecordBatch{ofJSON(t, arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), `[]`)})[0]
	entry := arrow.StructOf(arrow.Field{Name: "key", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "value", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	for _, text := range []string{`[[{"key": null, "value": 1}]]`, `[[null]]`} {
		// Arrow stores a map as a list of entries, so such a list becomes a map if the schema says so.
		list := messages(t, []arrow.RecordBatch{ofJSON(t, arrow.ListOf(entry), text)})
		list[0] = schema
		c := &counter{most: 1 << 20}
		if _, err := decodeAll(list, c.charge); !errors.As(err, new(*FormatError)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestReplaced checks that Replaced reports the size of a dictionary exactly once: in the first call after another
// dictionary or a delta has replaced it. Earlier and later calls must not report this dictionary.
func TestReplaced(t *testing.T) {
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}
	long := strings.Repeat("x", 10_000)
	for name, second := range map[string]string{"other": `["y"]`, "more": `["` + long + `", "y"]`} {
		list := messages(t, []arrow.RecordBatch{ofJSON(t, dictionary, `["`+long+`"]`), ofJSON(t, dictionary, second)}, ipc.WithDictionaryDeltas(true))
		c := &counter{most: 1 << 20}
		d, err := NewDecoder(list[0], c.charge)
		if err != nil {
			t.Fatal(err)
		}
		var told []bool
		for _, m := range list[1:] {
			b, err := d.Decode(m)
			if err != nil {
				t.Fatal(err)
			}
			if b != nil {
				told = append(told, d.Replaced() >= 10_000)
			}
		}
		if d.Close(); !slices.Equal(told, []bool{false, true}) || d.Replaced() != 0 {
			t.Errorf("%s: %v", name, told)
		}
	}
}

// TestProducts checks that a message is refused if a number of values, multiplied by their size, exceeds 64 bits.
func TestProducts(t *testing.T) {
	claim := make([]byte, 8)
	binary.LittleEndian.PutUint64(claim, mostUnpacked)
	for _, of := range []arrow.DataType{&arrow.FixedSizeBinaryType{ByteWidth: 1 << 30}, arrow.FixedSizeListOf(1<<30, arrow.PrimitiveTypes.Int8)} {
		c := column{Field: arrow.Field{Type: of}, storage: of, children: []column{{Field: arrow.Field{Type: arrow.PrimitiveTypes.Int8}, storage: arrow.PrimitiveTypes.Int8}}}
		b := &batch{body: claim, codec: codecs[0], nodes: make([]byte, 2*nodeSize), buffers: make([]byte, 4*bufferSize)}
		// The first buffer is the bitmap. It is skipped, because there are no nulls, but the size that it claims after
		// decompression allows arrays of 2^34 values.
		binary.LittleEndian.PutUint64(b.buffers[8:], uint64(len(claim)))
		binary.LittleEndian.PutUint64(b.nodes, 1<<34)
		b.checkBuffers()
		b.most = 8 * (int64(len(b.body)) + b.unpacked)
		err := func() (err error) {
			defer recoverFormat(&err)
			b.array(&c)
			return nil
		}()
		if err == nil {
			t.Errorf("%s is read", of)
		}
	}
}

// change changes one to five random bytes of b.
func change(r *rand.Rand, b []byte) {
	for range 1 + r.IntN(5) {
		b[r.IntN(len(b))] = []byte{0, 1, 0x7f, 0x80, 0xff, byte(r.IntN(256))}[r.IntN(6)]
	}
}

// judge reads every value of batches, which must not panic. It returns 1 if err says that the batches were refused,
// else 0.
func judge(t *testing.T, name string, batches []arrow.RecordBatch, err error) int {
	t.Helper()
	if f := (*FormatError)(nil); err != nil && !errors.As(err, &f) && err != errFull && err != io.EOF {
		t.Errorf("%s: %v", name, err)
	}
	for _, b := range batches {
		for _, column := range b.Columns() {
			if b.NumRows() < 10_000 {
				column.MarshalJSON()
			}
			if err := array.ValidateFull(column); err != nil && !strings.Contains(err.Error(), "utf8") && !strings.Contains(err.Error(), "inline") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err != nil {
		return 1
	}
	return 0
}

var errFull = errors.New("full")

// A counter counts the charged bytes. Its method charge is a Charge, which refuses bytes if more bytes than the field
// most allows would then be charged.
type counter struct{ bytes, most, total int64 }

func (c *counter) charge(n int64) error {
	if c.bytes+n > c.most {
		return errFull
	}
	c.bytes += n
	c.total += max(0, n)
	return nil
}

func decodeAll(list []Message, charge Charge) (batches []arrow.RecordBatch, err error) {
	d, err := NewDecoder(list[0], charge)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	for _, m := range list[1:] {
		b, err := d.Decode(m)
		if err != nil {
			return batches, err
		}
		if b != nil {
			batches = append(batches, b)
		}
	}
	return batches, nil
}

func readFile(content []byte, charge Charge) (batches []arrow.RecordBatch, err error) {
	f, err := OpenFile(bytes.NewReader(content), int64(len(content)), charge)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for i := range f.Batches() {
		rows, err := f.Rows(i)
		if err != nil {
			return batches, err
		}
		b, err := f.Batch(i)
		if err != nil {
			return batches, err
		}
		if b.NumRows() != rows {
			return batches, errors.New("rows differ")
		}
		batches = append(batches, b)
	}
	return batches, nil
}

func compare(t *testing.T, name string, want, got []arrow.RecordBatch, err error) {
	t.Helper()
	if err != nil || len(got) != len(want) {
		t.Errorf("%s: %d batches in place of %d: %v", name, len(got), len(want), err)
		return
	}
	for i := range want {
		if !array.RecordEqual(got[i], want[i]) || !got[i].Schema().Equal(want[i].Schema()) {
			t.Errorf("%s: batch %d: %v\nin place of %v", name, i, got[i], want[i])
		}
	}
}

// payloads records the messages that Arrow's library writes.
type payloads struct{ list []Message }

func (p *payloads) Start() error { return nil }
func (p *payloads) Close() error { return nil }
func (p *payloads) WritePayload(payload ipc.Payload) error {
	var body bytes.Buffer
	if err := payload.SerializeBody(&body); err != nil {
		return err
	}
	p.list = append(p.list, Message{slices.Clone(payload.Meta().Bytes()), body.Bytes()})
	return nil
}

func messages(t *testing.T, batches []arrow.RecordBatch, options ...ipc.Option) []Message {
	t.Helper()
	p := &payloads{}
	w := ipc.NewWriterWithPayloadWriter(p, append(options, ipc.WithSchema(batches[0].Schema()))...)
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return p.list
}

func writeFile(t *testing.T, batches []arrow.RecordBatch, options ...ipc.Option) []byte {
	t.Helper()
	var content bytes.Buffer
	w, err := ipc.NewFileWriter(&content, append(options, ipc.WithSchema(batches[0].Schema()))...)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range batches {
		if err := w.Write(b); err != nil {
			if i > 0 {
				break // the file writer refuses a changed dictionary
			}
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

// samples returns batches that together have columns of every type that the package can read.
func samples(t *testing.T) map[string][]arrow.RecordBatch {
	t.Helper()
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}
	found := map[string][]arrow.RecordBatch{
		"delta":    {ofJSON(t, dictionary, `["a", "b", null, "a"]`), ofJSON(t, dictionary, `["a", "b", "c", null]`)},
		"replaced": {ofJSON(t, dictionary, `["a", "b"]`), ofJSON(t, dictionary, `["x"]`)},
	}
	for _, s := range []struct {
		of   arrow.DataType
		json string
	}{
		{arrow.Null, `[null, null]`},
		{arrow.FixedWidthTypes.Boolean, `[true, null, false]`},
		{arrow.PrimitiveTypes.Int8, `[1, null, -3]`}, {arrow.PrimitiveTypes.Int16, `[1, null]`}, {arrow.PrimitiveTypes.Int32, `[1, null]`}, {arrow.PrimitiveTypes.Int64, `[1, 2, 3]`},
		{arrow.PrimitiveTypes.Uint8, `[1, null]`}, {arrow.PrimitiveTypes.Uint16, `[1, null]`}, {arrow.PrimitiveTypes.Uint32, `[1, null]`}, {arrow.PrimitiveTypes.Uint64, `[1, null]`},
		{arrow.FixedWidthTypes.Float16, `[1.5, null]`}, {arrow.PrimitiveTypes.Float32, `[1.5, null]`}, {arrow.PrimitiveTypes.Float64, `[1.5, null]`},
		{&arrow.Decimal32Type{Precision: 9, Scale: 2}, `["1.25", null]`}, {&arrow.Decimal64Type{Precision: 18, Scale: 2}, `["1.25", null]`},
		{&arrow.Decimal128Type{Precision: 38, Scale: 9}, `["1.25", null]`}, {&arrow.Decimal256Type{Precision: 76, Scale: 38}, `["1.25", null]`},
		{arrow.FixedWidthTypes.Date32, `["2020-02-29", null]`}, {arrow.FixedWidthTypes.Date64, `["2020-02-29", null]`},
		{arrow.FixedWidthTypes.Time32s, `["01:02:03", null]`}, {arrow.FixedWidthTypes.Time32ms, `["01:02:03", null]`},
		{arrow.FixedWidthTypes.Time64us, `["01:02:03", null]`}, {arrow.FixedWidthTypes.Time64ns, `["01:02:03", null]`},
		{arrow.FixedWidthTypes.Timestamp_ns, `["2020-02-29T01:02:03Z", null]`}, {&arrow.TimestampType{Unit: arrow.Second}, `["2020-02-29T01:02:03", null]`},
		{arrow.FixedWidthTypes.Duration_ms, `["5ms", null]`}, {arrow.FixedWidthTypes.MonthInterval, `[{"months": 5}, null]`},
		{arrow.FixedWidthTypes.DayTimeInterval, `[{"days": 1, "milliseconds": 2}, null]`}, {arrow.FixedWidthTypes.MonthDayNanoInterval, `[{"months": 1, "days": 1, "nanoseconds": 2}, null]`},
		{arrow.BinaryTypes.String, `["a", null, ""]`}, {arrow.BinaryTypes.LargeString, `["a", null, ""]`}, {arrow.BinaryTypes.Binary, `["AA==", null, ""]`}, {arrow.BinaryTypes.LargeBinary, `["AA==", null]`},
		{arrow.BinaryTypes.StringView, `["a", null, "longer than twelve bytes", "another that is longer"]`}, {arrow.BinaryTypes.BinaryView, `["AA==", null]`},
		{&arrow.FixedSizeBinaryType{ByteWidth: 2}, `["AAA=", null]`},
		{arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1, null], [], null]`}, {arrow.LargeListOf(arrow.BinaryTypes.String), `[["x", null], [], null]`},
		{arrow.ListViewOf(arrow.PrimitiveTypes.Int64), `[[1, null], [], null]`}, {arrow.LargeListViewOf(arrow.PrimitiveTypes.Int64), `[[1, null], []]`},
		{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int64), `[[1, 2], null]`}, {arrow.ListOf(arrow.Null), `[[null, null], []]`},
		{arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String}), `[{"a": 1, "b": "x"}, null]`},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), `[[{"key": "a", "value": 1}], null]`},
		{dictionary, `["a", null, "b", "a"]`}, {arrow.ListOf(dictionary), `[["a", null], ["b"], []]`},
		{arrow.GetExtensionType("arrow.uuid"), `["00112233-4455-6677-8899-aabbccddeeff", null]`}, {mustJSON(t), `["{}", null]`},
		{arrow.PrimitiveTypes.Int64, `[]`}, {arrow.BinaryTypes.String, `[]`}, {arrow.ListOf(arrow.BinaryTypes.String), `[]`}, {arrow.BinaryTypes.StringView, `[]`},
	} {
		found[s.of.String()+s.json] = []arrow.RecordBatch{ofJSON(t, s.of, s.json), ofJSON(t, s.of, s.json)}
	}
	return found
}

func mustJSON(t *testing.T) arrow.DataType {
	t.Helper()
	of, err := extensions.NewJSONType(arrow.BinaryTypes.String)
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// ofJSON returns a batch with one column, whose values are given as JSON.
func ofJSON(t *testing.T, of arrow.DataType, text string) arrow.RecordBatch {
	t.Helper()
	values, _, err := array.FromJSON(memory.DefaultAllocator, of, bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatalf("%s: %v", of, err)
	}
	metadata := arrow.NewMetadata([]string{"a"}, []string{"b"})
	schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: of, Nullable: true, Metadata: metadata}}, &metadata)
	return array.NewRecordBatch(schema, []arrow.Array{values}, int64(values.Len()))
}
