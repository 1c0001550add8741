package file

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// Arrow's library makes room for as many elements as a vector of a flatbuffer says that it has, which in a damaged file may be billions. So the vectors of Arrow's metadata
// are looked at before: https://github.com/apache/arrow/tree/main/format has the tables. All functions panic where offsets lead out of the buffer: they run within guard.

// flatbuffer is the bytes of a flatbuffer.
type flatbuffer []byte

func (b flatbuffer) uint32(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }

// root is the table that the buffer begins with.
func (b flatbuffer) root() int { return b.uint32(0) }

// field is where a table has a field, or 0.
func (b flatbuffer) field(table, i int) int {
	layout := table - int(int32(binary.LittleEndian.Uint32(b[table:])))
	if 4+2*i >= int(binary.LittleEndian.Uint16(b[layout:])) {
		return 0
	}
	offset := int(binary.LittleEndian.Uint16(b[layout+4+2*i:]))
	if offset == 0 {
		return 0
	}
	return table + offset
}

// table is the table that a field refers to, or 0.
func (b flatbuffer) table(table, i int) int {
	at := b.field(table, i)
	if at == 0 {
		return 0
	}
	return at + b.uint32(at)
}

// vector is the elements of a vector that a field refers to.
func (b flatbuffer) vector(table, i, width int) (first, n int) {
	at := b.table(table, i)
	if at == 0 {
		return 0, 0
	}
	if n = b.uint32(at); n > (len(b)-at)/width {
		panic(fmt.Sprintf("a list of %d elements does not fit into its metadata", n))
	}
	return at + 4, n
}

// The places of fields in tables of Arrow's metadata, and the sizes of structs.
const (
	schemaFields, schemaMetadata                  = 1, 2
	fieldChildren, fieldMetadata                  = 5, 6
	footerSchema, footerDictionaries, footerBatch = 1, 2, 3
	messageType, messageHeader                    = 1, 2
	batchNodes, batchBuffers, batchVariadic       = 1, 2, 4
	dictionaryData                                = 1

	typeSchema, typeDictionary, typeBatch = 1, 2, 3
	blockSize, nodeSize, bufferSize       = 24, 16, 16
	deepestField                          = 64
)

func (b flatbuffer) checkSchema(schema int) { b.checkFields(schema, schemaFields, schemaMetadata, 0) }

func (b flatbuffer) checkFields(table, children, meta, depth int) {
	if depth > deepestField {
		panic("its columns are nested too deeply")
	}
	b.vector(table, meta, 4)
	first, n := b.vector(table, children, 4)
	for i := range n {
		at := first + 4*i
		b.checkFields(at+b.uint32(at), fieldChildren, fieldMetadata, depth+1)
	}
}

func (b flatbuffer) checkMessage() {
	message := b.root()
	at, header := b.field(message, messageType), b.table(message, messageHeader)
	if at == 0 || header == 0 {
		panic("a message has no header")
	}
	switch b[at] {
	case typeSchema:
		b.checkSchema(header)
		return
	case typeDictionary:
		header = b.table(header, dictionaryData)
	case typeBatch:
	default:
		panic(fmt.Sprintf("a message has the type %d", b[at]))
	}
	b.vector(header, batchNodes, nodeSize)
	b.vector(header, batchBuffers, bufferSize)
	b.vector(header, batchVariadic, 8)
}

// message cuts the flatbuffer out of an encapsulated message.
func message(b []byte) flatbuffer {
	if binary.LittleEndian.Uint32(b) == 0xffffffff {
		b = b[4:]
	}
	return flatbuffer(b[4 : 4+binary.LittleEndian.Uint32(b)])
}

// checkArrowFile looks at the metadata of an Arrow IPC file.
func checkArrowFile(f *os.File) error {
	const magic = "ARROW1"
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end := make([]byte, 4+len(magic))
	if _, err := f.ReadAt(end, info.Size()-int64(len(end))); err != nil || string(end[4:]) != magic {
		return errors.New("it is not an Arrow IPC file, or is cut off: its last bytes are not ARROW1")
	}
	size := int64(int32(binary.LittleEndian.Uint32(end)))
	if size <= 0 || size > info.Size() {
		return fmt.Errorf("it says that its footer has %d bytes", size)
	}
	footer := make(flatbuffer, size)
	if _, err := f.ReadAt(footer, info.Size()-int64(len(end))-size); err != nil {
		return err
	}
	root := footer.root()
	footer.checkSchema(footer.table(root, footerSchema))
	for _, blocks := range []int{footerDictionaries, footerBatch} {
		first, n := footer.vector(root, blocks, blockSize)
		for i := range n {
			if err := checkBlock(f, info.Size(), footer[first+blockSize*i:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkBlock looks at a message that a footer refers to.
func checkBlock(f *os.File, size int64, block []byte) error {
	at, length := int64(binary.LittleEndian.Uint64(block)), int64(int32(binary.LittleEndian.Uint32(block[8:])))
	body := int64(binary.LittleEndian.Uint64(block[16:]))
	if at < 0 || length < 8 || body < 0 || at > size || length > size-at || body > size-at-length {
		return fmt.Errorf("a batch at byte %d, of %d and %d bytes, is not in the file of %d", at, length, body, size)
	}
	meta := make([]byte, length)
	if _, err := f.ReadAt(meta, at); err != nil {
		return err
	}
	message(meta).checkMessage()
	return nil
}

// checkParquetSchema looks at the Arrow schema that a Parquet file may have in its metadata.
func checkParquetSchema(m *metadata.FileMetaData) error {
	text := m.KeyValueMetadata().FindValue("ARROW:schema")
	if text == nil {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(*text)
	if err != nil {
		return err
	}
	message(b).checkMessage()
	return nil
}
