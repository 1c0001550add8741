package fn

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Record describes one function: its name in the resolved tree, a line of documentation, and its overloads. A call
// uses the first overload that accepts its argument types.
type Record struct {
	Name      string
	Doc       string
	Overloads []Overload
	Property  Property
	Leakproof bool // value of Scalar.Leakproof; false if unknown
}

// Property tells what a function depends on besides its arguments.
type Property uint8

const (
	pure     Property = iota
	Stable            // depends on the Context: sets Scalar.Stable
	Volatile          // depends on chance: sets Scalar.Volatile
)

// Overload is one signature with its body. The signature has the form "STRING, ?INT64 -> STRING": a question mark
// precedes an optional parameter, and dots follow a parameter that may be repeated. ANY stands for any type, ARRAY
// for any array, PART for an enumeration (see the package comment), LAMBDA for a lambda.
type Overload struct {
	signature string
	body      Body
}

// On makes an overload.
func On(signature string, b Body) Overload { return Overload{signature, b} }

// Body holds the Go function that computes an overload, in one of several forms. Strict, Nullable, Lazy, Higher and
// ByType make Bodies.
type Body struct {
	eval   Eval
	nulls  bool
	lazy   func(*Context, Args) (value.Value, error)
	higher func(*Context, []value.Value, []Lambda) (value.Value, error)
	typed  func(*tree.Function) Body
}

// Strict makes a body whose f is never called with a NULL argument. If an argument is NULL, so is the result.
func Strict(f Eval) Body { return Body{eval: f} }

// Nullable makes a body whose f is also called with NULL arguments.
func Nullable(f Eval) Body { return Body{eval: f, nulls: true} }

// Lazy makes a body whose f computes only the arguments that it needs.
func Lazy(f func(*Context, Args) (value.Value, error)) Body { return Body{lazy: f} }

// Higher makes a body whose f calls lambdas. f is also called with NULL arguments.
func Higher(f func(*Context, []value.Value, []Lambda) (value.Value, error)) Body {
	return Body{higher: f}
}

// ByType makes a body that depends on the call. Lookup calls f once for each call in a statement, so f can return a
// body for the argument types, or a body with a cache for this call alone.
func ByType(f func(*tree.Function) Body) Body { return Body{typed: f} }

// Registry finds scalar functions by their names and argument types.
type Registry struct{ records map[string][]*Record }

// NewRegistry makes a registry of families of records. Records of several families may have the same name; Lookup
// then tries their overloads in the order of the families.
func NewRegistry(families ...[]Record) *Registry {
	g := &Registry{make(map[string][]*Record)}
	signatures := make(map[string]bool)
	for _, family := range families {
		for i := range family {
			r := &family[i]
			for _, o := range r.Overloads {
				call := r.Name + ": " + o.signature
				if signatures[call] {
					panic("fn: two overloads " + call)
				}
				signatures[call] = true
			}
			g.records[r.Name] = append(g.records[r.Name], r)
		}
	}
	return g
}

// Lookup returns the implementation for a call of a scalar function.
func (g *Registry) Lookup(f *tree.Function) (*Scalar, error) {
	for _, r := range g.records[f.Name] {
		for i := range r.Overloads {
			if Fits(r.Overloads[i].signature, f.Args) {
				s := r.Overloads[i].body.scalar(f, r.Property)
				s.Leakproof = r.Leakproof || f.Safe && s.Lazy == nil && s.Higher == nil && !s.Volatile && !IsLarge(f.Type)
				return s, nil
			}
		}
	}
	return nil, Unsupported(f)
}

// Description holds the documentation and the signatures of the function called Name.
type Description struct {
	Name       string
	Doc        string
	Signatures []string
}

// Descriptions returns the descriptions of all functions, sorted by name.
func (g *Registry) Descriptions() []Description {
	list := make([]Description, 0, len(g.records))
	for name, records := range g.records {
		d := Description{Name: name}
		var docs []string
		for _, r := range records {
			docs = append(docs, r.Doc)
			for _, o := range r.Overloads {
				d.Signatures = append(d.Signatures, o.signature)
			}
		}
		d.Doc = strings.Join(docs, " ")
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Description) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// IsLarge reports whether a value of type t may need so much memory that the statement fails, even if a call with SAFE
// makes the value.
func IsLarge(t *value.Type) bool {
	switch t.Kind {
	case value.String, value.Bytes, value.JSON, value.Proto, value.Array, value.Struct:
		return true
	}
	return false
}

func (b Body) scalar(f *tree.Function, p Property) *Scalar {
	if b.typed != nil {
		b = b.typed(f)
	}
	null := value.Null(f.Type.Kind)
	s := &Scalar{Lazy: b.lazy, Higher: b.higher, Volatile: p == Volatile, Stable: p == Stable, eval: b.eval, nulls: b.nulls, null: null, safe: f.Safe}
	if f.Safe && b.higher != nil {
		s.Higher = func(ctx *Context, args []value.Value, lambdas []Lambda) (value.Value, error) {
			v, err := b.higher(ctx, args, lambdas)
			if err != nil && Suppressible(err) {
				return null, nil
			}
			return v, err
		}
	}
	return s
}

// FirstArgument is the Eval of functions that return their first argument.
func FirstArgument(_ *Context, a []value.Value) (value.Value, error) { return a[0], nil }
