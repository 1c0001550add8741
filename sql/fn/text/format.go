package text

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/json"
	"github.com/crowfoot-db/crowfoot/sql/fn/sqltext"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Formats has FORMAT.
var Formats = []fn.Record{
	{Name: "format", Doc: "FORMAT(format, x, ...): texts as printf makes them; %t is a value as CAST prints it, %T as a literal, %p and %P are JSON.", Property: fn.Stable,
		Overloads: []fn.Overload{fn.On("STRING, ANY... -> STRING", fn.ByType(format))}},
}

// formatPart is a piece of literal text of the format, and the specifier that follows it.
type formatPart struct {
	text                                   string
	specifier                              byte // 0 for the last piece, which no specifier follows
	minus, plus, space, sharp, zero, group bool
	// width and precision are the numbers in the specifier. If widthArg is not negative, the width is the value of
	// argument widthArg instead; precisionArg has the same meaning for the precision. A precision of -1 means that
	// there is none.
	width, precision       int
	widthArg, precisionArg int
	arg                    int
}

func format(f *tree.Function) fn.Body {
	cache := new(fn.Memo[[]formatPart])
	compile := func(pattern string) ([]formatPart, error) { return compileFormat(pattern, f.Args[1:]) }
	return fn.Nullable(func(ctx *fn.Context, a []value.Value) (value.Value, error) {
		if a[0].IsNull() {
			return fn.Null(value.String)
		}
		parts, err := cache.Get(a[0].AsString(), compile)
		if err != nil {
			return value.Value{}, err
		}
		var out []byte
		for _, p := range parts {
			out = append(out, p.text...)
			if p.specifier == 0 {
				break
			}
			var ok bool
			if out, ok, err = p.append(out, ctx, a[1:], f.Args[1:]); err != nil || !ok {
				return value.Null(value.String), err
			}
			if len(out) > maxOutput {
				return fn.BadArgument("Output string too long while evaluating FORMAT; limit 1048576")
			}
		}
		return fn.OfString(string(out))
	})
}

func compileFormat(pattern string, args []*value.Type) ([]formatPart, error) {
	var parts []formatPart
	next := 0
	for rest := pattern; ; {
		text, spec, found := strings.Cut(rest, "%")
		part := formatPart{text: text, precision: -1, widthArg: -1, precisionArg: -1, arg: -1}
		if !found {
			parts = append(parts, part)
			break
		}
		var ok bool
		if rest, ok = part.parse(spec, &next); !ok {
			return nil, usererror.BadArgument("Invalid FORMAT string: \"" + pattern + "\"")
		}
		if part.specifier != '%' {
			part.arg = next
			next++
		}
		parts = append(parts, part)
	}
	if next != len(args) {
		few := "many"
		if next > len(args) {
			few = "few"
		}
		return nil, usererror.BadArgument(fmt.Sprintf("Too %s arguments to FORMAT for pattern \"%s\"; Expected %d; Got %d", few, pattern, next+1, len(args)+1))
	}
	for _, p := range parts {
		if err := p.check(args); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// parse parses [flags][width][.precision]specifier. The parameter next points to the index of FORMAT's next argument.
// The result rest is the format after the specifier.
func (p *formatPart) parse(spec string, next *int) (rest string, ok bool) {
	for spec != "" {
		flag := map[byte]*bool{'-': &p.minus, '+': &p.plus, ' ': &p.space, '#': &p.sharp, '0': &p.zero, '\'': &p.group}[spec[0]]
		if flag == nil {
			break
		}
		*flag, spec = true, spec[1:]
	}
	p.width, p.widthArg, spec, ok = formatNumber(spec, next)
	if ok && strings.HasPrefix(spec, ".") {
		p.precision, p.precisionArg, spec, ok = formatNumber(spec[1:], next)
	}
	if !ok || spec == "" || strings.IndexByte("diuoxXfFeEgGstTpP%", spec[0]) < 0 {
		return "", false
	}
	p.specifier = spec[0]
	bare := formatPart{text: p.text, specifier: '%', precision: -1, widthArg: -1, precisionArg: -1, arg: -1}
	return spec[1:], p.specifier != '%' || *p == bare
}

// formatNumber reads a number or a *. A * means that the next argument is the number; arg is then the index of this
// argument. Without a *, arg is -1. If there is neither a number nor a *, the number is 0.
func formatNumber(spec string, next *int) (n, arg int, rest string, ok bool) {
	if rest, star := strings.CutPrefix(spec, "*"); star {
		*next++
		return 0, *next - 1, rest, true
	}
	digits := len(spec) - len(strings.TrimLeft(spec, "0123456789"))
	if digits == 0 {
		return 0, -1, spec, true
	}
	n, err := strconv.Atoi(spec[:digits])
	return n, -1, spec[digits:], err == nil && n <= maxOutput
}

// check returns an error if the specifier does not accept the types of its arguments.
func (p *formatPart) check(args []*value.Type) error {
	for _, arg := range []int{p.widthArg, p.precisionArg} {
		if arg >= 0 && args[arg].Kind != value.Int64 {
			return wrongFormatType(arg, "integer", args[arg])
		}
	}
	if p.arg < 0 {
		return nil
	}
	t := args[p.arg]
	wanted := ""
	switch p.specifier {
	case 'd', 'i', 'u', 'o', 'x', 'X':
		if t.Kind != value.Int64 {
			wanted = "integer"
		}
	case 's':
		if t.Kind != value.String {
			wanted = "string"
		}
	case 'p', 'P':
		if t.Kind != value.JSON {
			wanted = "JSON"
		}
	case 'f', 'F', 'e', 'E', 'g', 'G':
		if t.Kind != value.Float64 && t.Kind != value.Float32 && t.Kind != value.Numeric {
			wanted = "floating point or numeric"
		}
	}
	if wanted == "" {
		return nil
	}
	return wrongFormatType(p.arg, wanted, t)
}

func wrongFormatType(arg int, wanted string, t *value.Type) error {
	return usererror.BadArgument(fmt.Sprintf("Invalid type for argument %d to FORMAT; Expected %s; Got %s", arg+2, wanted, t))
}

// append appends the argument as the specifier formats it. ok is false if the result of FORMAT is NULL.
func (p formatPart) append(dst []byte, ctx *fn.Context, args []value.Value, types []*value.Type) (out []byte, ok bool, err error) {
	if p.specifier == '%' {
		return append(dst, '%'), true, nil
	}
	if p.widthArg >= 0 {
		if args[p.widthArg].IsNull() {
			return dst, false, nil
		}
		w := args[p.widthArg].AsInt64()
		if p.minus = p.minus || w < 0; w > maxOutput || w < -maxOutput {
			return dst, false, usererror.BadArgument("Output string too long while evaluating FORMAT; limit 1048576")
		}
		p.width = int(max(w, -w))
	}
	if p.precisionArg >= 0 {
		if args[p.precisionArg].IsNull() {
			return dst, false, nil
		}
		p.precision = int(max(-1, min(args[p.precisionArg].AsInt64(), maxOutput+1)))
	}
	v, t := args[p.arg], types[p.arg]
	if p.specifier == 't' || p.specifier == 'T' {
		return p.pad(dst, "", p.cut(string(sqltext.Printer{Literal: p.specifier == 'T', Zone: ctx.Location()}.Append(nil, v, t)))), true, nil
	}
	if v.IsNull() {
		return dst, false, nil
	}
	return p.appendValue(dst, v)
}

// maxFloatPrecision is the maximum number of digits after the point that a FLOAT64 can have.
const maxFloatPrecision = 1074

func (p formatPart) appendValue(dst []byte, v value.Value) (out []byte, ok bool, err error) {
	switch p.specifier {
	case 's':
		return p.pad(dst, "", p.cut(v.AsString())), true, nil
	case 'p':
		return p.pad(dst, "", v.AsString()), true, nil
	case 'P':
		return p.pad(dst, "", json.Pretty(v.AsString())), true, nil
	case 'd', 'i', 'u', 'o', 'x', 'X':
		if p.precision > maxOutput {
			return dst, false, usererror.BadArgument("Precision value is too big")
		}
		return p.integer(dst, v.AsInt64()), true, nil
	}
	if p.precision > maxFloatPrecision {
		return dst, false, usererror.BadArgument("Precision value is too big")
	}
	return p.float(dst, v), true, nil
}

// cut shortens a text to at most p.precision characters.
func (p formatPart) cut(s string) string {
	if p.precision < 0 {
		return s
	}
	return s[:charOffset(s, int64(p.precision))]
}

// pad appends prefix (a sign or 0x) and digits. If they are shorter than the width, it adds spaces or zeros.
func (p formatPart) pad(dst []byte, prefix, digits string) []byte {
	missing := max(0, p.width-len(prefix)-utf8.RuneCountInString(digits))
	switch {
	case p.minus:
		dst = append(append(dst, prefix...), digits...)
		return append(dst, strings.Repeat(" ", missing)...)
	case p.zero && strings.IndexByte("stTpP", p.specifier) < 0:
		dst = append(append(dst, prefix...), strings.Repeat("0", missing)...)
	default:
		dst = append(append(dst, strings.Repeat(" ", missing)...), prefix...)
	}
	return append(dst, digits...)
}

func (p formatPart) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case p.plus:
		return "+"
	case p.space:
		return " "
	}
	return ""
}

func (p formatPart) integer(dst []byte, i int64) []byte {
	base, prefix := 10, ""
	switch p.specifier {
	case 'o':
		if base = 8; p.sharp {
			prefix = "0"
		}
	case 'x', 'X':
		if base = 16; p.sharp && i != 0 {
			prefix = "0" + string(p.specifier)
		}
	}
	digits := strconv.FormatUint(fn.Magnitude(i), base)
	if p.specifier == 'X' {
		digits = strings.ToUpper(digits)
	}
	if p.precision >= 0 {
		p.zero = false
		digits = strings.Repeat("0", max(0, p.precision-len(digits))) + digits
	}
	if p.group {
		digits = grouped(digits, base)
	}
	return p.pad(dst, p.sign(i < 0)+prefix, digits)
}

// grouped puts commas between groups of three decimal or four octal digits, and colons between groups of four
// hexadecimal digits.
func grouped(digits string, base int) string {
	size, separator := 3, ","
	switch base {
	case 8:
		size = 4
	case 16:
		size, separator = 4, ":"
	}
	for i := len(digits) - size; i > 0; i -= size {
		digits = digits[:i] + separator + digits[i:]
	}
	return digits
}

func (p formatPart) float(dst []byte, v value.Value) []byte {
	precision := p.precision
	if precision < 0 {
		precision = 6
	}
	verb := p.specifier | ' '
	if verb == 'g' {
		precision = max(precision, 1)
	}
	var text string
	switch {
	case v.Kind() == value.Numeric && verb == 'f':
		text = fixedNumeric(v.AsNumeric(), precision)
	case v.Kind() == value.Numeric:
		exact, _, _ := big.ParseFloat(v.AsNumeric().String(), 10, fn.WorkingPrecision, big.ToNearestEven)
		text = exact.Text(verb, precision)
	case !fn.IsFinite(v.AsFloat64()):
		p.zero = false
		text = fn.FloatText(v.AsFloat64())
	default:
		text = strconv.FormatFloat(v.AsFloat64()+0, verb, precision, 64)
	}
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	if p.sharp {
		text = withPoint(text, verb, precision)
	}
	if p.group && finiteText(text) {
		whole, fraction, point := strings.Cut(text, ".")
		if text = grouped(whole, 10); point {
			text += "." + fraction
		}
	}
	if p.specifier < 'a' {
		text = strings.ToUpper(text)
	}
	return p.pad(dst, p.sign(negative), text)
}

// finiteText reports whether a text is a number without an exponent, and not inf or nan.
func finiteText(text string) bool {
	return text[0] >= '0' && text[0] <= '9' && !strings.Contains(text, "e")
}

// fixedNumeric formats a NUMERIC with the given number of digits after the point.
func fixedNumeric(d value.Decimal, digits int) string {
	rounded, ok := d.Quantize(int64(digits), value.HalfAway)
	if !ok { // the rounded number is just beyond NUMERIC's range
		return new(big.Float).SetPrec(fn.WorkingPrecision).SetRat(new(big.Rat).SetFrac(d.Big(), fn.Billion)).Text('f', digits)
	}
	text := rounded.String()
	if digits == 0 {
		return text
	}
	_, fraction, found := strings.Cut(text, ".")
	if !found {
		text += "."
	}
	return text + strings.Repeat("0", digits-len(fraction))
}

// withPoint applies the # flag to a formatted number: the number always has a point, and %g keeps trailing zeros.
func withPoint(text string, verb byte, precision int) string {
	if !finiteText(text[:1]) {
		return text
	}
	mantissa, exponent, scientific := strings.Cut(text, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += "."
	}
	if verb == 'g' {
		significant := len(strings.TrimLeft(strings.Replace(mantissa, ".", "", 1), "0"))
		mantissa += strings.Repeat("0", max(0, precision-max(significant, 1)))
	}
	if scientific {
		return mantissa + "e" + exponent
	}
	return mantissa
}
