package arrowmessage

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// An Arrow file begins with the bytes of magic, followed by a stream. The file ends with a footer, which holds the
// schema and the positions of dictionaries and batches in the file:
//
//	footer, a flatbuffer | length of the footer, 4 bytes | "ARROW1"

const (
	magic = "ARROW1"

	footerSchema, footerDictionaries, footerBatches = 1, 2, 3

	// blockSize is the number of bytes of a block in the footer, which gives the position of a message: offset (8
	// bytes), length of the metadata (4), padding (4), length of the body (8).
	blockSize = 24
	// continuation is the number with which an encapsulated message starts. The length of the metadata follows this
	// number. Writers before Arrow 0.15 omit the number.
	continuation = math.MaxUint32
)

// A File is an open Arrow file.
type File struct {
	from    io.ReaderAt
	size    int64
	batches []block
	decoder *Decoder
}

// block is the position of a message in a file: its offset, and the lengths of its metadata and body.
type block struct{ at, metadata, body int64 }

// OpenFile opens an Arrow file. The parameter size is the file's length in bytes. OpenFile reads the footer and the
// dictionaries.
func OpenFile(from io.ReaderAt, size int64, charge Charge) (f *File, err error) {
	defer recoverFormat(&err)
	f = &File{from: from, size: size}
	end := make([]byte, 4+len(magic))
	if _, err := from.ReadAt(end, max(0, size-int64(len(end)))); err != nil || string(end[4:]) != magic {
		fail("it is not an Arrow IPC file, or is cut off: its last bytes are not %s", magic)
	}
	n := int64(int32(binary.LittleEndian.Uint32(end)))
	if n <= 0 || n > size-int64(len(end)) {
		fail("it says that its footer has %d bytes", n)
	}
	footer := make([]byte, n)
	if _, err := from.ReadAt(footer, size-int64(len(end))-n); err != nil {
		return nil, err
	}
	root := newFlatbuffer(footer).root()
	schema, ok := root.table(footerSchema)
	if !ok {
		fail("it has no schema")
	}
	dictionaries := f.blocks(root, footerDictionaries)
	f.batches = f.blocks(root, footerBatches)
	if f.decoder, err = newDecoder(schema, charge); err != nil {
		return nil, err
	}
	for _, b := range dictionaries {
		if err := f.readDictionary(b); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// blocks returns the positions of messages that a field of the footer holds.
func (f *File) blocks(footer table, number int) []block {
	list, n, _ := footer.vector(number, blockSize)
	blocks := make([]block, n)
	for i := range blocks {
		raw := list[blockSize*i:]
		b := block{int64(binary.LittleEndian.Uint64(raw)), int64(int32(binary.LittleEndian.Uint32(raw[8:]))), int64(binary.LittleEndian.Uint64(raw[16:]))}
		if b.at < 0 || b.metadata < 8 || b.body < 0 || b.at > f.size || b.metadata > f.size-b.at || b.body > f.size-b.at-b.metadata {
			fail("message %d at byte %d, of %d and %d bytes, is not in the file of %d", i+1, b.at, b.metadata, b.body, f.size)
		}
		blocks[i] = b
	}
	return blocks
}

// Schema returns the schema of the file.
func (f *File) Schema() *arrow.Schema { return f.decoder.schema }

// Close gives all charged bytes back.
func (f *File) Close() { f.decoder.Close() }

// Batches returns the number of batches in the file.
func (f *File) Batches() int { return len(f.batches) }

// Rows returns the number of rows that a batch claims to have.
func (f *File) Rows(batch int) (rows int64, err error) {
	defer recoverFormat(&err)
	b := f.batches[batch]
	b.body = 0
	m, err := f.read(b)
	if err != nil {
		return 0, err
	}
	_, header, _ := readHeader(m.Metadata)
	if rows = header.int64(batchRows); rows < 0 {
		fail("it says that it has %d rows", rows)
	}
	return rows, nil
}

// Batch decodes a batch. The memory of the batch is charged until the next call of Batch or Rows.
func (f *File) Batch(batch int) (arrow.RecordBatch, error) {
	m, err := f.read(f.batches[batch])
	if err != nil {
		return nil, err
	}
	record, err := f.decoder.decode(m)
	if record == nil && err == nil {
		err = &FormatError{"the message is not a batch"}
	}
	return record, err
}

func (f *File) readDictionary(b block) error {
	m, err := f.read(b)
	if err != nil {
		return err
	}
	record, err := f.decoder.decode(m)
	if record != nil {
		err = &FormatError{"a batch is in the place of a dictionary"}
	}
	return err
}

// read reads the message at the position b. It charges for the bytes of the message.
func (f *File) read(b block) (m Message, err error) {
	f.decoder.settle()
	if err := f.decoder.reserve(b.metadata + b.body); err != nil {
		return m, err
	}
	all := make([]byte, b.metadata+b.body)
	if _, err := f.from.ReadAt(all, b.at); err != nil {
		return m, err
	}
	m.Metadata, err = Unframed(all[:b.metadata])
	m.Body = all[b.metadata:]
	return m, err
}

// Unframed returns the metadata at the start of b. In files and streams, the length precedes the metadata, and padding
// follows.
func Unframed(b []byte) (metadata []byte, err error) {
	if len(b) > 4 && binary.LittleEndian.Uint32(b) == continuation {
		b = b[4:]
	}
	if len(b) < 4 || int64(binary.LittleEndian.Uint32(b)) > int64(len(b)-4) {
		return nil, &FormatError{"a message is cut off within its metadata"}
	}
	return b[4 : 4+binary.LittleEndian.Uint32(b)], nil
}
