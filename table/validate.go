package table

import (
	"bytes"
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Validate checks that the rows in the next chunk of a table, or the entries in the next chunk of an index, meet the
// condition v of a schema change. It returns an error for the first row or entry that violates the condition.
func Validate(ctx context.Context, view View, v schema.Validation, now time.Time, after []byte, limits Limits) (Chunk, error) {
	if v.Kind == schema.ValidateUnique {
		return validateUnique(ctx, view, v.Index, after, limits)
	}
	p, err := NewProjection(v.Table, nil, validated(v))
	if err != nil {
		return Chunk{}, err
	}
	check := validator{Validation: v, view: view, layout: p.Layout, now: now}
	if v.Kind == schema.ValidateParents {
		check.parents = TableLayout(v.Table.Parent)
	}
	if v.Kind == schema.ValidateForeignKey {
		check.foreign = newForeignKey(v.ForeignKey)
	}
	rows := Read{Projection: p, Spans: []Span{p.rest(after)}, Partial: true, AllowPending: true}.Open(ctx, view)
	defer rows.Close()
	var vals []value.Value
	return limits.readChunk(rows, after, func() (bool, error) {
		vals = rows.Values(vals[:0])
		return true, check.row(ctx, rows.Key(), vals)
	})
}

// validated lists the columns that the validation reads.
func validated(v schema.Validation) []*schema.Column {
	switch v.Kind {
	case schema.ValidateCheck:
		return v.Check.Expr.Uses
	case schema.ValidateForeignKey:
		return v.ForeignKey.Columns
	case schema.ValidateParents:
		columns := make([]*schema.Column, len(v.Table.Parent.Key))
		for i := range columns {
			columns[i] = v.Table.Key[i].Column
		}
		return columns
	case schema.ValidateUTF8, schema.ValidateEnum:
		return []*schema.Column{asWritten(v)}
	case schema.ValidatePlacement:
		return []*schema.Column{v.Placed}
	case schema.ValidateComputed:
		return append([]*schema.Column{v.Old}, v.Column.Generated.Uses...)
	}
	return []*schema.Column{v.Column}
}

// asWritten returns a copy of the validated column that has the old type, with which existing rows were written.
func asWritten(v schema.Validation) *schema.Column {
	c := *v.Column
	c.Type = v.Old.Type
	return &c
}

type validator struct {
	schema.Validation
	view    View
	layout  *Layout
	parents *Layout     // the layout of the parent table, for ValidateParents
	foreign *foreignKey // the foreign key to check, for ValidateForeignKey
	now     time.Time
}

// row checks one row. vals are the values of the columns that the function validated lists.
func (v *validator) row(ctx context.Context, key []byte, vals []value.Value) error {
	switch v.Kind {
	case schema.ValidateNotNull:
		if vals[0].IsNull() {
			return usererror.NullFound(v.Column.Name, v.layout.storedText(key))
		}
	case schema.ValidateLength, schema.ValidateUTF8:
		return v.text(key, vals[0])
	case schema.ValidateVectorLength:
		return v.vector(key, vals[0])
	case schema.ValidateEnum:
		return v.enum(key, vals[0])
	case schema.ValidateCommitTimestamp:
		if t := vals[0]; !t.IsNull() && t.AsTime().After(v.now) {
			return usererror.FutureTimestampFound(v.Column.Name, timestampText(t), v.layout.storedText(key))
		}
	case schema.ValidateCheck:
		result, err := v.Check.Expr.Eval(vals)
		if err != nil || result.IsNull() || result.AsBool() {
			return err
		}
		return usererror.CheckViolationFound(v.Table.FullName(), v.Check.Name, v.layout.storedText(key))
	case schema.ValidateComputed:
		now, err := v.Column.Generated.Eval(vals[1:])
		if err != nil || sameValue(vals[0], now, v.Column.Type) {
			return err
		}
		return usererror.GeneratedValueChanges(v.Table.FullName()+"."+v.Column.Name, v.layout.storedText(key))
	case schema.ValidatePlacement:
		if !vals[0].IsNull() && vals[0].AsString() == v.Placement {
			return usererror.PlacementInUse(v.Placement, v.Table.FullName(), v.layout.storedText(key))
		}
	case schema.ValidateParents:
		return v.parent(ctx, key, vals)
	case schema.ValidateForeignKey:
		return v.foreignKey(ctx, key, vals)
	}
	return nil
}

// sameValue reports whether two values of type t have the same stored form.
func sameValue(a, b value.Value, t *value.Type) bool {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() && b.IsNull()
	}
	return bytes.Equal(value.AppendRow(nil, a, t), value.AppendRow(nil, b, t))
}

// text checks the length of a value or of an array's elements. If the column becomes a STRING, text also checks that
// the bytes are valid UTF-8.
func (v *validator) text(key []byte, val value.Value) error {
	if val.IsNull() {
		return nil
	}
	if val.Kind() == value.Array {
		for _, e := range val.AsList() {
			if err := v.text(key, e); err != nil {
				return err
			}
		}
		return nil
	}
	size := textLength(val)
	if v.Kind == schema.ValidateUTF8 {
		if !utf8.Valid(val.AsBytes()) {
			return usererror.InvalidUTF8Found(v.Column.Name, v.layout.storedText(key))
		}
		size = int64(utf8.RuneCount(val.AsBytes()))
	}
	if size > v.Column.MaxLength {
		return usererror.LongValueFound(v.Column.Name, v.Column.MaxLength, size, v.layout.storedText(key))
	}
	return nil
}

// vector checks that an array has the right number of elements and that none of them is NULL.
func (v *validator) vector(key []byte, val value.Value) error {
	if val.IsNull() {
		return nil
	}
	elems := val.AsList()
	if int64(len(elems)) != v.Column.VectorLength {
		return usererror.VectorLengthFound(v.Column.Name, v.Column.VectorLength, len(elems), v.layout.storedText(key))
	}
	if slices.ContainsFunc(elems, value.Value.IsNull) {
		return usererror.NullInVectorFound(v.Column.Name, v.layout.storedText(key))
	}
	return nil
}

// enum checks a value, or the elements of an array, of a column that changes to ENUM or INT64: the new type must have
// a value with the same number.
func (v *validator) enum(key []byte, val value.Value) error {
	if val.IsNull() {
		return nil
	}
	is := v.Column.Type
	if val.Kind() == value.Array {
		for _, e := range val.AsList() {
			if err := v.enum(key, e); err != nil {
				return err
			}
		}
		return nil
	}
	if is.Elem != nil {
		is = is.Elem
	}
	if !hasNumber(is, val.AsInt64()) {
		return usererror.InvalidEnumValue(v.Table.FullName()+"."+v.Column.Name, val.AsInt64(), is.String(), v.layout.storedText(key))
	}
	return nil
}

func (v *validator) parent(ctx context.Context, key []byte, vals []value.Value) error {
	if _, ok, err := v.view.Get(ctx, v.parents.AppendKey(nil, vals), LockShared); ok || err != nil {
		return err
	}
	return usererror.OrphanFound(v.Table.Parent.FullName(), v.Table.FullName(), v.layout.storedText(key))
}

func (v *validator) foreignKey(ctx context.Context, key []byte, vals []value.Value) error {
	for _, val := range vals {
		if val.IsNull() {
			return nil
		}
	}
	if ok, err := (reference{fk: v.foreign, values: vals}).found(ctx, v.view); ok || err != nil {
		return err
	}
	return usererror.ReferencedKeyNotFound(v.ForeignKey.Name, v.Table.FullName(), v.ForeignKey.Referenced.FullName(), v.layout.storedText(key))
}

// validateUnique compares the declared key of each entry of an index with that of the entry before it. Equal keys are
// an error.
func validateUnique(ctx context.Context, view View, x *schema.Index, after []byte, limits Limits) (Chunk, error) {
	p, err := NewProjection(x.Table, x, nil)
	if err != nil {
		return Chunk{}, err
	}
	declared := func(key []byte) []byte { return key[:p.PrefixLen(key, len(x.Key))] }
	var last []byte // the declared key of the previous entry
	if after != nil {
		// The last entry of the previous chunk may have been deleted since that chunk was read.
		_, live, err := view.Get(ctx, after, LockShared)
		if err != nil {
			return Chunk{}, err
		}
		if live {
			last = bytes.Clone(declared(after))
		}
	}
	rows := Read{Projection: p, Spans: []Span{p.rest(after)}, Partial: true, AllowPending: true}.Open(ctx, view)
	defer rows.Close()
	return limits.readChunk(rows, after, func() (bool, error) {
		key := rows.Key()
		if bytes.Equal(declared(key), last) {
			vals, err := p.DecodeKey(nil, key)
			if err != nil {
				return false, err
			}
			return false, usererror.DuplicateFound(x.FullName(), keyText(vals[:len(x.Key)]))
		}
		last = append(last[:0], declared(key)...)
		return true, nil
	})
}
