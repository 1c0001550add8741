package arrowmessage

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A Message is an Arrow message: a schema, a dictionary or a batch. The results of decoding refer to its bytes.
type Message struct {
	Metadata []byte // a flatbuffer
	Body     []byte
}

// The kinds of messages, and the versions of the metadata that this package reads: those since Arrow 0.8.
const (
	kindSchema, kindDictionary, kindBatch = 1, 2, 3

	versionV4, versionV5 = 3, 4

	dictionaryOf, dictionaryBatch, dictionaryIsDelta = 0, 1, 2
)

// schemaFactor is the number of bytes that a schema takes for each byte of its metadata.
const schemaFactor = 32

// A Charge charges an account for bytes; a negative number gives bytes back. If it returns an error, the bytes must not
// be taken.
type Charge func(bytes int64) error

// A Decoder reads the messages of a stream or a file. The memory that it takes stays charged until it is closed.
type Decoder struct {
	charge       Charge
	charged      int64
	columns      []column
	schema       *arrow.Schema
	schemaBytes  int64             // the part of charged for the schema
	batchBytes   int64             // the part of charged for the last batch
	types        map[int64]*column // the types of dictionaries' values, by dictionary number
	dictionaries map[int64]*dictionary
	replaced     int64 // bytes of replaced dictionaries, see Replaced
}

// A dictionary holds the values to which indices in batches refer.
type dictionary struct {
	values *array.Data
	bytes  int64 // the part of the decoder's charged for it
}

// NewDecoder reads the schema, which is the first message of a stream.
func NewDecoder(m Message, charge Charge) (d *Decoder, err error) {
	defer recoverFormat(&err)
	kind, header, n := readHeader(m.Metadata)
	if kind != kindSchema || n != 0 {
		fail("it does not begin with a schema")
	}
	return newDecoder(header, charge)
}

func newDecoder(schema table, charge Charge) (*Decoder, error) {
	d := &Decoder{charge: charge, schemaBytes: schemaFactor * int64(len(schema.of.bytes)), types: map[int64]*column{}, dictionaries: map[int64]*dictionary{}}
	if err := d.reserve(d.schemaBytes); err != nil {
		return nil, err
	}
	read := false
	defer func() {
		if !read {
			d.Close()
		}
	}()
	d.columns, d.schema = readSchema(schema)
	d.findDictionaries(d.columns)
	read = true
	return d, nil
}

// readHeader reads the header in a message's metadata: the message's kind, its table, and the length of its body.
func readHeader(metadata []byte) (kind uint8, header table, body int64) {
	root := newFlatbuffer(metadata).root()
	if version := root.int16(messageVersion, 0); version < versionV4 || version > versionV5 {
		fail("a message has metadata of version %d", version+1)
	}
	header, ok := root.table(messageHeader)
	if !ok {
		fail("a message has no header")
	}
	return root.uint8(messageHeaderType), header, root.int64(messageBody)
}

// findDictionaries records the types of the columns' dictionaries. Several columns may share a dictionary.
func (d *Decoder) findDictionaries(columns []column) {
	for i := range columns {
		c := &columns[i]
		if !c.isEncoded {
			d.findDictionaries(c.children)
			continue
		}
		if t := d.types[c.dictionary]; t != nil && !arrow.TypeEqual(t.Type, c.values.Type) {
			fail("dictionary %d is said to have values of two types", c.dictionary)
		}
		d.types[c.dictionary] = c.values
		d.findDictionaries(c.values.children)
	}
}

// BatchBytes returns the bytes charged for the last batch.
func (d *Decoder) BatchBytes() int64 { return d.batchBytes }

// Replaced returns the size in bytes of the dictionaries that were replaced since the last call. They are no longer
// charged, but earlier batches that the caller keeps still refer to them.
func (d *Decoder) Replaced() int64 {
	n := d.replaced
	d.replaced = 0
	return n
}

// Close gives all charged bytes back.
func (d *Decoder) Close() {
	_ = d.charge(-d.charged)
	d.charged = 0
}

func (d *Decoder) reserve(n int64) error {
	if err := d.charge(n); err != nil {
		return err
	}
	d.charged += n
	return nil
}

// settle gives back all charged bytes but those for the schema and the dictionaries.
func (d *Decoder) settle() {
	kept := d.schemaBytes
	for _, dictionary := range d.dictionaries {
		kept += dictionary.bytes
	}
	_ = d.charge(kept - d.charged)
	d.charged = kept
}

// Decode reads a message after the schema. A batch stays charged until the next call. If the message is a dictionary,
// Decode keeps it and returns no batch.
func (d *Decoder) Decode(m Message) (b arrow.RecordBatch, err error) {
	d.settle()
	return d.decode(m)
}

func (d *Decoder) decode(m Message) (b arrow.RecordBatch, err error) {
	defer recoverFormat(&err)
	kind, header, n := readHeader(m.Metadata)
	if n < 0 || n > int64(len(m.Body)) {
		fail("a message says that its body has %d bytes, and it has %d", n, len(m.Body))
	}
	body := m.Body[:n]
	switch kind {
	case kindDictionary:
		return nil, d.keep(header, m.Metadata, body)
	case kindBatch:
	default:
		fail("a message behind its schema is of kind %d", kind)
	}
	read := d.readBatch(header, body)
	d.batchBytes = read.unpacked + metadataFactor*int64(len(m.Metadata))
	if err := d.reserve(d.batchBytes); err != nil {
		return nil, err
	}
	return read.record(d.columns, d.schema, header.int64(batchRows)), nil
}

// keep stores a dictionary in the place of the one with the same number. If it is a delta, keep appends its values to
// that one.
func (d *Decoder) keep(t table, metadata, body []byte) error {
	id := t.int64(dictionaryOf)
	c := d.types[id]
	if c == nil {
		fail("a dictionary has the number %d, which no column has", id)
	}
	header, _ := t.table(dictionaryBatch)
	read := d.readBatch(header, body)
	made := &dictionary{bytes: read.unpacked + int64(len(body)) + metadataFactor*int64(len(metadata))}
	if err := d.reserve(made.bytes); err != nil {
		return err
	}
	made.values = read.array(c)
	old := d.dictionaries[id]
	if t.bool(dictionaryIsDelta) && old != nil {
		made.bytes += old.bytes
		if err := d.reserve(made.bytes); err != nil { // the old, the delta and the joined one exist together for a moment
			return err
		}
		joined, err := array.Concatenate([]arrow.Array{array.MakeFromData(old.values), array.MakeFromData(made.values)}, memory.DefaultAllocator)
		if err != nil {
			fail("the values of dictionary %d: %v", id, err)
		}
		made.values = joined.Data().(*array.Data)
	}
	if old != nil {
		d.replaced += old.bytes
	}
	d.dictionaries[id] = made
	return nil
}
