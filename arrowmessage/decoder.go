package arrowmessage

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A Message is one of Arrow's: a schema, a dictionary or a batch. What is made of it refers to its bytes.
type Message struct {
	Metadata []byte // a flatbuffer
	Body     []byte
}

// The kinds of messages, and the versions of their metadata that are read: those of Arrow since 0.8.
const (
	kindSchema, kindDictionary, kindBatch = 1, 2, 3

	versionV4, versionV5 = 3, 4

	dictionaryOf, dictionaryBatch, dictionaryIsDelta = 0, 1, 2
)

// schemaFactor is how many bytes a schema takes for each byte of its metadata.
const schemaFactor = 32

// A Charge charges somebody for bytes, or gives them back if there are fewer than 0. Its error refuses them.
type Charge func(bytes int64) error

// A Decoder reads the messages of a stream or a file. What it takes stays charged until it is closed.
type Decoder struct {
	charge       Charge
	charged      int64
	columns      []column
	schema       *arrow.Schema
	schemaBytes  int64             // of charged
	batchBytes   int64             // of charged, for the last batch
	types        map[int64]*column // of the values of dictionaries, by the dictionaries' numbers
	dictionaries map[int64]*dictionary
	replaced     int64 // bytes of dictionaries, see Replaced
}

// A dictionary is the values that indices in batches stand for.
type dictionary struct {
	values *array.Data
	bytes  int64 // of the decoder's charged
}

// NewDecoder reads the schema that a stream begins with.
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
	if err := d.take(d.schemaBytes); err != nil {
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

// readHeader is what a message's metadata say: its kind, the table about it, and how long its body is.
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

// findDictionaries notes the types of dictionaries. Columns may have one together.
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

// BatchBytes is what was charged for the last batch.
func (d *Decoder) BatchBytes() int64 { return d.batchBytes }

// Replaced is the bytes of dictionaries in whose place others have come since it was last called. They are not charged any more, but batches that were read before,
// and are kept, refer to them.
func (d *Decoder) Replaced() int64 {
	n := d.replaced
	d.replaced = 0
	return n
}

// Close gives back what is charged.
func (d *Decoder) Close() {
	_ = d.charge(-d.charged)
	d.charged = 0
}

func (d *Decoder) take(n int64) error {
	if err := d.charge(n); err != nil {
		return err
	}
	d.charged += n
	return nil
}

// settle gives back what was charged for more than the schema and the dictionaries.
func (d *Decoder) settle() {
	kept := d.schemaBytes
	for _, dictionary := range d.dictionaries {
		kept += dictionary.bytes
	}
	_ = d.charge(kept - d.charged)
	d.charged = kept
}

// Decode reads a message behind the schema. A batch is charged until the next call; there is none if the message is a dictionary, which is kept.
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
	if err := d.take(d.batchBytes); err != nil {
		return nil, err
	}
	return read.record(d.columns, d.schema, header.int64(batchRows)), nil
}

// keep keeps a dictionary in the place of the one with its number or, if it is a delta, its values behind those.
func (d *Decoder) keep(t table, metadata, body []byte) error {
	id := t.int64(dictionaryOf)
	c := d.types[id]
	if c == nil {
		fail("a dictionary has the number %d, which no column has", id)
	}
	header, _ := t.table(dictionaryBatch)
	read := d.readBatch(header, body)
	made := &dictionary{bytes: read.unpacked + int64(len(body)) + metadataFactor*int64(len(metadata))}
	if err := d.take(made.bytes); err != nil {
		return err
	}
	made.values = read.array(c)
	old := d.dictionaries[id]
	if t.bool(dictionaryIsDelta) && old != nil {
		made.bytes += old.bytes
		if err := d.take(made.bytes); err != nil { // all three are there for a moment
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
