package library

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/aggregate"
	"github.com/crowfoot-db/crowfoot/sql/fn/conversion"
	"github.com/crowfoot-db/crowfoot/sql/fn/sqltext"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

var rewrite = flag.Bool("rewrite-golden", false, "write the results into the golden tables")

// TestGolden runs the tables in testdata. A line is a call or a cast and, after =>, its result; # begins a comment:
//
//	substr('abc', 2) => STRING "bc"
//	safe.substr('abc', 2, -1) => STRING NULL
//	cast('12' as INT64) => INT64 12
//	array_first([1]) :: INT64 => INT64 1
//
// In files whose names begin with aggregate, each argument is a row. If an aggregate has several arguments, each row
// is a list of them in parentheses:
//
//	sum(1, 2, NULL:INT64) => INT64 3
//
// reader_test.go describes the literals. A line may name the type of the result after ::, if the function's signature
// leaves the type open.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden tables: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { runTable(t, file) })
	}
}

func runTable(t *testing.T, file string) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	aggregate := strings.HasPrefix(filepath.Base(file), "aggregate")
	lines := strings.Split(string(content), "\n")
	for i, line := range lines {
		if line == "" || line[0] == '#' {
			continue
		}
		call, want, _ := strings.Cut(line, " => ")
		got := run(t, call, aggregate)
		if lines[i] = call + " => " + got; got != want && !*rewrite {
			t.Errorf("%s:%d: %s\n got %s\nwant %s", file, i+1, call, got, want)
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// testContext returns a Context with a fixed current time, the time zone of Los Angeles, zeros as random bytes, and
// sequences whose next value is always 42.
func testContext() *fn.Context {
	return &fn.Context{Sequences: fixedSequences{}, Now: time.Date(2024, 2, 29, 23, 59, 58, 123456789, time.UTC), Random: bytes.NewReader(make([]byte, 1<<16))}
}

type fixedSequences struct{}

func (fixedSequences) Next(string) (int64, error)                { return 42, nil }
func (fixedSequences) State(name string) (int64, bool, error)    { return 42, name != "unused", nil }
func (fixedSequences) IdentityState(string) (int64, bool, error) { return 42, true, nil }

func run(t *testing.T, call string, aggregate bool) string {
	r := &reader{text: call}
	eval := r.call
	if aggregate {
		eval = r.aggregate
	}
	v, typ, err := eval()
	var bad *syntaxError
	if errors.As(err, &bad) {
		t.Fatalf("%s: %v", call, err)
	}
	if err != nil {
		return fmt.Sprintf("%s: %s", usererror.CodeOf(err), err)
	}
	if !v.IsNull() && v.Kind() != typ.Kind {
		return fmt.Sprintf("a value of kind %s where %s was promised", v.Kind(), typ)
	}
	return typ.String() + " " + string(sqltext.Printer{Literal: true, Zone: time.UTC}.Append(nil, v, typ))
}

// call reads one call of the form name(args), safe.name(args) or cast(x as T [format f]), and runs it.
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

// given holds the arguments for a lazy function. An argument that a golden table writes as raise:TYPE raises an error
// when it is computed.
type given []value.Value

func (g given) Len() int { return len(g) }

func (g given) Arg(i int) (value.Value, error) {
	if g[i].IsPending() {
		return value.Value{}, usererror.UserError("raised")
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
		if r.accept(clause) {
			v, _, err := r.literal()
			if err != nil {
				return v, nil, err
			}
			args = append(args, v)
		}
	}
	s, err := conversion.Cast(from, to, safe)
	if err != nil {
		return v, nil, err
	}
	v, err = s.Call(testContext(), args)
	return v, to, err
}

func (r *reader) aggregate() (value.Value, *value.Type, error) {
	f := &tree.Function{Name: r.until("(")}
	var rows [][]value.Value
	for !r.accept(")") {
		if len(rows) > 0 && !r.accept(",") {
			return value.Value{}, nil, r.wrong("comma")
		}
		if r.accept("(") {
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
	if r.accept("of") {
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
	a, err := aggregate.Lookup(f)
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
	return fitting(scalarSignatures[f.Name], f)
}

func aggregateSignature(f *tree.Function) string {
	return fitting(aggregateSignatures[f.Name], f)
}

// fitting returns the first of the signatures that accepts a call's arguments; "" if there is none.
func fitting(signatures []string, f *tree.Function) string {
	for _, s := range signatures {
		if fn.Fits(s, f.Args) {
			return s
		}
	}
	return ""
}

// resultType returns the type of a call's result. It is the type after ::, if the line has one, and otherwise the
// result type in the signature. ANY in the signature stands for the type of the last argument. ARRAY stands for the
// type of the last argument if that is an ARRAY, else for the type of the first argument that is an ARRAY, else for an
// ARRAY of the first argument's type.
func (r *reader) resultType(f *tree.Function, signature string) (*value.Type, error) {
	if r.accept("::") {
		return r.typeName()
	}
	_, result, _ := strings.Cut(signature, "-> ")
	switch result {
	case "":
		return value.Int64Type, nil // no signature fits, so Lookup refuses the call with a result of any type
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
