package tree

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/value"
)

// Expr is a scalar expression. Package plan adds expressions of its own.
type Expr interface {
	// Type returns the type of the value.
	Type() *value.Type
	// Operands returns the expressions that the value is computed from, without those in the scan of a subquery.
	Operands() []Expr
}

type (
	// Literal is a constant.
	Literal struct {
		T     *value.Type
		Value value.Value
	}
	// Param is a query parameter. Name is in lower case.
	Param struct {
		T    *value.Type
		Name string
	}
	// Ref refers to a column of a scan in scope, or of a scan of an enclosing query.
	Ref struct{ Col Col }
	// Call applies a scalar function.
	Call struct {
		Func *Function
		Args []Expr
	}
	// Lambda is (Params) -> Body, an argument of a Call. It has no type, since it is a function and not a value.
	Lambda struct {
		Params []Col
		Body   Expr
	}
	// Cast converts Arg to T. With Safe, an error becomes NULL. Format and Zone are nil if the statement does not
	// have them.
	Cast struct {
		Arg          Expr
		T            *value.Type
		Safe         bool
		Format, Zone Expr
	}
	// Subquery is a scalar, array, EXISTS or IN subquery.
	Subquery struct {
		T       *value.Type
		Kind    SubqueryKind
		Scan    Scan
		Out     Col  // the only column of Scan; for EXISTS any column
		In      Expr // left side of IN
		Ordered bool // ARRAY(... ORDER BY): the elements have the order of Scan's rows
		Hints   Hints
	}
	// MakeStruct builds a STRUCT.
	MakeStruct struct {
		T      *value.Type
		Fields []Expr
	}
	// GetField reads a field of a STRUCT.
	GetField struct {
		T     *value.Type
		Arg   Expr
		Index int
	}
	// GetJSONField reads a member of a JSON object.
	GetJSONField struct {
		Arg  Expr
		Name string
	}
	// Let is WITH(a AS e, ..., body).
	Let struct {
		Defs []Computed
		Body Expr
	}
)

// SubqueryKind is the kind of a subquery expression.
type SubqueryKind uint8

const (
	ScalarSubquery SubqueryKind = iota
	ArraySubquery
	ExistsSubquery
	InSubquery
)

func (e *Literal) Type() *value.Type      { return e.T }
func (e *Param) Type() *value.Type        { return e.T }
func (e *Ref) Type() *value.Type          { return e.Col.Type }
func (e *Call) Type() *value.Type         { return e.Func.Type }
func (e *Lambda) Type() *value.Type       { return nil }
func (e *Cast) Type() *value.Type         { return e.T }
func (e *Subquery) Type() *value.Type     { return e.T }
func (e *MakeStruct) Type() *value.Type   { return e.T }
func (e *GetField) Type() *value.Type     { return e.T }
func (e *GetJSONField) Type() *value.Type { return value.JSONType }
func (e *Let) Type() *value.Type          { return e.Body.Type() }

func (e *Literal) Operands() []Expr      { return nil }
func (e *Param) Operands() []Expr        { return nil }
func (e *Ref) Operands() []Expr          { return nil }
func (e *Call) Operands() []Expr         { return e.Args }
func (e *Lambda) Operands() []Expr       { return []Expr{e.Body} }
func (e *Cast) Operands() []Expr         { return notNil(e.Arg, e.Format, e.Zone) }
func (e *Subquery) Operands() []Expr     { return notNil(e.In) }
func (e *MakeStruct) Operands() []Expr   { return e.Fields }
func (e *GetField) Operands() []Expr     { return []Expr{e.Arg} }
func (e *GetJSONField) Operands() []Expr { return []Expr{e.Arg} }
func (e *Let) Operands() []Expr          { return append(ComputedExprs(e.Defs), e.Body) }

// notNil returns the expressions in list that are not nil.
func notNil(list ...Expr) []Expr {
	var out []Expr
	for _, e := range list {
		if e != nil {
			out = append(out, e)
		}
	}
	return out
}

// Function is a function with the signature that the analyzer chose.
type Function struct {
	Name string // GoogleSQL's own name in lower case: "$add", "concat"; never "safe_cast" (see Cast)
	Args []*value.Type
	Type *value.Type // type of the result
	// Safe means SAFE.f(): an error becomes NULL.
	Safe bool
	// Fields is set for functions on PROTO. It holds paths of fields; each path begins at the message. ProtoField and
	// HasProtoField have one path, which leads to the field that they read. The functions that set fields (MakeProto,
	// ReplaceFields, SetFields) have one path for each value among their arguments; it leads to the field that they
	// set to this value.
	Fields [][]protoreflect.FieldDescriptor
}

// Names of the functions on PROTO. This package has chosen them: GoogleSQL has no names for these functions, because
// its resolved tree represents them by special nodes and not by function calls.
const (
	ProtoField    = "$proto_field"     // in SQL: proto.field
	HasProtoField = "$has_proto_field" // in SQL: proto.has_field
	MakeProto     = "$make_proto"      // in SQL: NEW T(value AS field, ...)
	ReplaceFields = "replace_fields"   // in SQL: REPLACE_FIELDS(proto, value AS field, ...)
	SetFields     = "$set_fields"      // in SQL: SET column.field = value, ...; creates missing messages on the path
)
