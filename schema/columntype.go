package schema

import (
	"errors"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// setType sets the type of column c of table t to s, the type that the statement gives.
func (d *draft) setType(t *Table, c *Column, s ast.SchemaType) error {
	if err := c.setType(d.ProtoBundle(), t.FullName()+"."+c.Name, s); err != nil {
		if array, ok := s.(*ast.ArraySchemaType); ok {
			s = array.Item
		}
		d.reading(s)
		var user *usererror.Error
		if errors.As(err, &user) && user.Code == codes.NotFound {
			err = user.PointAt(d.src.Text, d.src.Place(int(d.at)))
		}
		return err
	}
	if elementOf(c.Type).Name != "" {
		t.ProtoBundle = d.ProtoBundle()
	}
	return nil
}

// setType sets the column's type to t, the type that the statement gives. It looks up PROTO and ENUM types in bundle.
// The parameter where holds the column's name in errors, such as "t.c".
func (c *Column) setType(bundle *ProtoBundle, where string, t ast.SchemaType) error {
	c.MaxLength, c.LengthIsMax, c.VectorLength = 0, false, 0
	array, ok := t.(*ast.ArraySchemaType)
	if !ok {
		return c.setScalar(bundle, where, t)
	}
	if err := c.setScalar(bundle, where, array.Item); err != nil {
		return err
	}
	c.Type = value.ArrayOf(c.Type)
	for _, arg := range array.NamedArgs {
		if err := c.setVectorLength(where, arg); err != nil {
			return err
		}
	}
	return nil
}

// setVectorLength sets VectorLength from the type argument vector_length=>n.
func (c *Column) setVectorLength(where string, arg *ast.NamedArg) error {
	if !strings.EqualFold(arg.Name.Name, "vector_length") || c.VectorLength != 0 {
		return usererror.BadTypeArgument(where, arg.Name.Name)
	}
	if elem := c.Type.Elem.Kind; elem != value.Float32 && elem != value.Float64 {
		return usererror.VectorLengthType(where)
	}
	lit, ok := arg.Value.(*ast.IntLiteral)
	if !ok {
		return usererror.BadColumnLength(where, "not a number", maxVectorLength)
	}
	n, err := parseInt(lit)
	if err != nil || n < 1 || n > maxVectorLength {
		return usererror.BadColumnLength(where, lit.Value, maxVectorLength)
	}
	c.VectorLength = n
	return nil
}

// checkVector refuses vector_length on a generated column or a column with a DEFAULT.
func (c *Column) checkVector(where string) error {
	if c.VectorLength != 0 && (c.Generated != nil || c.Default != nil) {
		return usererror.VectorLengthOfComputed(where)
	}
	return nil
}

func (c *Column) setScalar(bundle *ProtoBundle, where string, t ast.SchemaType) error {
	switch t := t.(type) {
	case *ast.SizedSchemaType:
		if t.Name == ast.StringTypeName {
			c.Type = value.StringType
			return c.setLength(where, t, MaxStringLength)
		}
		c.Type = value.BytesType
		return c.setLength(where, t, MaxBytesLength)
	case *ast.ScalarSchemaType:
		return c.setNamed(bundle, where, string(t.Name))
	case *ast.NamedType:
		return c.setNamed(bundle, where, dotted(t))
	case *ast.ArraySchemaType:
		return usererror.BadColumnType(where, "ARRAY<ARRAY>")
	}
	return usererror.BadColumnType(where, "STRUCT")
}

func (c *Column) setNamed(bundle *ProtoBundle, where, name string) error {
	upper := strings.ToUpper(name)
	if t := syntax.ScalarTypes[upper]; t != nil {
		c.Type = t
		return nil
	}
	if t := bundle.Type(name); t != nil {
		c.Type = t
		return nil
	}
	switch upper {
	case "TOKENLIST":
		return usererror.DDLUnimplemented("Type TOKENLIST")
	case "INTERVAL":
		return usererror.BadColumnType(where, upper)
	}
	return usererror.TypeNotFound(name)
}

func (c *Column) setLength(where string, t *ast.SizedSchemaType, limit int64) error {
	if t.Max {
		c.MaxLength, c.LengthIsMax = limit, true
		return nil
	}
	lit, ok := t.Size.(*ast.IntLiteral)
	if !ok {
		return usererror.BadColumnLength(where, "not a number", limit)
	}
	n, err := parseInt(lit)
	if err != nil || n < 1 || n > limit {
		return usererror.BadColumnLength(where, lit.Value, limit)
	}
	c.MaxLength = n
	return nil
}

func parseInt(lit *ast.IntLiteral) (int64, error) { return parseSigned("", lit) }

// parseSigned returns the value of the integer literal lit with the given sign, which is "" or "-".
func parseSigned(sign string, lit *ast.IntLiteral) (int64, error) {
	digits := lit.Value
	if lit.Base == 16 {
		digits = strings.TrimPrefix(strings.TrimPrefix(digits, "0x"), "0X")
	}
	return strconv.ParseInt(sign+digits, lit.Base, 64)
}

// TypeSQL prints the column's type as DDL does: ARRAY<STRING(MAX)>.
func (c *Column) TypeSQL() string {
	if t := elementOf(c.Type); t.Name != "" {
		return c.arraySQL("`" + t.Name + "`")
	}
	return c.SpannerType()
}

// SpannerType returns the column's type as INFORMATION_SCHEMA shows it. Only for PROTO and ENUM types does it differ
// from TypeSQL: it has the form PROTO<a.b.C> or ENUM<a.b.C>.
func (c *Column) SpannerType() string { return c.arraySQL(c.scalarSQL(elementOf(c.Type))) }

// arraySQL returns the column's type as DDL writes it. scalar is the type of the column's values, or of the elements
// of an ARRAY.
func (c *Column) arraySQL(scalar string) string {
	switch {
	case c.Type.Kind != value.Array:
		return scalar
	case c.VectorLength != 0:
		return "ARRAY<" + scalar + ">(vector_length=>" + strconv.FormatInt(c.VectorLength, 10) + ")"
	}
	return "ARRAY<" + scalar + ">"
}

func (c *Column) scalarSQL(t *value.Type) string {
	if t.Kind != value.String && t.Kind != value.Bytes {
		return t.String()
	}
	return t.String() + "(" + c.lengthSQL() + ")"
}

func (c *Column) lengthSQL() string {
	if c.LengthIsMax {
		return "MAX"
	}
	return strconv.FormatInt(c.MaxLength, 10)
}

// isKeyable reports whether a column of type t may be part of a key.
func isKeyable(t *value.Type) bool {
	return t.Kind != value.Array && t.Kind != value.JSON && t.Kind != value.Proto && t.Kind != value.Struct && t.Kind != value.Interval
}

// shortType returns a type's name without its length, for errors about keys.
func shortType(t *value.Type) string { return t.Kind.String() }
