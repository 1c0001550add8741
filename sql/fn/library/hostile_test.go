package library

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/aggregate"
	"github.com/crowfoot-db/crowfoot/sql/fn/conversion"
	"github.com/crowfoot-db/crowfoot/sql/fn/sqltext"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/stats/distribution"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
	"google.golang.org/grpc/codes"
)

// edges holds, for each type, some values for which functions are likely to fail.
var edges = map[value.Kind][]value.Value{
	value.Bool:  {value.OfBool(true), value.OfBool(false)},
	value.Int64: ints(0, 1, -1, 2, 7, 64, 255, 1<<20, 1<<31, math.MaxInt64, math.MinInt64, -719162, 2932896),
	value.Float64: floats(0, math.Copysign(0, -1), 1, -1.5, 0.5, 1e-320, 1e150, 1e308, -math.MaxFloat64,
		math.Inf(1), math.Inf(-1), math.NaN(), 9.3e18),
	value.Float32: {value.OfFloat32(0), value.OfFloat32(-1.5), value.OfFloat32(math.MaxFloat32), value.OfFloat32(float32(math.Inf(1)))},
	value.Numeric: {value.OfNumeric(value.Decimal{}), value.OfNumeric(value.MaxDecimal), value.OfNumeric(value.MinDecimal),
		value.OfNumeric(value.DecimalFromInt64(-1)), value.OfNumeric(value.DecimalFromInt64(129))},
	value.String: texts("", "a", "añ日\U0001F600", "%", "\\", "(", "[", "a|b*", "%Y-%m-%d", "%E4Y%Ez%s", "2024-02-30", "$", "$.a[0]", "$[", "UTC", "DAY", "YEAR",
		"WEEK_MONDAY", "NFKD", "LAST", "exact", "YYYY-MM-DD HH24:MI TZH", "%d%*.*f", "%'#+-010.5g", "0x", "1e400", "{\"a\":[1,", "{\"a\":[1,null]}",
		"http://[::1", "//@:", "....", "\u0000", "-", "+", "9999-12-31 23:59:60+14:00", strings.Repeat("ab", 5000)),
	value.Bytes: {value.OfBytes(nil), value.OfBytes([]byte{0xff}), value.OfBytes([]byte("ab\xc3")), value.OfBytes(make([]byte, 16)), value.OfBytes([]byte("(\xb5/\xfd \x05)"))},
	value.Date:  {value.OfDate(0), value.OfDate(value.MinDate), value.OfDate(value.MaxDate), value.OfDate(19782)},
	value.Timestamp: {value.OfTimestamp(0, 1), value.OfTimestamp(value.MinTimestampSeconds, 0), value.OfTimestamp(value.MaxTimestampSeconds, 999_999_999),
		value.OfTimestamp(-1, 999_999_999)},
	value.Interval: intervalEdges(),
	value.JSON: {value.OfJSON("null"), value.OfJSON("[]"), value.OfJSON("{}"), value.OfJSON(`[[1,"\u0001"],{"a":null}]`), value.OfJSON(`{"a":{"b":[1,2.5]}}`),
		value.OfJSON("18446744073709551615"), value.OfJSON("1e+308"), value.OfJSON(`"x"`), value.OfJSON("true")},
	value.UUID: {value.OfUUID([16]byte{}), value.OfUUID([16]byte{15: 255})},
}

func ints(list ...int64) (vs []value.Value) {
	for _, i := range list {
		vs = append(vs, value.OfInt64(i))
	}
	return vs
}

func floats(list ...float64) (vs []value.Value) {
	for _, f := range list {
		vs = append(vs, value.OfFloat64(f))
	}
	return vs
}

func texts(list ...string) (vs []value.Value) {
	for _, s := range list {
		vs = append(vs, value.OfString(s))
	}
	return vs
}

func intervalEdges() (vs []value.Value) {
	for _, i := range [][4]int64{{0, 0, 0, 0}, {120000, 0, 0, 0}, {-120000, -3660000, -316224000000, 0}, {1, -1, -1, 1}} {
		interval, ok := value.NewInterval(i[0], i[1], i[2], i[3])
		if !ok {
			panic("no interval")
		}
		vs = append(vs, value.OfInterval(interval))
	}
	return vs
}

// random returns a value of a type, sometimes NULL.
func random(r *rand.Rand, t *value.Type) value.Value {
	if r.IntN(12) == 0 {
		return value.Null(t.Kind)
	}
	switch t.Kind {
	case value.Array:
		list := make([]value.Value, r.IntN(4))
		for i := range list {
			list[i] = random(r, t.Elem)
		}
		return value.OfArray(list)
	case value.Struct:
		list := make([]value.Value, len(t.Fields))
		for i := range list {
			list[i] = random(r, t.Fields[i].Type)
		}
		return value.OfStruct(list)
	}
	list := edges[t.Kind]
	return list[r.IntN(len(list))]
}

// randomCall makes random argument types that fit a signature, and the result type. A nil type means a lambda.
func randomCall(r *rand.Rand, signature string) (args []*value.Type, result *value.Type) {
	anyType := scalarTypes[r.IntN(len(scalarTypes))]
	pair := value.StructOf(value.Field{Name: "place", Type: value.Int64Type}, value.Field{Name: "weight", Type: value.Float64Type})
	typeOf := func(param string) *value.Type {
		switch param {
		case "ANY":
			return anyType
		case "ARRAY":
			if strings.HasSuffix(signature, "-> FLOAT64") { // the argument is a sparse vector
				return value.ArrayOf(pair)
			}
			return value.ArrayOf(anyType)
		case "STRUCT":
			return distribution.Type.Elem
		case "PART":
			return value.StringType
		case "LAMBDA":
			return nil
		}
		t, err := (&reader{text: param}).typeName()
		if err != nil {
			panic(err)
		}
		return t
	}
	params, resultName, _ := strings.Cut(signature, "->")
	for params = strings.TrimSpace(params); params != ""; {
		var p string
		p, params = fn.NextParameter(params)
		n := 1
		if p == "(STRING, ANY)..." {
			for range r.IntN(3) {
				args = append(args, value.StringType, typeOf("ANY"))
			}
			continue
		}
		if rest, repeated := strings.CutSuffix(p, "..."); repeated {
			p, n = rest, 1+r.IntN(4)
		} else if rest, optional := strings.CutPrefix(p, "?"); optional {
			p, n = rest, r.IntN(2)
		}
		if n == 0 {
			break // no argument may follow a missing optional one, because it would be taken for the missing one
		}
		for range n {
			args = append(args, typeOf(p))
		}
	}
	if result = typeOf(strings.TrimSpace(resultName)); result == nil {
		panic("a lambda for a result")
	}
	return args, result
}

// TestHostileArguments calls every signature with the values of edges. It checks that no call panics, that every error
// has one of the codes for errors in the user's data (OUT_OF_RANGE and INVALID_ARGUMENT), and that leakproof functions
// do not fail.
func TestHostileArguments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range Names() {
		for _, signature := range scalarSignatures[name] {
			for range 100 {
				types, result := randomCall(r, signature)
				callHostile(t, r, name, types, result)
			}
		}
	}
}

func callHostile(t *testing.T, r *rand.Rand, name string, types []*value.Type, result *value.Type) {
	t.Helper()
	var args []value.Value
	var lambdas []fn.Lambda
	for _, typ := range types {
		if typ == nil {
			lambdas = append(lambdas, goLambda(func(a []value.Value) (value.Value, error) { return random(r, value.BoolType), nil }))
			continue
		}
		args = append(args, random(r, typ))
	}
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s%v panics: %v", name, printed(args), p)
		}
	}()
	s, err := Lookup(&tree.Function{Name: name, Args: types, Type: result})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	switch {
	case s.Lazy != nil:
		_, err = s.Lazy(testContext(), given(args))
	case s.Higher != nil:
		_, err = s.Higher(testContext(), args, lambdas)
	default:
		_, err = s.Call(testContext(), args)
	}
	if err != nil && s.Leakproof {
		t.Errorf("%s%v is leakproof, and fails: %v", name, printed(args), err)
	}
	if code := usererror.CodeOf(err); code != codes.OK && code != codes.OutOfRange && code != codes.InvalidArgument {
		t.Errorf("%s%v: %v", name, printed(args), err)
	}
}

func printed(args []value.Value) (list []string) {
	for _, a := range args {
		if a.IsNull() || a.Kind() == value.Array || a.Kind() == value.Struct {
			list = append(list, fmt.Sprintf("%s(%v)", a.Kind(), a.IsNull()))
			continue
		}
		list = append(list, fmt.Sprintf("%q", sqltext.Append(nil, a, (&fn.Context{}).Location())))
	}
	return list
}

// TestHostileCasts calls the casts between all types, with FORMAT and without, with the values of edges. It checks that
// no cast panics, that no error has the code INTERNAL, and that leakproof casts without FORMAT do not fail.
func TestHostileCasts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, from := range scalarTypes {
		for _, to := range scalarTypes {
			s, err := conversion.Cast(from, to, false)
			if err != nil {
				continue
			}
			for range 300 {
				args := []value.Value{random(r, from)}
				if r.IntN(2) == 0 {
					args = append(args, random(r, value.StringType))
				}
				func() {
					defer func() {
						if p := recover(); p != nil {
							t.Fatalf("cast of %v from %s to %s panics: %v", printed(args), from, to, p)
						}
					}()
					if _, err = s.Call(testContext(), args); err != nil && s.Leakproof && len(args) == 1 {
						t.Errorf("cast of %v from %s to %s is leakproof, and fails: %v", printed(args), from, to, err)
					}
					if err != nil && usererror.CodeOf(err) == codes.Internal {
						t.Errorf("cast of %v from %s to %s: %v", printed(args), from, to, err)
					}
				}()
			}
		}
	}
}

// TestHostileRows adds rows with the values of edges to each aggregate. It checks that no aggregate panics, and that
// every error has the code OUT_OF_RANGE. STRING_AGG may also return INVALID_ARGUMENT, as it does for a NULL separator.
func TestHostileRows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for name, signatures := range aggregateSignatures {
		for _, signature := range signatures {
			for range 100 {
				types, result := randomCall(r, signature)
				a, err := aggregate.Lookup(&tree.Function{Name: name, Args: types, Type: result})
				if err != nil {
					t.Fatal(err)
				}
				state := a.New()
				for range r.IntN(8) {
					row := make([]value.Value, len(types))
					for i := range row {
						row[i] = random(r, types[i])
					}
					if err = state.Add(row); err != nil {
						break
					}
				}
				if err == nil {
					_, err = state.Result()
				}
				nullSeparator := name == "string_agg" && usererror.CodeOf(err) == codes.InvalidArgument
				if err != nil && usererror.CodeOf(err) != codes.OutOfRange && !nullSeparator {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}
