package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// TestParquetEncodings checks that files in every encoding, compression and page version that other programs write can
// be read. Our own checks must refuse none of them.
func TestParquetEncodings(t *testing.T) {
	const rows = 3000
	list := arrow.ListOf(arrow.BinaryTypes.String)
	schema := arrow.NewSchema([]arrow.Field{{Name: "Whole", Type: arrow.PrimitiveTypes.Int64}, {Name: "Text", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "Texts", Type: list, Nullable: true},
		{Name: "Fixed", Type: &arrow.FixedSizeBinaryType{ByteWidth: 3}, Nullable: true}, {Name: "Double", Type: arrow.PrimitiveTypes.Float64}}, nil)
	var b strings.Builder
	var want []string
	for i := range rows {
		text, texts, fixed := fmt.Sprintf(`"%s%d"`, strings.Repeat("a", i%700), i), `["x", null, "xy"]`, `"YWJj"`
		if i%3 == 0 {
			text, texts, fixed = "null", "null", "null"
		}
		fmt.Fprintf(&b, `{"Whole": %d, "Text": %s, "Texts": %s, "Fixed": %s, "Double": %d.5}`+"\n", i*i, text, texts, fixed, i)
		want = append(want, fmt.Sprint(i*i, text))
	}
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.ReplaceAll(strings.TrimSpace(b.String()), "\n", ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, codec := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli, compress.Codecs.Zstd, compress.Codecs.Lz4Raw} {
		for _, version := range []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2} {
			for _, e := range []struct{ whole, text, fixed parquet.Encoding }{
				{parquet.Encodings.Plain, parquet.Encodings.Plain, parquet.Encodings.Plain},
				{parquet.Encodings.RLEDict, parquet.Encodings.RLEDict, parquet.Encodings.RLEDict},
				{parquet.Encodings.DeltaBinaryPacked, parquet.Encodings.DeltaLengthByteArray, parquet.Encodings.ByteStreamSplit},
				{parquet.Encodings.ByteStreamSplit, parquet.Encodings.DeltaByteArray, parquet.Encodings.ByteStreamSplit},
			} {
				options := []parquet.WriterProperty{parquet.WithVersion(parquet.V2_LATEST), parquet.WithCompression(codec), parquet.WithDataPageVersion(version), parquet.WithDataPageSize(20_000), parquet.WithMaxRowGroupLength(2000)}
				if e.whole != parquet.Encodings.RLEDict {
					options = append(options, parquet.WithDictionaryDefault(false), parquet.WithEncodingFor("Whole", e.whole), parquet.WithEncodingFor("Text", e.text),
						parquet.WithEncodingFor("Texts.list.element", e.text), parquet.WithEncodingFor("Fixed", e.fixed))
				}
				path := filepath.Join(t.TempDir(), "f.parquet")
				writeParquet(t, path, batch, parquet.NewWriterProperties(options...))
				got := firstColumns(t, path)
				if !slices.Equal(got, want) {
					t.Errorf("%s, pages of version %d, %v: %d rows in place of %d", codec, version, e, len(got), len(want))
				}
			}
		}
	}
}

func writeParquet(t *testing.T, path string, batch arrow.RecordBatch, properties *parquet.WriterProperties) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(batch.Schema(), f, properties, pqarrow.NewArrowWriterProperties())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// firstColumns returns the integer and the text of each row of a file.
func firstColumns(t *testing.T, path string) (rows []string) {
	t.Helper()
	source, err := Open([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	segments, err := source.Segments(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		err := bulk.EachOf(t.Context(), s, func(batch arrow.RecordBatch, _ bulk.Reader) error {
			for i := range int(batch.NumRows()) {
				text := "null"
				if c := batch.Column(1).(*array.String); c.IsValid(i) {
					text = `"` + c.Value(i) + `"`
				}
				rows = append(rows, fmt.Sprint(batch.Column(0).(*array.Int64).Value(i), text))
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	return rows
}

// TestParquetLongRows checks that a batch has few rows if the rows are long.
func TestParquetLongRows(t *testing.T) {
	const rows = 80
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range rows {
		texts.Append(strings.Repeat(string(rune('a'+i%26)), 1<<20) + fmt.Sprint(i))
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "Text", Type: arrow.BinaryTypes.String}}, nil)
	path := filepath.Join(t.TempDir(), "f.parquet")
	writeParquet(t, path, array.NewRecordBatch(schema, []arrow.Array{texts.NewArray()}, rows), parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithDictionaryDefault(false)))
	source, err := Open([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	read := int64(0)
	err = bulk.Each(t.Context(), source, 1, func(_ context.Context, _ int, batch arrow.RecordBatch) error {
		if read += batch.NumRows(); batch.NumRows() > longestBatch>>20 {
			t.Errorf("a batch has %d rows of 1 MiB", batch.NumRows())
		}
		return nil
	})
	if err != nil || read != rows {
		t.Errorf("%d rows, %v", read, err)
	}
}
