package arrowmessage

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A Message is an Arrow message: a schema, a dictionary or a batch. Values that are decoded from it may refer to its
// bytes instead of copying them.
type Message struct {
	Metadata []byte // a flatbuffer
	Body     []byte
}

// The kinds of messages; the versions of the metadata that this package can read, which are those of Arrow 0.8 and
// later; and the numbers of the fields in the flatbuffer table of a dictionary.
const (
	kindSchema, kindDictionary, kindBatch = 1, 2, 3

	versionV4, versionV5 = 3, 4

	dictionaryOf, dictionaryBatch, dictionaryIsDelta = 0, 1, 2
)

// schemaFactor is how many bytes of memory a schema takes for each byte of its metadata.
const schemaFactor = 32

// A Charge is a function that charges bytes of memory to an account; a negative number gives bytes back. If it returns
// an error, the memory must not be used.
type Charge func(bytes int64) error

// A Decoder decodes the messages of a stream or a file. It charges the memory that it uses. Its method Close gives back
// all that is still charged.
type Decoder struct {
	charge       Charge
	charged      int64
	columns      []column
	schema       *arrow.Schema
	schemaBytes  int64             // how many of the charged bytes are for the schema
	batchBytes   int64             // how many of the charged bytes are for the last batch
	types        map[int64]*column // the types of dictionaries' values, by dictionary number
	dictionaries map[int64]*dictionary
	replaced     int64 // bytes of dictionaries that were replaced; see the method Replaced
}

// A dictionary holds the values to which the indices in batches refer.
type dictionary struct {
	values *array.Data
	bytes  int64 // how many of the decoder's charged bytes are for this dictionary
}

// NewDecoder makes a Decoder from the first message of a stream, which is the schema.
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

// readHeader reads the header in a message's metadata. It returns the kind of the message, the flatbuffer table with
// the details, and the length of the body.
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

// findDictionaries records the type of the values of each dictionary that the columns use. Several columns may use the
// same dictionary, if they give its values the same type.
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

// BatchBytes returns how many bytes are charged for the last batch.
func (d *Decoder) BatchBytes() int64 { return d.batchBytes }

// Replaced returns the size in bytes of the dictionaries that were replaced since the last call. These dictionaries
// are no longer charged, but batches that the caller has kept may still refer to them.
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

// settle gives back all charged bytes except those for the schema and the dictionaries.
func (d *Decoder) settle() {
	kept := d.schemaBytes
	for _, dictionary := range d.dictionaries {
		kept += dictionary.bytes
	}
	_ = d.charge(kept - d.charged)
	d.charged = kept
}

// Decode decodes a message that follows the schema. The memory of a batch is charged until the next call of Decode. If
// the message is a dictionary, Decode stores the dictionary and returns no batch.
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

// keep stores the dictionary of a message. It replaces an earlier dictionary with the same number. If the message is a
// delta, keep appends the message's values to the earlier dictionary.
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
		// The joined dictionary is charged in addition to the old dictionary and the delta, because for a moment all
		// three exist at the same time.
		if err := d.reserve(made.bytes); err != nil {
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
