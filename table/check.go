package table

import (
	"context"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// checkValue returns an error if column col may not hold v. It checks the column's current definition and, while an
// ALTER COLUMN is under way, also the new one.
func (c *Changes) checkValue(t *schema.Table, col *schema.Column, v value.Value) error {
	if err := c.checkAs(t, col, v); err != nil || col.Becoming == nil {
		return err
	}
	return c.checkAs(t, col.Becoming, retyped(v, col.Becoming.Type))
}

// checkValues calls checkValue for each of the given columns of a row.
func (c *Changes) checkValues(t *schema.Table, columns []*schema.Column, row []value.Value) error {
	for _, col := range columns {
		if err := c.checkValue(t, col, row[col.Ordinal]); err != nil {
			return err
		}
	}
	return nil
}

// retyped converts a value, or the elements of an array, to the new type of a column. The type of a column can change
// among STRING, BYTES and PROTO, and between INT64 and ENUM. A number that the ENUM does not have stays an INT64;
// isNumber then reports true.
func retyped(v value.Value, t *value.Type) value.Value {
	switch {
	case v.IsNull() || v.IsPending() || v.Kind() == t.Kind && t.Elem == nil:
		return v
	case t.Kind == value.Array:
		elems := make([]value.Value, len(v.AsList()))
		for i, e := range v.AsList() {
			elems[i] = retyped(e, t.Elem)
		}
		return value.OfArray(elems)
	case t.Kind == value.String:
		return value.OfString(string(v.AsBytes()))
	case t.Kind == value.Proto:
		return value.OfProto(v.AsBytes())
	case t.Kind == value.Int64:
		return value.OfInt64(v.AsInt64())
	case t.Kind == value.Enum:
		return enumOf(v)
	}
	return value.OfBytes(v.AsBytes())
}

func enumOf(v value.Value) value.Value {
	if n := v.AsInt64(); n == int64(int32(n)) {
		return value.OfEnum(int32(n))
	}
	return v
}

// checkAs returns an error if v does not fit the definition col of a column. Unlike checkValue, it ignores
// col.Becoming, the definition to which an ALTER COLUMN is changing the column.
func (c *Changes) checkAs(t *schema.Table, col *schema.Column, v value.Value) error {
	switch {
	case v.IsPending():
		if !c.tables.catalog.TakesCommitTimestamp(t, col) {
			return usererror.CommitTimestampNotAllowed(col.Name)
		}
		return nil
	case v.IsNull():
		if col.NotNull {
			return usererror.NullValue(t.FullName(), col.Name)
		}
		return nil
	case v.Kind() != col.Type.Kind && !isNumber(v, col.Type):
		return fmt.Errorf("value of type %s for column %s.%s of type %s", v.Kind(), t.FullName(), col.Name, col.Type)
	}
	if col.PlacementKey && !c.tables.catalog.HasPlacement(v.AsString()) {
		return usererror.PlacementNotFound(v.AsString(), t.FullName(), col.Name)
	}
	switch col.Type.Kind {
	case value.Timestamp:
		if col.AllowCommitTimestamp && v.AsTime().After(c.now) {
			return usererror.FutureTimestamp(t.FullName(), col.Name, timestampText(v))
		}
	case value.Array:
		if n := len(v.AsList()); col.VectorLength != 0 && int64(n) != col.VectorLength {
			return usererror.VectorLength(col.Name, n, col.VectorLength)
		}
		for _, e := range v.AsList() {
			if err := checkElement(t, col, e); err != nil {
				return err
			}
		}
	default:
		return checkScalar(t, col, col.Type, v)
	}
	return nil
}

func checkElement(t *schema.Table, col *schema.Column, e value.Value) error {
	switch {
	case e.IsPending():
		return usererror.CommitTimestampNotAllowed(col.Name)
	case e.IsNull() && col.VectorLength != 0:
		return usererror.NullInVector(col.Name)
	case e.IsNull():
		return nil
	case e.Kind() != col.Type.Elem.Kind && !isNumber(e, col.Type.Elem):
		return fmt.Errorf("element of type %s for column %s.%s of type %s", e.Kind(), t.FullName(), col.Name, col.Type)
	}
	return checkScalar(t, col, col.Type.Elem, e)
}

// isNumber reports whether v is still an INT64 although t is an ENUM, because the ENUM has no such number.
func isNumber(v value.Value, t *value.Type) bool {
	return t.Kind == value.Enum && v.Kind() == value.Int64
}

// checkScalar returns an error if the column may not hold v, which is the column's value or an element of its array.
// The third parameter is the type of v.
func checkScalar(t *schema.Table, col *schema.Column, is *value.Type, v value.Value) error {
	if is.Kind == value.Enum {
		if !hasNumber(is, v.AsInt64()) {
			return usererror.InvalidEnumColumnValue(t.FullName(), col.Name, v.AsInt64(), is.String())
		}
		return nil
	}
	return checkText(t, col, v)
}

// hasNumber reports whether the ENUM type t has a value with this number.
func hasNumber(t *value.Type, number int64) bool {
	return number == int64(int32(number)) && t.Enumeration().Values().ByNumber(protoreflect.EnumNumber(number)) != nil
}

// maxCell is the largest size of one value in bytes (10 MiB). It applies to JSON and PROTO, whose types have no length
// of their own.
const maxCell = 10 << 20

func checkText(t *schema.Table, col *schema.Column, v value.Value) error {
	limit := col.MaxLength
	switch v.Kind() {
	case value.JSON, value.Proto:
		limit = maxCell
	case value.String:
		if !utf8.Valid(v.AsBytes()) {
			return usererror.InvalidUTF8(t.FullName(), col.Name)
		}
	case value.Bytes:
	default:
		return nil
	}
	// A string has at most as many characters as bytes. So if its bytes are within the limit, its characters need not
	// be counted.
	if limit <= 0 || int64(len(v.AsBytes())) <= limit {
		return nil
	}
	if size := textLength(v); size > limit {
		return usererror.ValueTooLong(t.FullName(), col.Name, limit, size)
	}
	return nil
}

// textLength returns the length of a value in the unit of length limits: characters for STRING, bytes for other types.
func textLength(v value.Value) int64 {
	if v.Kind() == value.String {
		return int64(utf8.RuneCount(v.AsBytes()))
	}
	return int64(len(v.AsBytes()))
}

// safeKeyBytes is a length in bytes. An encoded key of at most this length is always within the limit MaxKeyBytes,
// because the encoding of a key part is at most 8 bytes shorter than the size that counts towards the limit.
const safeKeyBytes = MaxKeyBytes - 8*maxStoredParts

// checkKeySize returns an error if a key is longer than MaxKeyBytes. A STRING or BYTES value counts with its bytes, a
// value of another type with the fixed size of its type. The parameter encoded is the length in bytes of the encoded
// key.
func (l *Layout) checkKeySize(encoded int, row []value.Value) error {
	if encoded <= safeKeyBytes {
		return nil
	}
	size := 0
	for _, p := range l.Key {
		size += keySize(row[p.Column.Ordinal])
	}
	if size > MaxKeyBytes {
		return usererror.KeyTooLong(l.Name(), size, MaxKeyBytes)
	}
	return nil
}

func keySize(v value.Value) int {
	if v.IsNull() {
		return 0
	}
	switch v.Kind() {
	case value.String, value.Bytes:
		return len(v.AsBytes())
	case value.Bool:
		return 1
	case value.Date, value.Float32:
		return 4
	case value.Timestamp:
		return 12
	case value.Numeric, value.UUID:
		return 16
	}
	return 8
}

// checkRow evaluates those CHECK constraints that read a changed column. If one fails, Finish evaluates it again.
func (c *Changes) checkRow(g *target, key []byte, row []value.Value) error {
	for _, k := range g.table.Checks {
		if !anyChanged(k.Expr.Uses, g.changed) && (k.Becoming == nil || !anyChanged(k.Becoming.Expr.Uses, g.changed)) {
			continue
		}
		ok, err := g.passes(k, row)
		if err != nil {
			return err
		}
		if !ok {
			key := append([]byte(nil), key...)
			c.later(func(ctx context.Context) error { return c.recheck(ctx, g, k, key) })
		}
	}
	return nil
}

// passes reports whether row satisfies a CHECK, that is, whether the expression of the CHECK is TRUE or NULL. While a
// schema change redefines the CHECK, the row must satisfy the new expression, too.
func (g *target) passes(k *schema.Check, row []value.Value) (bool, error) {
	v, err := g.evaluate(k.Expr, row)
	if ok := v.IsNull() || v.AsBool(); !ok || err != nil || k.Becoming == nil {
		return ok, err
	}
	return g.passes(k.Becoming, row)
}

func (c *Changes) recheck(ctx context.Context, g *target, k *schema.Check, key []byte) error {
	val, ok, err := c.w.Get(ctx, key, LockExclusive)
	if !ok || err != nil {
		return err
	}
	if err := g.decode(g.row, Stored{key, val}); err != nil {
		return err
	}
	if ok, err := g.passes(k, g.row); ok || err != nil {
		return err
	}
	return usererror.CheckViolation(g.table.FullName(), k.Name, g.layout.rowText(g.row))
}
