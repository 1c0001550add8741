package table

import (
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Projection holds what a read needs to turn keys and values of one table or index into columns. A table, or an index,
// and a list of columns determine it. It is immutable, and valid as long as the catalog that it was made from.
type Projection struct {
	*Layout
	Columns []*schema.Column // in the order of the result; may repeat

	sources []source          // for each of Columns
	fields  []schema.ColumnID // the IDs of the columns that stand in a row's value, ascending
	virtual []virtual         // the virtual columns to compute, each after those that it reads
	// pending lists the columns that can hold a pending commit timestamp, with their sources. A read of a row fails
	// while one of them is pending. They are the columns that the read asks for and, in an index, all columns that the
	// index holds.
	pending []pendingSource
}

type pendingSource struct {
	column *schema.Column
	source source
}

// source says where a read finds the value of a column.
type source struct {
	kind  sourceKind
	place int // the index of the key part, of the field, or of the virtual column
	field int // the index of the field, for fromEither
	desc  bool
	typ   *value.Type
	size  int // the data size of a value if all values of the type have the same, or one of the following
}

const (
	sizeOfPayload = 0 // the data size is the length of the payload
	sizeOfParts   = -1
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
	fromEither // in the value of an index entry if the column is there, else in the key (isExact)
	computed
)

// virtual is a generated column that is not stored.
type virtual struct {
	column *schema.Column
	args   []source
	peeks  bool // Generated.Peek computes it
}

// NewProjection makes a projection to columns: of t's rows, or of index's entries if index is not nil.
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

// source finds where the value of c is stored. The place of a field is its ColumnID until numberFields runs. depth
// guards against circles.
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

// numberFields sorts the fields and replaces the ColumnIDs in sources by their positions among the fields.
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

// wireTag is the tag of a value in google.spanner.v1.PartialResultSet: field 2, length-delimited.
const wireTag = 2<<3 | 2

// located is one row in its stored form. It knows where the key parts and fields lie, but has not decoded them.
type located struct {
	p        *Projection
	key, val []byte
	offsets  []int         // where the key parts begin
	fields   []field       // where the fields lie in val
	virtual  []value.Value // computed columns
	data     int64         // bytes of data that appendWire has appended
	args     []value.Value // arguments of computed columns, kept for reuse
	text     textArena

	// These arrays hold the offsets and fields of most projections, so that they need no allocation.
	someOffsets [4]int
	someFields  [12]field
}

// init makes l ready for rows of p; l must not be copied afterwards.
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

// locate makes l the row at key. It finds the fields of val and computes the virtual columns. The caller has put the
// offsets of the key parts in l.offsets.
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

// locateDeleted is locate for a deleted row, which has no value: all its fields are NULL.
func (l *located) locateDeleted(key []byte) {
	l.key, l.val = key, nil
	for i := range l.p.fields {
		l.fields[i] = absent
	}
}

// from returns where this row holds the column of s: in its key, in its value or computed, and at which index. For
// fromEither it chooses fromKey or fromValue.
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
// bytes.
func (l *located) peek(i int, v *virtual) (err error) {
	if f := l.fields[v.args[0].place]; f.isNull() {
		l.virtual[i] = value.Null(v.column.Type.Kind)
	} else {
		l.virtual[i], err = v.column.Generated.Peek(f.of(l.val))
	}
	return err
}

// keepVirtual copies the virtual columns that refer to the row's bytes, so that they outlive these.
func (l *located) keepVirtual() {
	for i := range l.p.virtual {
		if l.p.virtual[i].peeks {
			l.virtual[i] = l.virtual[i].Own()
		}
	}
}

// argument decodes a column from which virtual column v is computed. It does not copy a PROTO if v belongs to a query
// plan: what a plan computes from a PROTO does not refer to its bytes.
func (l *located) argument(v *virtual, s source) (value.Value, error) {
	if v.column.Ordinal < 0 && s.kind == fromValue && s.typ.Kind == value.Proto && !l.fields[s.place].isNull() {
		return value.OfProto(l.fields[s.place].of(l.val)), nil
	}
	return l.decode(s)
}

// pendingColumn returns the first of the projection's pending columns whose commit timestamp is not known yet, or nil.
func (l *located) pendingColumn() *schema.Column {
	for i := range l.p.pending {
		if p := &l.p.pending[i]; l.isPending(p.source) {
			return p.column
		}
	}
	return nil
}

// These bytes stand for a commit timestamp that is not known yet, in ascending and in descending order.
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

// appendWire appends columns of the row as fields of a PartialResultSet.
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

// rowSize returns the data size of a stored payload.
func (s *source) rowSize(payload []byte) int {
	switch {
	case s.size > 0:
		return s.size
	case s.size == sizeOfPayload:
		return len(payload)
	}
	return value.RowDataSize(payload, s.typ)
}

// wireSize returns the data size of a key part. field is the part in wire form, as appendWire has appended it.
func (s *source) wireSize(field []byte) int {
	if s.size > 0 && !value.IsNullField(field) {
		return s.size
	}
	return value.WireDataSize(field, s.typ)
}

// decode returns the value of one column. It does not refer to the row's bytes.
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
