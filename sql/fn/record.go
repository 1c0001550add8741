package fn

import (
	"fmt"
	"sort"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// record is one function: its name in the resolved tree, what it does in a
// line, and its overloads, of which the first that fits is taken.
type record struct {
	name      string
	doc       string
	overloads []overload
	property  property
	leakproof bool // Scalar.Leakproof; a function of which that is not known is none
}

// property says what a function depends on beside its arguments.
type property uint8

const (
	pure     property = iota
	stable            // on the Context: Scalar.Stable
	volatile          // on chance: Scalar.Volatile
)

// overload is one signature with its body. The signature reads "STRING, ?INT64 -> STRING":
// a question mark before what may be missing, dots behind what may come any number of times, ANY for any type, ARRAY for any array,
// PART for an enumeration (see the package comment), LAMBDA.
type overload struct {
	signature string
	body      body
}

// body is what computes an overload: one of its fields. Made by strict, nullable, lazy, higher or byType.
type body struct {
	eval   Eval
	nulls  bool
	lazy   func(*Context, Args) (value.Value, error)
	higher func(*Context, []value.Value, []Lambda) (value.Value, error)
	typed  func(*tree.Function) body
}

// strict bodies never see a NULL: their function is NULL if an argument is.
func strict(f Eval) body { return body{eval: f} }

// nullable bodies see NULL arguments.
func nullable(f Eval) body { return body{eval: f, nulls: true} }

// lazy bodies compute their arguments themselves.
func lazy(f func(*Context, Args) (value.Value, error)) body { return body{lazy: f} }

// higher bodies call lambdas. They see NULL arguments.
func higher(f func(*Context, []value.Value, []Lambda) (value.Value, error)) body {
	return body{higher: f}
}

// byType makes the body for the argument types of a call, or for one call: a cache of its own.
func byType(f func(*tree.Function) body) body { return body{typed: f} }

// scalars are all scalar functions by name.
var scalars = index(logic, comparison, conditional, arithmetic, bitwise, rounding, mathematics,
	stringFunctions, substrings, encodings, likes, regexps, hashes,
	dateFunctions, timestampFunctions, dateFormats, extracts, intervals,
	arrays, arraySearch, vectors, utilities, jsonQueries, jsonConversions, jsonMakers,
	jsonChanges, jsonSearches, formats, network, compressions, distributions, sequenceFunctions)

func index(families ...[]record) map[string]*record {
	m := make(map[string]*record)
	for _, family := range families {
		for i := range family {
			r := &family[i]
			if m[r.name] != nil {
				panic("fn: two records for " + r.name)
			}
			m[r.name] = r
		}
	}
	return m
}

// Names are the names of all functions, scalar and aggregate, sorted.
func Names() []string {
	var names []string
	for name := range scalars {
		names = append(names, name)
	}
	for name := range aggregates {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Doc describes a function: a line for each signature, and one of prose. It is empty for a name that Names does not list.
func Doc(name string) string {
	var b strings.Builder
	describe := func(signature string) {
		args, result, _ := strings.Cut(signature, "-> ")
		fmt.Fprintf(&b, "%s(%s) -> %s\n", name, strings.TrimSpace(args), result)
	}
	if r := scalars[name]; r != nil {
		for _, o := range r.overloads {
			describe(o.signature)
		}
		b.WriteString(r.doc)
	} else if r := aggregates[name]; r != nil {
		for _, o := range r.overloads {
			describe(o.signature)
		}
		b.WriteString(r.doc)
	}
	return b.String()
}

// onFields are the functions on fields of PROTO, which are no functions to GoogleSQL: a call has Function.Fields.
var onFields = index(protoFields)

// Lookup picks the body for a call of a scalar function.
func Lookup(f *tree.Function) (*Scalar, error) {
	r := scalars[f.Name]
	if f.Fields != nil {
		r = onFields[f.Name]
	}
	if r != nil {
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

// large says whether values of a type may take so much memory that making one fails, with SAFE too.
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
