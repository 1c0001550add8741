package library

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/aggregate"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestEveryFunctionIsInATable fails for a function without a line in the golden tables, except for the functions that
// lambda_test.go tests.
func TestEveryFunctionIsInATable(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{"array_filter": true, "array_transform": true}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(content), "\n") {
			name, _, _ := strings.Cut(line, "(")
			tested[strings.TrimPrefix(name, "safe.")] = true
		}
	}
	for _, name := range Names() {
		if !tested[name] {
			t.Errorf("%s is in no golden table", name)
		}
	}
}

var scalarSignatures, aggregateSignatures = signaturesOf(scalars.Descriptions()), signaturesOf(aggregate.Descriptions())

func signaturesOf(list []fn.Description) map[string][]string {
	m := make(map[string][]string)
	for _, d := range list {
		m[d.Name] = d.Signatures
	}
	return m
}

var param = regexp.MustCompile(`^(\?)?(BOOL|INT64|FLOAT64|FLOAT32|NUMERIC|STRING|BYTES|DATE|TIMESTAMP|INTERVAL|JSON|UUID|ANY|ARRAY|ARRAY<[A-Z0-9]+>|STRUCT|PART|LAMBDA)(\.\.\.)?$`)

// TestSignatures checks that each function of the library has a sentence of documentation, and signatures in the form
// that fn.Overload describes.
func TestSignatures(t *testing.T) {
	check := func(name, doc, signature string) {
		if !strings.HasSuffix(doc, ".") {
			t.Errorf("%s: its documentation is no sentence: %q", name, doc)
		}
		params, result, ok := strings.Cut(signature, "-> ")
		if !ok || !param.MatchString(result) {
			t.Errorf("%s: bad result in signature %q", name, signature)
		}
		for params = strings.TrimSpace(params); params != ""; {
			var p string
			if p, params = fn.NextParameter(params); !param.MatchString(p) && p != "(STRING, ANY)..." {
				t.Errorf("%s: bad parameter %q in signature %q", name, p, signature)
			}
		}
	}
	for _, d := range descriptions() {
		for _, signature := range d.Signatures {
			check(d.Name, d.Doc, signature)
		}
	}
}

func TestDoc(t *testing.T) {
	want := "json_value(JSON, ?STRING) -> STRING\njson_value(STRING, ?STRING) -> STRING\nJSON_VALUE(json, path): the scalar at a path, as text; NULL if it is none."
	if got := Doc("json_value"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Doc("count"); !strings.HasPrefix(got, "count(ANY) -> INT64\n") {
		t.Errorf("got %q", got)
	}
	if got := Doc("no_such"); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestUnknownFunction(t *testing.T) {
	f := &tree.Function{Name: "no_such", Args: []*value.Type{value.Int64Type, nil}, Type: value.Int64Type}
	if _, err := Lookup(f); err == nil || err.Error() != "Unsupported built-in function: no_such(INT64, LAMBDA)" {
		t.Errorf("got %v", err)
	}
	if _, err := aggregate.Lookup(f); err == nil {
		t.Error("no error")
	}
}

// TestScalarsDoNotAllocate checks that common functions of numbers, dates and text, and comparisons, allocate no
// memory per row.
func TestScalarsDoNotAllocate(t *testing.T) {
	one, two := value.OfInt64(1), value.OfInt64(2)
	x, y := value.OfFloat64(1.5), value.OfFloat64(2)
	s := value.OfString("abcdef")
	day, now := value.OfDate(20000), value.OfTimestamp(1_700_000_000, 5)
	for _, c := range []struct {
		name string
		args []value.Value
	}{
		{"$add", []value.Value{one, two}}, {"$multiply", []value.Value{x, y}}, {"$equal", []value.Value{s, s}},
		{"$less", []value.Value{one, two}}, {"$between", []value.Value{one, one, two}}, {"$in", []value.Value{one, two, one}},
		{"mod", []value.Value{two, one}}, {"round", []value.Value{x}}, {"substr", []value.Value{s, two, two}},
		{"starts_with", []value.Value{s, s}}, {"length", []value.Value{s}}, {"$like", []value.Value{s, value.OfString("ab%f")}},
		{"regexp_contains", []value.Value{s, value.OfString("b.d")}}, {"date_add", []value.Value{day, one, value.OfString("MONTH")}},
		{"timestamp_diff", []value.Value{now, now, value.OfString("SECOND")}}, {"$extract", []value.Value{day, value.OfString("ISOWEEK")}},
		{"timestamp_trunc", []value.Value{now, value.OfString("DAY"), value.OfString("UTC")}},
		{"farm_fingerprint", []value.Value{s}}, {"$is_null", []value.Value{s}},
		{"json_value", []value.Value{value.OfJSON(`{"a":"x"}`), value.OfString("$.a")}},
	} {
		f := &tree.Function{Name: c.name, Type: value.Int64Type}
		for _, a := range c.args {
			f.Args = append(f.Args, typeOf(a))
		}
		scalar, err := Lookup(f)
		if err != nil {
			t.Fatal(err)
		}
		ctx := testContext()
		n := testing.AllocsPerRun(100, func() {
			if _, err := scalar.Call(ctx, c.args); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s allocates %v times per row", c.name, n)
		}
	}
}

func typeOf(v value.Value) *value.Type {
	for _, t := range scalarTypes {
		if t.Kind == v.Kind() {
			return t
		}
	}
	return nil
}

func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name string
		args []value.Value
	}{
		{"$add", []value.Value{value.OfInt64(1), value.OfInt64(2)}},
		{"$equal", []value.Value{value.OfString("abc"), value.OfString("abd")}},
		{"$like", []value.Value{value.OfString("some longer text"), value.OfString("some%text")}},
		{"substr", []value.Value{value.OfString("some longer text"), value.OfInt64(3), value.OfInt64(5)}},
		{"concat", []value.Value{value.OfString("abc"), value.OfString("abd")}},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := &tree.Function{Name: c.name, Type: value.Int64Type}
			for _, a := range c.args {
				f.Args = append(f.Args, typeOf(a))
			}
			scalar, err := Lookup(f)
			if err != nil {
				b.Fatal(err)
			}
			ctx := testContext()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := scalar.Call(ctx, c.args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
