package crossings

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// A cell is a value in the text form that the API uses; the zero cell is NULL. The type of the value is that of its
// column.
type cell struct {
	set  bool
	text string
}

func (c cell) String() string {
	if !c.set {
		return "NULL"
	}
	return strconv.Quote(c.text)
}

func textCell(text string) cell { return cell{true, text} }
func intCell(n int64) cell      { return cell{true, strconv.FormatInt(n, 10)} }

func floatCell(f float64) cell {
	switch {
	case math.IsNaN(f):
		return textCell("NaN")
	case math.IsInf(f, 1):
		return textCell("Infinity")
	case math.IsInf(f, -1):
		return textCell("-Infinity")
	}
	return textCell(strconv.FormatFloat(f, 'g', -1, 64)) // -0 keeps its sign
}

func timeCell(t time.Time) cell { return textCell(t.UTC().Format(time.RFC3339Nano)) }

func (c cell) int() int64 { n, _ := strconv.ParseInt(c.text, 10, 64); return n }

func (c cell) float() float64 { f, _ := strconv.ParseFloat(c.text, 64); return f }

func (c cell) time() time.Time { t, _ := time.Parse(time.RFC3339Nano, c.text); return t }

// A kind is a type of columns.
type kind struct {
	name   string // the type as DDL writes it
	code   spannerpb.TypeCode
	values []string // the values from which the method random chooses; some of them are extreme
	// compare compares two values that are not NULL.
	compare func(a, b cell) int
	literal func(c cell) string
	key     bool // whether the kind can be the type of a key column
}

var (
	intKind = &kind{"INT64", spannerpb.TypeCode_INT64, []string{"0", "1", "2", "3", "-1", "7", "100", "9223372036854775807", "-9223372036854775808"},
		func(a, b cell) int { return cmp.Compare(a.int(), b.int()) },
		func(c cell) string { return "CAST('" + c.text + "' AS INT64)" }, true}
	floatKind = &kind{"FLOAT64", spannerpb.TypeCode_FLOAT64, []string{"0", "-0", "0", "-0", "1.5", "-1.5", "NaN", "Infinity", "-Infinity", "5e-324", "1.7976931348623157e+308"},
		func(a, b cell) int { return cmp.Compare(a.float(), b.float()) }, // NaN comes first, and the two zeros are equal
		func(c cell) string { return "CAST('" + c.text + "' AS FLOAT64)" }, true}
	numericKind = &kind{"NUMERIC", spannerpb.TypeCode_NUMERIC, []string{"0", "1.5", "-1.5", "0.000000001", "99999999999999999999999999999.999999999", "-99999999999999999999999999999.999999999"},
		func(a, b cell) int { return rat(a).Cmp(rat(b)) },
		func(c cell) string { return "NUMERIC '" + c.text + "'" }, true}
	stringKind = &kind{"STRING(MAX)", spannerpb.TypeCode_STRING, []string{"", "a", "b", "B", "ü🐦", "a\x00b", "'\"\\", "NULL", strings.Repeat("long ", 400)},
		func(a, b cell) int { return strings.Compare(a.text, b.text) },
		func(c cell) string { return strconv.QuoteToASCII(c.text) }, true}
	bytesKind = &kind{"BYTES(MAX)", spannerpb.TypeCode_BYTES, []string{"", "AA==", "AP8=", "YQ==", "/w=="},
		func(a, b cell) int { return strings.Compare(string(decoded(a)), string(decoded(b))) },
		func(c cell) string { return bytesLiteral(c) }, true}
	timeKind = &kind{"TIMESTAMP", spannerpb.TypeCode_TIMESTAMP, []string{"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00Z", "2020-02-29T12:00:00.000001Z", "1969-12-31T23:59:59.999999999Z"},
		func(a, b cell) int { return a.time().Compare(b.time()) },
		func(c cell) string { return "TIMESTAMP '" + c.text + "'" }, true}
	boolKind = &kind{"BOOL", spannerpb.TypeCode_BOOL, []string{"true", "false"},
		func(a, b cell) int { return strings.Compare(a.text, b.text) },
		func(c cell) string { return c.text }, true}
	protoKind = &kind{"shop.Item", spannerpb.TypeCode_PROTO, []string{"", "CAE=", "CAI="},
		func(a, b cell) int { return strings.Compare(a.text, b.text) },
		func(c cell) string { return "CAST(" + bytesLiteral(c) + " AS shop.Item)" }, false}

	plainKinds = []*kind{intKind, floatKind, numericKind, stringKind, bytesKind, timeKind, boolKind}
)

func rat(c cell) *big.Rat { r, _ := new(big.Rat).SetString(c.text); return r }

func decoded(c cell) []byte { b, _ := base64.StdEncoding.DecodeString(c.text); return b }

func bytesLiteral(c cell) string {
	var b strings.Builder
	b.WriteString(`b"`)
	for _, x := range decoded(c) {
		fmt.Fprintf(&b, `\x%02x`, x)
	}
	return b.String() + `"`
}

// random returns a random value of the kind, which is sometimes NULL.
func (k *kind) random(rng *rand.Rand) cell {
	if rng.IntN(6) == 0 {
		return cell{}
	}
	return textCell(k.values[rng.IntN(len(k.values))])
}

// order compares two values in the order of keys: NULL first.
func (k *kind) order(a, b cell) int {
	switch {
	case !a.set && !b.set:
		return 0
	case !a.set:
		return -1
	case !b.set:
		return 1
	}
	return k.compare(a, b)
}

// normal returns the same cell for all values that are equal as keys: it replaces -0 by 0.
func (k *kind) normal(c cell) cell {
	if k == floatKind && c.text == "-0" {
		return textCell("0")
	}
	return c
}

// sql returns the value as an SQL literal.
func (k *kind) sql(c cell) string {
	if !c.set {
		return "CAST(NULL AS " + strings.TrimSuffix(k.name, "(MAX)") + ")"
	}
	return k.literal(c)
}

func (k *kind) spannerType() *spannerpb.Type {
	t := &spannerpb.Type{Code: k.code}
	if k == protoKind {
		t.ProtoTypeFqn = k.name
	}
	return t
}

// wire returns the value in the encoding of the API.
func (k *kind) wire(c cell) *structpb.Value {
	switch {
	case !c.set:
		return structpb.NewNullValue()
	case k == boolKind:
		return structpb.NewBoolValue(c.text == "true")
	case k == floatKind && c.text != "NaN" && !strings.HasSuffix(c.text, "Infinity"):
		return structpb.NewNumberValue(c.float())
	}
	return structpb.NewStringValue(c.text)
}

// fromWire decodes a value of the API.
func fromWire(v *structpb.Value) cell {
	switch v := v.Kind.(type) {
	case *structpb.Value_NumberValue:
		return floatCell(v.NumberValue)
	case *structpb.Value_BoolValue:
		return textCell(strconv.FormatBool(v.BoolValue))
	case *structpb.Value_StringValue:
		return textCell(v.StringValue)
	}
	return cell{}
}

// line returns a row as text.
func line(cells []cell) string {
	words := make([]string, len(cells))
	for i, c := range cells {
		words[i] = c.String()
	}
	return strings.Join(words, " ")
}

// toBytes converts a value of STRING to BYTES, and toText converts a value of BYTES to STRING.
func toBytes(c cell) cell { return textCell(base64.StdEncoding.EncodeToString([]byte(c.text))) }
func toText(c cell) cell  { return textCell(string(decoded(c))) }
