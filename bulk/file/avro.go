package file

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// An Avro container file has this layout (https://avro.apache.org/docs/1.12.0/specification/#object-container-files):
//
//	"Obj" 1, a map with avro.schema and avro.codec, 16 bytes that mark a block's end
//	for each block: number of rows, number of bytes, the rows compressed, the mark

const (
	avroMagic = "Obj\x01"
	avroMark  = 16
	// largestBlock is the largest number of bytes of a block, compressed or not. It is much larger than usual blocks,
	// because a block holds whole rows, and a row can be long.
	largestBlock = 128 << 20
)

// AvroFile holds the header and the blocks of an Avro file.
type AvroFile struct {
	Schema *avro.Schema
	codec  ocf.Codec
	mark   [avroMark]byte
	blocks []avroBlock
}

// root returns the schema of the rows, in which names are replaced by the types that they refer to.
func (a *AvroFile) root() *avro.SchemaNode {
	root := a.Schema.Root()
	return root.ExpandReferences()
}

// avroBlock is a block of a file.
type avroBlock struct {
	at, size int64 // where in the file the compressed rows begin, and their size, in bytes
	rows     int64
	firstRow int64 // the number of rows in the blocks before this one
}

// ReadAvroHeader reads the header of an Avro file.
func ReadAvroHeader(name string) (*AvroFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, _, err := readAvroHeader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// readAvroHeader reads the header of an Avro file. end is the offset in the file at which the header ends.
func readAvroHeader(f *os.File) (a *AvroFile, end int64, err error) {
	in := &countingReader{r: io.NewSectionReader(f, 0, largestBlock)}
	magic := make([]byte, len(avroMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != avroMagic {
		return nil, 0, errors.New("it is not an Avro container file")
	}
	meta, err := readAvroMap(in)
	if err != nil {
		return nil, 0, err
	}
	a = &AvroFile{}
	if a.Schema, err = avro.Parse(string(meta["avro.schema"])); err != nil {
		return nil, 0, fmt.Errorf("the schema in its header: %w", err)
	}
	switch codec := string(meta["avro.codec"]); codec {
	case "", "null":
	case "deflate":
		a.codec = ocf.DeflateCodec(-1)
	case "snappy":
		a.codec = ocf.SnappyCodec()
	case "zstandard":
		a.codec = ocf.MustZstdCodec(nil, nil)
	default:
		return nil, 0, fmt.Errorf("its codec %q is not known: want null, deflate, snappy or zstandard", codec)
	}
	_, err = io.ReadFull(in, a.mark[:])
	return a, in.n, err
}

// countingReader counts the bytes that are read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

func (c *countingReader) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(c, b[:])
	return b[0], err
}

// readAvroMap reads a map from strings to bytes. It keeps only the entries that readAvroHeader needs.
func readAvroMap(in *countingReader) (map[string][]byte, error) {
	m := map[string][]byte{}
	for {
		n, err := binary.ReadVarint(in)
		if err != nil || n == 0 {
			return m, err
		}
		if n < 0 { // a negative count is followed by the size in bytes
			n = -n
			if _, err := binary.ReadVarint(in); err != nil {
				return nil, err
			}
		}
		for range n {
			name, err := readAvroBytes(in)
			if err != nil {
				return nil, err
			}
			v, err := readAvroBytes(in)
			if err != nil {
				return nil, err
			}
			if key := string(name); key == "avro.schema" || key == "avro.codec" {
				m[key] = v
			}
		}
	}
}

func readAvroBytes(in *countingReader) ([]byte, error) {
	n, err := binary.ReadVarint(in)
	if err != nil || n < 0 || n > largestBlock {
		return nil, errors.Join(errors.New("its header is damaged"), err)
	}
	b, err := io.ReadAll(io.LimitReader(in, n))
	if err == nil && int64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// openAvroFile reads the header of a file and finds its blocks.
func openAvroFile(name string) (*AvroFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	a, at, err := readAvroHeader(f)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("it ends within its header")
	}
	if err != nil {
		return nil, err
	}
	head := make([]byte, 2*binary.MaxVarintLen64)
	mark := make([]byte, avroMark)
	for row := int64(0); at < info.Size(); {
		n, err := f.ReadAt(head, at)
		if err != nil && err != io.EOF {
			return nil, err
		}
		rows, n1 := binary.Varint(head[:n])
		size, n2 := binary.Varint(head[max(n1, 0):n])
		if n1 <= 0 || n2 <= 0 || rows < 0 || rows > largestBlock || size < 0 || size > largestBlock { // a row has at least one byte
			return nil, fmt.Errorf("the block at byte %d is damaged", at)
		}
		b := avroBlock{at + int64(n1+n2), size, rows, row}
		if _, err := f.ReadAt(mark, b.at+size); err != nil || !bytes.Equal(mark, a.mark[:]) {
			return nil, fmt.Errorf("the block at byte %d is cut off or damaged: the mark of its end is not there", at)
		}
		a.blocks = append(a.blocks, b)
		at, row = b.at+size+avroMark, row+rows
	}
	return a, nil
}

// avroSource is a source that reads Avro files.
type avroSource struct {
	schema *arrow.Schema
	names  []string
	files  []*AvroFile
}

func openAvro(names []string) (bulk.Source, error) {
	s := &avroSource{names: names}
	for _, name := range names {
		err := guard(name, func() error {
			a, err := openAvroFile(name)
			if err != nil {
				return err
			}
			schema, err := avroColumns(a.root())
			if err != nil {
				return err
			}
			if schema.NumFields() == 0 {
				return errors.New("it has no columns")
			}
			if s.schema == nil {
				s.schema = schema
			} else if !sameColumns(s.schema, schema) {
				return fmt.Errorf("it has other columns than %s: read them one after the other", names[0])
			}
			s.files = append(s.files, a)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *avroSource) Schema() *arrow.Schema { return s.schema }

func (s *avroSource) Close() error { return nil }

// Segments returns about n segments. Each consists of adjacent blocks of a file.
func (s *avroSource) Segments(_ context.Context, n int) (segments []bulk.Segment, err error) {
	total := int64(0)
	for _, f := range s.files {
		for _, b := range f.blocks {
			total += b.size
		}
	}
	size := max(total/int64(max(n, 1)), smallestSegment)
	for i, f := range s.files {
		var last *avroSegment
		for k, b := range f.blocks {
			if last == nil || last.size+b.size > size {
				last = &avroSegment{of: s, name: s.names[i], file: f, from: k}
				segments = append(segments, last)
			}
			last.end, last.size = k+1, last.size+b.size
		}
	}
	return segments, nil
}

// avroSegment is a range of blocks of a file.
type avroSegment struct {
	of        *avroSource
	name      string
	file      *AvroFile
	from, end int
	size      int64
}

func (s *avroSegment) Bytes() int64 { return s.size }

func (s *avroSegment) Extent() bulk.Extent {
	first, last := s.file.blocks[s.from], s.file.blocks[s.end-1]
	return bulk.Extent{File: s.name, From: first.firstRow, To: last.firstRow + last.rows}
}

func (s *avroSegment) String() string {
	return fmt.Sprintf("%s, blocks %d to %d", s.name, s.from+1, s.end)
}

func (s *avroSegment) Open(context.Context) (bulk.Reader, error) {
	f, err := os.Open(s.name)
	if err != nil {
		return nil, err
	}
	r := &avroReader{segment: s, file: f, next: s.from, builder: array.NewRecordBuilder(newAllocator(), s.of.schema)}
	err = guard(s.name, func() error {
		r.fields, err = avroDecoders(s.file.root(), r.builder)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// avroReader reads a segment.
type avroReader struct {
	segment *avroSegment
	file    *os.File
	builder *array.RecordBuilder
	fields  []avroField
	next    int       // the index of the next block
	rows    avroBytes // those rows of the current block that were not decoded yet
	left    int64     // the number of rows that the field rows holds
	row     int64     // the index in the file of the next row
	first   int64     // the index in the file of the last batch's first row
	read    int64     // compressed bytes that were read
}

func (r *avroReader) Places() func(row int) bulk.Place {
	first, name := r.first, r.segment.name
	return func(row int) bulk.Place { return bulk.Place{File: name, Row: first + int64(row) + 1} }
}

func (r *avroReader) Positions() func(row int) int64 {
	first := r.first
	return func(row int) int64 { return first + int64(row) }
}

func (r *avroReader) Progress() int64 { return r.read }

func (r *avroReader) Close() error {
	r.builder.Release()
	return r.file.Close()
}

func (r *avroReader) Next() (batch arrow.RecordBatch, err error) {
	err = guard(r.segment.name, func() error {
		rows := int64(0)
		for rows < bulk.BatchRows {
			if r.left == 0 {
				if err := r.block(); err == io.EOF && rows > 0 {
					break
				} else if err != nil {
					return err
				}
				if rows == 0 {
					r.first = r.row
				}
				continue
			}
			if rows == 0 {
				r.first = r.row
			}
			r.row++
			for _, f := range r.fields {
				if err := f.decode(&r.rows); err != nil {
					return fmt.Errorf("row %d, column %s: %w", r.row, f.name, err)
				}
			}
			r.left--
			rows++
		}
		batch = r.builder.NewRecordBatch()
		return nil
	})
	return batch, err
}

// block reads and decompresses the next block.
func (r *avroReader) block() error {
	if len(r.rows) > 0 {
		return fmt.Errorf("%d bytes are left behind the last row of block %d", len(r.rows), r.next)
	}
	if r.next == r.segment.end {
		return io.EOF
	}
	b := r.segment.file.blocks[r.next]
	r.next++
	stored := make([]byte, b.size)
	if _, err := r.file.ReadAt(stored, b.at); err != nil {
		return err
	}
	r.rows = stored
	if codec := r.segment.file.codec; codec != nil {
		decompress := codec.Decompress
		if bounded, ok := codec.(ocf.BoundedDecompressor); ok {
			decompress = func(src []byte) ([]byte, error) { return bounded.DecompressBounded(src, largestBlock) }
		}
		var err error
		if r.rows, err = decompress(stored); err != nil {
			return fmt.Errorf("block %d: %w", r.next, err)
		}
	}
	r.left, r.row, r.read = b.rows, b.firstRow, r.read+b.size
	return nil
}
