package table

import (
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Projection holds what a read needs to decode columns from keys and values of one table or index. It depends only on
// the table or index and the list of columns. It is immutable, and valid as long as the catalog from which it was
// made.
type Projection struct {
	*Layout
	Columns []*schema.Column // in the order of the result; a column may repeat

	sources []source          // one for each column in Columns
	fields  []schema.ColumnID // the IDs of the columns that are read from a row's value, ascending
	virtual []virtual         // the virtual columns to compute; each comes after those that it reads
	// pending lists the columns that can hold a pending commit timestamp, with their sources. A read without
	// AllowPending fails at a row in which such a timestamp is pending. For a table the list has only columns that the
	// read asks for; for an index it has all such columns that the index holds.
	pending []pendingSource
}

type pendingSource struct {
	column *schema.Column
	source source
}

// source says where a read finds the value of a column.
type source struct {
	kind  sourceKind
	place int // the index in Layout.Key, Projection.fields or Projection.virtual, depending on kind
	field int // for fromEither: the index of the column's ID in Projection.fields; place is the index in Layout.Key
	desc  bool
	typ   *value.Type
	// size is the data size in bytes of each value if all values of the type have the same size; otherwise it is
	// sizeOfPayload or sizeOfParts.
	size int
}

const (
	sizeOfPayload = 0  // the data size of a value is the length of its stored bytes
	sizeOfParts   = -1 // the data size of a value depends on the contents of its stored bytes (see value.RowDataSize)
)

func sizeOf(t *value.Type) int {
	switch t.Kind {
	case value.Array, value.Struct, value.Numeric:
		return sizeOfParts
	}
	return value.FixedSize(t.Kind)
}

type sourceKind uint8

const (
	fromKey sourceKind = iota
	fromValue
	fromEither // in the value of an index entry if the column is stored there, else in the key (see isExact)
	computed
)

// virtual is a generated column that is not stored.
type virtual struct {
	column *schema.Column
	args   []source
	peeks  bool // whether Generated.Peek computes the column
}

// NewProjection makes a projection to columns of the rows of t or, if index is not nil, of the entries of index.
func NewProjection(t *schema.Table, index *schema.Index, columns []*schema.Column) (*Projection, error) {
	p := &Projection{Columns: columns}
	if index == nil {
		p.Layout = TableLayout(t)
	} else {
		p.Layout = IndexLayout(index)
	}
	for _, c := range columns {
		s, err := p.source(c, 0)
		if err != nil {
			return nil, err
		}
		p.sources = append(p.sources, s)
	}
	watched := columns
	if index != nil {
		watched = entryColumns(index)
	}
	for _, c := range watched {
		if !c.AllowCommitTimestamp {
			continue
		}
		s, err := p.source(c, 0)
		if err != nil {
			return nil, err
		}
		p.pending = append(p.pending, pendingSource{c, s})
	}
	p.numberFields()
	return p, nil
}

// source finds where the value of c is stored. If it is stored in the rows' values, the result holds the ID of c where
// the index in p.fields belongs; numberFields later replaces the ID by the index. If c is computed, source calls itself
// for the columns that c reads. depth is the number of such nested calls. It is limited, so that a cycle of generated
// columns ends in an error.
func (p *Projection) source(c *schema.Column, depth int) (source, error) {
	if c.Ordinal < 0 {
		return p.virtualSource(c, depth)
	}
	if i := p.columns[c.Ordinal]; i >= 0 {
		s := source{kind: fromKey, place: i, desc: p.Key[i].Desc, typ: c.Type}
		if p.Index != nil && isExact(c) {
			s.kind, s.field = fromEither, int(c.ID)
			p.fields = append(p.fields, c.ID)
		}
		return s, nil
	}
	if p.Index != nil && !slices.Contains(p.Index.Storing, c) {
		return source{}, usererror.ColumnNotInIndex(p.Index.FullName(), c.Name)
	}
	if c.Generated == nil || c.Stored || p.Index != nil {
		p.fields = append(p.fields, c.ID)
		return source{kind: fromValue, place: int(c.ID), typ: c.Type}, nil
	}
	return p.virtualSource(c, depth)
}

func (p *Projection) virtualSource(c *schema.Column, depth int) (source, error) {
	for i, v := range p.virtual {
		if v.column == c {
			return source{kind: computed, place: i, typ: c.Type}, nil
		}
	}
	if depth > len(p.Table.Columns) {
		return source{}, fmt.Errorf("column %s.%s is generated from itself", p.Table.FullName(), c.Name)
	}
	v := virtual{column: c, args: make([]source, len(c.Generated.Uses))}
	for i, u := range c.Generated.Uses {
		s, err := p.source(u, depth+1)
		if err != nil {
			return source{}, err
		}
		v.args[i] = s
	}
	v.peeks = c.Generated.Peek != nil && v.args[0].kind == fromValue
	p.virtual = append(p.virtual, v)
	return source{kind: computed, place: len(p.virtual) - 1, typ: c.Type}, nil
}

// numberFields sorts p.fields, and replaces each column ID that the method source has left in a source by the index of
// the ID in p.fields.
func (p *Projection) numberFields() {
	slices.Sort(p.fields)
	p.fields = slices.Compact(p.fields)
	for i := range p.sources {
		p.number(&p.sources[i])
		p.sources[i].size = sizeOf(p.sources[i].typ)
	}
	for i := range p.pending {
		p.number(&p.pending[i].source)
	}
	for _, v := range p.virtual {
		for i := range v.args {
			p.number(&v.args[i])
		}
	}
}

func (p *Projection) number(s *source) {
	switch s.kind {
	case fromValue:
		s.place, _ = slices.BinarySearch(p.fields, schema.ColumnID(s.place))
	case fromEither:
		s.field, _ = slices.BinarySearch(p.fields, schema.ColumnID(s.field))
	}
}

// wireTag is the protobuf tag of one value in google.spanner.v1.PartialResultSet: field 2, length-delimited.
const wireTag = 2<<3 | 2

// located is one row in stored form. It records the positions of the key parts and fields, but has not decoded them.
type located struct {
	p        *Projection
	key, val []byte
	offsets  []int         // the offsets in key at which the key parts begin
	fields   []field       // the positions of the fields in val
	virtual  []value.Value // the values of the virtual columns
	data     int64         // total data size in bytes of the values that appendWire and appendTo have appended
	args     []value.Value // buffer for the values from which a virtual column is computed
	text     textArena

	// These arrays hold the offsets and fields unless the projection has many, so that most reads need no allocation.
	someOffsets [4]int
	someFields  [12]field
}

// init prepares l for rows of p. l must not be copied afterwards, because its slices may refer to its own arrays.
func (l *located) init(p *Projection) {
	l.p = p
	l.offsets, l.fields = l.someOffsets[:], l.someFields[:]
	if len(p.Key) > len(l.offsets) {
		l.offsets = make([]int, len(p.Key))
	}
	if len(p.fields) > len(l.fields) {
		l.fields = make([]field, len(p.fields))
	}
	if len(p.virtual) > 0 {
		l.virtual = make([]value.Value, len(p.virtual))
	}
}

// locate makes the row at key the current row of l. It finds the fields in val and computes the virtual columns. The
// caller must have stored the offsets of the key parts in l.offsets.
func (l *located) locate(key, val []byte) error {
	l.key, l.val = key, val
	if len(l.p.fields) > 0 {
		if err := findFields(val, l.p.fields, l.fields); err != nil {
			return err
		}
	}
	for i := range l.p.virtual {
		if err := l.compute(i); err != nil {
			return err
		}
	}
	return nil
}

// locateDeleted makes a deleted row the current row of l. Such a row has no value, so all its fields are NULL.
func (l *located) locateDeleted(key []byte) {
	l.key, l.val = key, nil
	for i := range l.p.fields {
		l.fields[i] = absent
	}
}

// from says where this row holds the column of s: in its key, in its value or among the computed values, and at which
// index. If s.kind is fromEither, the result is fromKey or fromValue.
func (l *located) from(s *source) (sourceKind, int) {
	switch {
	case s.kind != fromEither:
		return s.kind, s.place
	case l.fields[s.field].isNull():
		return fromKey, s.place
	}
	return fromValue, s.field
}

func (l *located) compute(i int) error {
	v := &l.p.virtual[i]
	if v.peeks {
		return l.peek(i, v)
	}
	l.args = l.args[:0]
	for _, s := range v.args {
		arg, err := l.argument(v, s)
		if err != nil {
			return err
		}
		l.args = append(l.args, arg)
	}
	var err error
	l.virtual[i], err = v.column.Generated.Eval(l.args)
	return err
}

// peek computes virtual column i from the stored bytes of the column that it reads. The result may refer to these
// bytes instead of a copy.
func (l *located) peek(i int, v *virtual) (err error) {
	if f := l.fields[v.args[0].place]; f.isNull() {
		l.virtual[i] = value.Null(v.column.Type.Kind)
	} else {
		l.virtual[i], err = v.column.Generated.Peek(f.of(l.val))
	}
	return err
}

// keepVirtual copies the virtual columns that refer to the row's bytes, so that they stay valid when the bytes change.
func (l *located) keepVirtual() {
	for i := range l.p.virtual {
		if l.p.virtual[i].peeks {
			l.virtual[i] = l.virtual[i].Own()
		}
	}
}

// argument decodes a column from which virtual column v is computed. It does not copy a PROTO if v belongs to a query
// plan, because a value that a plan computes from a PROTO does not refer to the bytes of the PROTO.
func (l *located) argument(v *virtual, s source) (value.Value, error) {
	if v.column.Ordinal < 0 && s.kind == fromValue && s.typ.Kind == value.Proto && !l.fields[s.place].isNull() {
		return value.OfProto(l.fields[s.place].of(l.val)), nil
	}
	return l.decode(s)
}

// pendingColumn returns the first column in the projection's pending list whose commit timestamp in this row is not
// known yet, or nil.
func (l *located) pendingColumn() *schema.Column {
	for i := range l.p.pending {
		if p := &l.p.pending[i]; l.isPending(p.source) {
			return p.column
		}
	}
	return nil
}

// These bytes take the place of a commit timestamp that is not known yet: pendingBytes in a row's value and in an
// ascending key part, pendingDesc in a descending key part.
const (
	pendingBytes = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
	pendingDesc  = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

func (l *located) isPending(s source) bool {
	if s.kind == fromValue {
		return string(l.fields[s.place].of(l.val)) == pendingBytes
	}
	if s.kind != fromKey {
		return false
	}
	part := l.key[l.offsets[s.place]:]
	if len(part) < value.KeyTimestampOffset+len(pendingBytes) {
		return false
	}
	part = part[value.KeyTimestampOffset:][:len(pendingBytes)]
	if s.desc {
		return string(part) == pendingDesc
	}
	return string(part) == pendingBytes
}

// appendWire appends the values of the columns that the parameter sources lists, each as a field of a PartialResultSet.
func (l *located) appendWire(dst []byte, sources []source) []byte {
	size := 0
	for i := range sources {
		s := &sources[i]
		switch kind, place := l.from(s); kind {
		case fromKey:
			at := len(dst)
			dst, _ = value.KeyToWireField(dst, wireTag, l.key[l.offsets[place]:], s.typ, s.desc)
			size += s.wireSize(dst[at:])
		case fromValue:
			f := l.fields[place]
			if f.isNull() {
				dst = value.NullField(dst, wireTag)
				continue
			}
			payload := f.of(l.val)
			dst = value.RowToWireField(dst, wireTag, payload, s.typ)
			size += s.rowSize(payload)
		case computed:
			dst = l.virtual[place].AppendWireField(dst, wireTag, s.typ)
			size += l.virtual[place].DataSize(s.typ)
		}
	}
	l.data += int64(size)
	return dst
}

// rowSize returns how many bytes a value adds to Rows.DataSize. payload is the stored form of the value.
func (s *source) rowSize(payload []byte) int {
	switch {
	case s.size > 0:
		return s.size
	case s.size == sizeOfPayload:
		return len(payload)
	}
	return value.RowDataSize(payload, s.typ)
}

// wireSize returns how many bytes a key part adds to Rows.DataSize. The parameter field is the part in wire form, as
// appendWire has appended it.
func (s *source) wireSize(field []byte) int {
	if s.size > 0 && !value.IsNullField(field) {
		return s.size
	}
	return value.WireDataSize(field, s.typ)
}

// decode returns the value of one column. The value does not refer to the row's bytes.
func (l *located) decode(s source) (value.Value, error) {
	kind, place := l.from(&s)
	switch kind {
	case fromKey:
		v, _, err := value.DecodeKey(l.key[l.offsets[place]:], s.typ, s.desc)
		return v, err
	case computed:
		if l.p.virtual[place].peeks {
			return l.virtual[place].Own(), nil
		}
		return l.virtual[place], nil
	}
	f := l.fields[place]
	if f.isNull() {
		return value.Null(s.typ.Kind), nil
	}
	payload := f.of(l.val)
	switch s.typ.Kind {
	case value.String:
		return value.OfString(l.text.copy(payload)), nil
	case value.JSON:
		return value.OfJSON(l.text.copy(payload)), nil
	}
	return value.DecodeRow(payload, s.typ)
}
