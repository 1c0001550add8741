package fn

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/crowfoot-db/crowfoot/fault"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestGolden runs the tables in testdata. A line is a call or a cast:
//
//	substr('abc', 2)
//	safe.substr('abc', 2, -1)
//	cast('12' as INT64), safe_cast('x' as INT64)
//	array_first([1]) :: INT64
//	sum(1, 2, NULL:INT64)      in a block called "aggregate": one row per argument; rows of several arguments in parentheses
//
// and its result stands behind it in the output. Literals are those of reader_test.go; a type behind :: is
// the result's type where the signature leaves it open.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
				fmt.Fprintf(&out, "%s = %s\n", line, run(t, d.Cmd, line))
			}
			return out.String()
		})
	})
}

// testContext has a fixed time, Los Angeles time, and no chance.
func testContext() *Context {
	return &Context{Now: time.Date(2024, 2, 29, 23, 59, 58, 123456789, time.UTC), Random: bytes.NewReader(make([]byte, 1<<16))}
}

func run(t *testing.T, command, line string) string {
	r := &reader{text: line}
	var v value.Value
	var typ *value.Type
	var err error
	switch command {
	case "eval":
		v, typ, err = r.call()
	case "aggregate":
		v, typ, err = r.aggregate()
	default:
		t.Fatalf("unknown command %s", command)
	}
	var bad *syntaxError
	if errors.As(err, &bad) {
		t.Fatalf("%s: %v", line, err)
	}
	if err != nil {
		return fmt.Sprintf("%s: %s", fault.CodeOf(err), err)
	}
	if !v.IsNull() && v.Kind() != typ.Kind {
		return fmt.Sprintf("a value of kind %s where %s was promised", v.Kind(), typ)
	}
	return typ.String() + " " + string(printer{literal: true, zone: time.UTC}.append(nil, v, typ))
}

// call reads and runs name(args), safe.name(args), cast(x as T [format f]).
func (r *reader) call() (value.Value, *value.Type, error) {
	name := r.until("(")
	if name == "cast" || name == "safe_cast" {
		return r.cast(name == "safe_cast")
	}
	args, types, err := r.arguments()
	if err != nil {
		return value.Value{}, nil, err
	}
	f := &tree.Function{Args: types}
	f.Name, f.Safe = strings.CutPrefix(name, "safe.")
	if f.Type, err = r.resultType(f, signatureOf(f)); err != nil {
		return value.Value{}, nil, err
	}
	s, err := Lookup(f)
	if err != nil {
		return value.Value{}, nil, err
	}
	if s.Lazy != nil {
		v, err := s.Lazy(testContext(), given(args))
		return v, f.Type, err
	}
	v, err := s.Call(testContext(), args)
	return v, f.Type, err
}

// given are arguments for a lazy function; an error('...') among them is raised when it is computed.
type given []value.Value

func (g given) Len() int { return len(g) }

func (g given) Arg(i int) (value.Value, error) {
	if v := g[i]; v.Kind() == value.String && strings.HasPrefix(v.AsString(), "error: ") {
		return v, fault.UserError(v.AsString())
	}
	return g[i], nil
}

func (r *reader) cast(safe bool) (value.Value, *value.Type, error) {
	v, from, err := r.literal()
	if err != nil {
		return v, nil, err
	}
	r.expect("as")
	to, err := r.typeName()
	if err != nil {
		return v, nil, err
	}
	args := []value.Value{v}
	for _, clause := range []string{"format", "at time zone"} {
		if r.take(clause) {
			v, _, err := r.literal()
			if err != nil {
				return v, nil, err
			}
			args = append(args, v)
		}
	}
	s, err := Cast(from, to, safe)
	if err != nil {
		return v, nil, err
	}
	v, err = s.Call(testContext(), args)
	return v, to, err
}

func (r *reader) aggregate() (value.Value, *value.Type, error) {
	f := &tree.Function{Name: r.until("(")}
	var rows [][]value.Value
	for !r.take(")") {
		if len(rows) > 0 && !r.take(",") {
			return value.Value{}, nil, r.wrong("comma")
		}
		if r.take("(") {
			row, types, err := r.arguments()
			if err != nil {
				return value.Value{}, nil, err
			}
			rows, f.Args = append(rows, row), types
			continue
		}
		v, t, err := r.literal()
		if err != nil {
			return v, nil, err
		}
		rows, f.Args = append(rows, []value.Value{v}), []*value.Type{t}
	}
	if r.take("of") {
		t, err := r.typeName()
		if err != nil {
			return value.Value{}, nil, err
		}
		f.Args = []*value.Type{t}
	}
	var err error
	if f.Type, err = r.resultType(f, aggregateSignature(f)); err != nil {
		return value.Value{}, nil, err
	}
	a, err := LookupAggregate(f)
	if err != nil {
		return value.Value{}, nil, err
	}
	state := a.New()
	for _, row := range rows {
		if err := state.Add(row); err != nil {
			return value.Value{}, f.Type, err
		}
	}
	v, err := state.Result()
	return v, f.Type, err
}

func signatureOf(f *tree.Function) string {
	if r := scalars[f.Name]; r != nil {
		for _, o := range r.overloads {
			if fits(o.signature, f.Args) {
				return o.signature
			}
		}
	}
	return ""
}

func aggregateSignature(f *tree.Function) string {
	if r := aggregates[f.Name]; r != nil {
		for _, o := range r.overloads {
			if fits(o.signature, f.Args) {
				return o.signature
			}
		}
	}
	return ""
}

// resultType is what follows ::, else what the signature says; where it says ANY or ARRAY, the type of the last argument that
// is like that.
func (r *reader) resultType(f *tree.Function, signature string) (*value.Type, error) {
	if r.take("::") {
		return r.typeName()
	}
	_, result, _ := strings.Cut(signature, "-> ")
	switch result {
	case "":
		return value.Int64Type, nil // Lookup will say what is wrong
	case "ANY":
		return f.Args[len(f.Args)-1], nil
	case "ARRAY":
		if last := f.Args[len(f.Args)-1]; last.Kind == value.Array {
			return last, nil
		}
		for _, t := range f.Args {
			if t.Kind == value.Array {
				return t, nil
			}
		}
		return value.ArrayOf(f.Args[0]), nil
	}
	return (&reader{text: result}).typeName()
}
