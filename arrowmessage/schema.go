package arrowmessage

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// The numbers of the fields in the tables of Arrow's metadata: https://github.com/apache/arrow/tree/main/format
const (
	messageVersion, messageHeaderType, messageHeader, messageBody = 0, 1, 2, 3

	schemaEndianness, schemaFields, schemaMetadata = 0, 1, 2

	fieldName, fieldNullable, fieldTypeType, fieldType = 0, 1, 2, 3
	fieldDictionary, fieldChildren, fieldMetadata      = 4, 5, 6

	dictionaryID, dictionaryIndex, dictionaryOrdered = 0, 1, 2

	pairKey, pairValue = 0, 1
)

// The numbers of the types in Arrow's metadata.
const (
	typeNull = iota + 1
	typeInt
	typeFloat
	typeBinary
	typeUtf8
	typeBool
	typeDecimal
	typeDate
	typeTime
	typeTimestamp
	typeInterval
	typeList
	typeStruct
	typeUnion
	typeFixedSizeBinary
	typeFixedSizeList
	typeMap
	typeDuration
	typeLargeBinary
	typeLargeUtf8
	typeLargeList
	typeRunEndEncoded
	typeBinaryView
	typeUtf8View
	typeListView
	typeLargeListView
)

// mostDepth is the largest nesting depth of columns. Arrow's own readers have the same limit.
const mostDepth = 64

// A column holds a field of a schema, and the types and dictionary from which the decoder makes the column's arrays.
type column struct {
	arrow.Field
	storage  arrow.DataType // Type, or the storage type of Type if Type is an extension type
	children []column       // of the column's values: the elements of lists, the fields of structs
	// isEncoded says that the arrays hold indices into a dictionary. The field dictionary is the number of this
	// dictionary, and the field values holds the type of its values.
	isEncoded  bool
	dictionary int64
	values     *column
}

// readSchema reads the flatbuffer table of a schema.
func readSchema(t table) (columns []column, schema *arrow.Schema) {
	if e := t.int16(schemaEndianness, 0); e != 0 {
		fail("it is not of a little-endian machine")
	}
	columns = readColumns(t, schemaFields, 0)
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = c.Field
	}
	metadata := readMetadata(t, schemaMetadata)
	return columns, arrow.NewSchema(fields, &metadata)
}

func readColumns(t table, number, depth int) []column {
	if depth > mostDepth {
		fail("its columns are nested more than %d deep", mostDepth)
	}
	tables := t.tables(number)
	columns := make([]column, len(tables))
	for i, t := range tables {
		columns[i] = readColumn(t, depth)
	}
	return columns
}

func readColumn(t table, depth int) (c column) {
	c.Name, c.Nullable, c.Metadata = t.string(fieldName), t.bool(fieldNullable), readMetadata(t, fieldMetadata)
	c.children = readColumns(t, fieldChildren, depth+1)
	about, _ := t.table(fieldType)
	c.Type = readType(t.uint8(fieldTypeType), about, &c)
	if encoding, ok := t.table(fieldDictionary); ok {
		values := column{Field: arrow.Field{Name: c.Name, Type: c.Type, Nullable: true}, storage: c.Type, children: c.children}
		c.isEncoded, c.dictionary, c.values, c.children = true, encoding.int64(dictionaryID), &values, nil
		index := arrow.DataType(arrow.PrimitiveTypes.Int32)
		if about, ok := encoding.table(dictionaryIndex); ok {
			index = readType(typeInt, about, &c)
		}
		c.Type = &arrow.DictionaryType{IndexType: index, ValueType: values.Type, Ordered: encoding.bool(dictionaryOrdered)}
	}
	c.storage = c.Type
	c.readExtension()
	return c
}

// readExtension looks for the extension type that the column's metadata names. If the program has registered this
// extension type, readExtension makes it the type of the column.
func (c *column) readExtension() {
	name, _ := c.Metadata.GetValue(ipc.ExtensionTypeKeyName)
	extension := arrow.GetExtensionType(name)
	if extension == nil {
		return
	}
	about, _ := c.Metadata.GetValue(ipc.ExtensionMetadataKeyName)
	t, err := extension.Deserialize(c.Type, about)
	if err != nil {
		fail("column %.64q: %v", c.Name, err)
	}
	c.Type = t
	rest := c.Metadata.ToMap()
	delete(rest, ipc.ExtensionTypeKeyName)
	delete(rest, ipc.ExtensionMetadataKeyName)
	c.Metadata = arrow.MetadataFrom(rest)
}

func readMetadata(t table, number int) arrow.Metadata {
	pairs := t.tables(number)
	keys, values := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		keys[i], values[i] = p.string(pairKey), p.string(pairValue)
	}
	return arrow.NewMetadata(keys, values)
}

// readType reads a type. about is the flatbuffer table with the type's parameters. c has the column's name and
// children.
func readType(kind uint8, about table, c *column) arrow.DataType {
	switch kind {
	case typeNull:
		return arrow.Null
	case typeBool:
		return arrow.FixedWidthTypes.Boolean
	case typeInt:
		return c.known(ints[intType{about.int32(0, 0), about.bool(1)}])
	case typeFloat:
		return c.known(floats[about.int16(0, 0)])
	case typeDecimal:
		return readDecimal(about, c)
	case typeDate:
		return c.known(dates[about.int16(0, 1)])
	case typeTime:
		return c.known(times[timeType{about.int16(0, 1), about.int32(1, 32)}])
	case typeTimestamp:
		return &arrow.TimestampType{Unit: readUnit(about.int16(0, 0), c), TimeZone: about.string(1)}
	case typeDuration:
		return &arrow.DurationType{Unit: readUnit(about.int16(0, 1), c)}
	case typeInterval:
		return c.known(intervals[about.int16(0, 0)])
	case typeBinary:
		return arrow.BinaryTypes.Binary
	case typeUtf8:
		return arrow.BinaryTypes.String
	case typeLargeBinary:
		return arrow.BinaryTypes.LargeBinary
	case typeLargeUtf8:
		return arrow.BinaryTypes.LargeString
	case typeBinaryView:
		return arrow.BinaryTypes.BinaryView
	case typeUtf8View:
		return arrow.BinaryTypes.StringView
	case typeFixedSizeBinary:
		return &arrow.FixedSizeBinaryType{ByteWidth: int(c.positive(about.int32(0, 0)))}
	}
	return readNested(kind, about, c)
}

// readNested reads a type that has children.
func readNested(kind uint8, about table, c *column) arrow.DataType {
	fields := make([]arrow.Field, len(c.children))
	for i, child := range c.children {
		fields[i] = child.Field
	}
	if kind == typeStruct {
		return arrow.StructOf(fields...)
	}
	if len(fields) != 1 && kind != typeUnion && kind != typeRunEndEncoded {
		fail("column %.64q has %d children in place of one", c.Name, len(fields))
	}
	switch kind {
	case typeList:
		return arrow.ListOfField(fields[0])
	case typeLargeList:
		return arrow.LargeListOfField(fields[0])
	case typeListView:
		return arrow.ListViewOfField(fields[0])
	case typeLargeListView:
		return arrow.LargeListViewOfField(fields[0])
	case typeFixedSizeList:
		return arrow.FixedSizeListOfField(c.positive(about.int32(0, 0)), fields[0])
	case typeMap:
		entry, ok := fields[0].Type.(*arrow.StructType)
		if !ok || entry.NumFields() != 2 {
			fail("the entries of the map %.64q are not structs of two fields", c.Name)
		}
		if entry.Field(0).Nullable {
			fail("the keys of the map %.64q may be null", c.Name)
		}
		t := arrow.MapOfFields(entry.Field(0), entry.Field(1))
		t.KeysSorted = about.bool(0)
		return t
	}
	fail("column %.64q has a type that is not read: %d of Arrow's", c.Name, kind)
	return nil
}

// known returns t. It fails if t is nil, which means that Arrow has no type of the given width or unit.
func (c *column) known(t arrow.DataType) arrow.DataType {
	if t == nil {
		fail("column %.64q has a width or a unit that does not exist", c.Name)
	}
	return t
}

// positive returns n. It fails unless n is greater than 0.
func (c *column) positive(n int32) int32 {
	if n <= 0 {
		fail("column %.64q has values of size %d", c.Name, n)
	}
	return n
}

type intType struct {
	bits   int32
	signed bool
}

var ints = map[intType]arrow.DataType{
	{8, true}: arrow.PrimitiveTypes.Int8, {16, true}: arrow.PrimitiveTypes.Int16, {32, true}: arrow.PrimitiveTypes.Int32, {64, true}: arrow.PrimitiveTypes.Int64,
	{8, false}: arrow.PrimitiveTypes.Uint8, {16, false}: arrow.PrimitiveTypes.Uint16, {32, false}: arrow.PrimitiveTypes.Uint32, {64, false}: arrow.PrimitiveTypes.Uint64,
}

var floats = map[int16]arrow.DataType{0: arrow.FixedWidthTypes.Float16, 1: arrow.PrimitiveTypes.Float32, 2: arrow.PrimitiveTypes.Float64}

var dates = map[int16]arrow.DataType{0: arrow.FixedWidthTypes.Date32, 1: arrow.FixedWidthTypes.Date64}

type timeType struct {
	unit int16
	bits int32
}

var times = map[timeType]arrow.DataType{
	{0, 32}: arrow.FixedWidthTypes.Time32s, {1, 32}: arrow.FixedWidthTypes.Time32ms,
	{2, 64}: arrow.FixedWidthTypes.Time64us, {3, 64}: arrow.FixedWidthTypes.Time64ns,
}

var intervals = map[int16]arrow.DataType{
	0: arrow.FixedWidthTypes.MonthInterval, 1: arrow.FixedWidthTypes.DayTimeInterval, 2: arrow.FixedWidthTypes.MonthDayNanoInterval,
}

func readUnit(unit int16, c *column) arrow.TimeUnit {
	if unit < 0 || unit > int16(arrow.Nanosecond) {
		fail("column %.64q has a unit of time that does not exist", c.Name)
	}
	return arrow.TimeUnit(unit)
}

// digits maps a width in bits to the number of decimal digits that it can hold.
var digits = map[int32]int32{32: 9, 64: 18, 128: 38, 256: 76}

// readDecimal reads a decimal type. It refuses a precision or a scale that is impossible for the width. This matters
// because conversions of the values compute ten to the power of the scale, which a wrong scale could make huge.
func readDecimal(about table, c *column) arrow.DataType {
	precision, scale, bits := about.int32(0, 0), about.int32(1, 0), about.int32(2, 128)
	most := digits[bits]
	if precision < 1 || precision > most || scale < -most || scale > most {
		fail("column %.64q has decimals of %d bits with precision %d and scale %d", c.Name, bits, precision, scale)
	}
	switch bits {
	case 32:
		return &arrow.Decimal32Type{Precision: precision, Scale: scale}
	case 64:
		return &arrow.Decimal64Type{Precision: precision, Scale: scale}
	case 128:
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}
	}
	return &arrow.Decimal256Type{Precision: precision, Scale: scale}
}
