package fn

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// record describes one function: its name in the resolved tree, a line of documentation, and its overloads. A call takes the first overload
// that fits.
type record struct {
	name      string
	doc       string
	overloads []overload
	property  property
	leakproof bool // see Scalar.Leakproof; false if unknown
}

// property tells what a function depends on besides its arguments.
type property uint8

const (
	pure     property = iota
	stable            // depends on the Context: Scalar.Stable
	volatile          // depends on chance: Scalar.Volatile
)

// overload is one signature with its body. The signature reads "STRING, ?INT64 -> STRING": a question mark precedes an optional parameter,
// dots follow a parameter that may be repeated. ANY stands for any type, ARRAY for any array, PART for an enumeration (see the package
// comment), LAMBDA for a lambda.
type overload struct {
	signature string
	body      body
}

// on makes an overload.
func on(signature string, b body) overload { return overload{signature, b} }

// body computes an overload by one of its functions. It is made by strict, nullable, lazy, higher or byType.
type body struct {
	eval   Eval
	nulls  bool
	lazy   func(*Context, Args) (value.Value, error)
	higher func(*Context, []value.Value, []Lambda) (value.Value, error)
	typed  func(*tree.Function) body
}

// strict makes a body that never sees a NULL: the result is NULL if an argument is.
func strict(f Eval) body { return body{eval: f} }

// nullable makes a body that sees NULL arguments.
func nullable(f Eval) body { return body{eval: f, nulls: true} }

// lazy makes a body that computes its arguments itself.
func lazy(f func(*Context, Args) (value.Value, error)) body { return body{lazy: f} }

// higher makes a body that calls lambdas. It sees NULL arguments.
func higher(f func(*Context, []value.Value, []Lambda) (value.Value, error)) body {
	return body{higher: f}
}

// byType makes a body that depends on the call: Lookup calls f to get a body for the argument types, or one with a cache of its own.
func byType(f func(*tree.Function) body) body { return body{typed: f} }

// Registry finds scalar functions by their names and argument types.
type Registry struct{ records map[string][]*record }

// newRegistry makes a registry of families of records. Records of several families may have the same name; their overloads are tried in the
// order of the families.
func newRegistry(families ...[]record) *Registry {
	g := &Registry{make(map[string][]*record)}
	signatures := make(map[string]bool)
	for _, family := range families {
		for i := range family {
			r := &family[i]
			for _, o := range r.overloads {
				if call := r.name + ": " + o.signature; signatures[call] {
					panic("fn: two overloads " + call)
				} else {
					signatures[call] = true
				}
			}
			g.records[r.name] = append(g.records[r.name], r)
		}
	}
	return g
}

// Lookup returns the implementation for a call of a scalar function.
func (g *Registry) Lookup(f *tree.Function) (*Scalar, error) {
	for _, r := range g.records[f.Name] {
		for i := range r.overloads {
			if fits(r.overloads[i].signature, f.Args) {
				s := r.overloads[i].body.scalar(f, r.property)
				s.Leakproof = r.leakproof || f.Safe && s.Lazy == nil && s.Higher == nil && !s.Volatile && !large(f.Type)
				return s, nil
			}
		}
	}
	return nil, unsupported(f)
}

// Description tells about a function what its records say.
type Description struct {
	Name       string
	Doc        string
	Signatures []string
}

// Descriptions describes all functions, sorted by name.
func (g *Registry) Descriptions() []Description {
	list := make([]Description, 0, len(g.records))
	for name, records := range g.records {
		d := Description{Name: name}
		var docs []string
		for _, r := range records {
			docs = append(docs, r.doc)
			for _, o := range r.overloads {
				d.Signatures = append(d.Signatures, o.signature)
			}
		}
		d.Doc = strings.Join(docs, " ")
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Description) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// large reports whether a value of a type may need so much memory that making it fails, even with SAFE.
func large(t *value.Type) bool {
	switch t.Kind {
	case value.String, value.Bytes, value.JSON, value.Proto, value.Array, value.Struct:
		return true
	}
	return false
}

func (b body) scalar(f *tree.Function, p property) *Scalar {
	if b.typed != nil {
		b = b.typed(f)
	}
	null := value.Null(f.Type.Kind)
	s := &Scalar{Lazy: b.lazy, Higher: b.higher, Volatile: p == volatile, Stable: p == stable, eval: b.eval, nulls: b.nulls, null: null, safe: f.Safe}
	if f.Safe && b.higher != nil {
		s.Higher = func(ctx *Context, args []value.Value, lambdas []Lambda) (value.Value, error) {
			v, err := b.higher(ctx, args, lambdas)
			if err != nil && suppressible(err) {
				return null, nil
			}
			return v, err
		}
	}
	return s
}

// first is the Eval of functions that return their first argument.
func first(_ *Context, a []value.Value) (value.Value, error) { return a[0], nil }
