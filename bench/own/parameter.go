package own

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"cloud.google.com/go/civil"
	"github.com/google/uuid"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// parameter is a named value of a workload file. Every operation draws a new value by the parameter's rule:
//
//	@id     INT64     1..1000              both ends included; also FLOAT64, DATE, TIMESTAMP
//	@new    INT64     sequence 1           counts up from 1, over all clients of the run
//	@last   INT64     @id + 9              from a parameter declared above
//	@key    STRING    uuid
//	@text   STRING    letters 100          a hundred random letters
//	@user   STRING    user-%06d 1..1000    a number in a text, in fmt's form
//	@kind   STRING    one of red, green    also INT64 and FLOAT64
//	@blob   BYTES     16                   number of random bytes
//	@flag   BOOL
//	@at     TIMESTAMP now
//	@ids    ARRAY<INT64> 10 of 1..1000     ten different values, by any rule above
type parameter struct {
	name string
	draw rule
}

// rule draws one value. It may use the values of the parameters that are declared above its own parameter.
type rule func(r *rand.Rand, above map[string]any) any

// rules holds for each type the function that parses the text of a rule for values of this type.
var rules = map[string]func(text string) (rule, error){
	"INT64":     integerRule,
	"FLOAT64":   floatRule,
	"BOOL":      boolRule,
	"STRING":    stringRule,
	"BYTES":     bytesRule,
	"DATE":      dateRule,
	"TIMESTAMP": timestampRule,
}

var (
	parameterForm = regexp.MustCompile(`^@([A-Za-z_][A-Za-z0-9_]*)\s+([A-Za-z0-9<>]+)\s*(.*)$`)
	arrayForm     = regexp.MustCompile(`^ARRAY<([A-Z0-9]+)>$`)
	countForm     = regexp.MustCompile(`^(\d+)\s+of\s+(.*)$`)
	plusForm      = regexp.MustCompile(`^@([A-Za-z_][A-Za-z0-9_]*)\s*([+-])\s*(\d+)$`)
)

// parseParameter parses a declaration.
func parseParameter(line string) (p parameter, err error) {
	m := parameterForm.FindStringSubmatch(line)
	if m == nil {
		return p, fmt.Errorf("a parameter is declared as @name TYPE rule, not %q", line)
	}
	p.name = m[1]
	kind, text := strings.ToUpper(m[2]), strings.TrimSpace(m[3])
	if a := arrayForm.FindStringSubmatch(kind); a != nil {
		p.draw, err = arrayRule(a[1], text)
	} else if parse, ok := rules[kind]; ok {
		p.draw, err = parse(text)
	} else {
		err = fmt.Errorf("unknown type %s", m[2])
	}
	if err != nil {
		err = fmt.Errorf("parameter @%s: %w", p.name, err)
	}
	return p, err
}

// between parses "low..high".
func between[T any](text string, parse func(string) (T, error)) (low, high T, err error) {
	a, b, ok := strings.Cut(text, "..")
	if !ok {
		return low, high, fmt.Errorf("no rule and no range low..high: %q", text)
	}
	if low, err = parse(strings.TrimSpace(a)); err == nil {
		high, err = parse(strings.TrimSpace(b))
	}
	return low, high, err
}

var errEmptyRange = errors.New("the range is empty")

// oneOf parses a rule of the form "one of a, b, c". ok is false if the text is a rule of another form.
func oneOf[T any](text string, parse func(string) (T, error)) (r rule, ok bool, err error) {
	list, ok := strings.CutPrefix(text, "one of ")
	if !ok {
		return nil, false, nil
	}
	var values []T
	for _, part := range strings.Split(list, ",") {
		v, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, true, err
		}
		values = append(values, v)
	}
	return func(r *rand.Rand, _ map[string]any) any { return values[r.IntN(len(values))] }, true, nil
}

func parseInteger(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
func parseText(s string) (string, error)   { return s, nil }
func parseTime(s string) (time.Time, error) {
	return time.Parse(time.RFC3339Nano, s)
}

func integerRule(text string) (rule, error) {
	if r, ok, err := oneOf(text, parseInteger); ok {
		return r, err
	}
	if first, ok := strings.CutPrefix(text, "sequence"); ok {
		n, err := parseInteger(strings.TrimSpace(first))
		next := new(atomic.Int64)
		next.Store(n - 1)
		return func(*rand.Rand, map[string]any) any { return next.Add(1) }, err
	}
	if m := plusForm.FindStringSubmatch(text); m != nil {
		n, err := parseInteger(m[2] + m[3])
		return func(_ *rand.Rand, above map[string]any) any {
			base, _ := above[m[1]].(int64)
			return base + n
		}, err
	}
	draw, err := integers(text)
	return func(r *rand.Rand, _ map[string]any) any { return draw(r) }, err
}

// integers parses a range such as 1..1000 and returns a function that draws an integer from it. The range may contain
// all integers of 64 bits.
func integers(text string) (func(*rand.Rand) int64, error) {
	low, high, err := between(text, parseInteger)
	if err == nil && high < low {
		err = errEmptyRange
	}
	width := uint64(high) - uint64(low) + 1 // overflows to 0 if the range contains all integers
	return func(r *rand.Rand) int64 {
		if width == 0 {
			return int64(r.Uint64())
		}
		return low + int64(r.Uint64N(width))
	}, err
}

func floatRule(text string) (rule, error) {
	if r, ok, err := oneOf(text, parseFloat); ok {
		return r, err
	}
	low, high, err := between(text, parseFloat)
	if err == nil && !(low <= high) {
		err = errEmptyRange
	}
	return func(r *rand.Rand, _ map[string]any) any { return low + r.Float64()*(high-low) }, err
}

func boolRule(text string) (rule, error) {
	if text != "" {
		return nil, fmt.Errorf("BOOL has no rule: %q", text)
	}
	return func(r *rand.Rand, _ map[string]any) any { return r.IntN(2) == 1 }, nil
}

// maxDrawn is the largest number of letters or bytes in a drawn value: 10 MiB, Spanner's limit for a value.
const maxDrawn = 10 << 20

func length(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err == nil && (n < 0 || n > maxDrawn) {
		err = fmt.Errorf("a length is from 0 to %d, not %d", maxDrawn, n)
	}
	return n, err
}

func stringRule(text string) (rule, error) {
	if r, ok, err := oneOf(text, parseText); ok {
		return r, err
	}
	if text == "uuid" {
		return func(*rand.Rand, map[string]any) any { return uuid.NewString() }, nil
	}
	if n, ok := strings.CutPrefix(text, "letters "); ok {
		n, err := length(n)
		return func(r *rand.Rand, _ map[string]any) any { return harness.Letters(int64(r.Uint64()), "x", n) }, err
	}
	at := strings.LastIndexByte(text, ' ')
	if at < 0 || strings.Count(text[:at], "%") != 1 {
		return nil, fmt.Errorf("a STRING is uuid, letters N, one of a, b, or a text with one %%d and a range, not %q", text)
	}
	form := text[:at]
	if strings.Contains(fmt.Sprintf(form, 1), "%!") {
		return nil, fmt.Errorf("%q is no form of a number", form)
	}
	draw, err := integers(text[at+1:])
	return func(r *rand.Rand, _ map[string]any) any { return fmt.Sprintf(form, draw(r)) }, err
}

func bytesRule(text string) (rule, error) {
	n, err := length(text)
	return func(r *rand.Rand, _ map[string]any) any { return []byte(harness.Letters(int64(r.Uint64()), "x", n)) }, err
}

func dateRule(text string) (rule, error) {
	low, high, err := between(text, civil.ParseDate)
	days := high.DaysSince(low)
	if err == nil && days < 0 {
		err = errEmptyRange
	}
	return func(r *rand.Rand, _ map[string]any) any { return low.AddDays(r.IntN(days + 1)) }, err
}

func timestampRule(text string) (rule, error) {
	if text == "now" {
		return func(*rand.Rand, map[string]any) any { return time.Now() }, nil
	}
	low, high, err := between(text, parseTime)
	wide := high.Sub(low)
	switch {
	case err == nil && wide < 0:
		err = errEmptyRange
	case err == nil && wide == math.MaxInt64: // Sub returns MaxInt64 for every longer range, too
		err = errors.New("the range is longer than 292 years")
	}
	return func(r *rand.Rand, _ map[string]any) any { return low.Add(time.Duration(r.Int64N(int64(wide) + 1))) }, err
}

// maxElements is the largest number of elements of an array. A request with more keys would measure something else
// than point reads.
const maxElements = 10_000

// triesPerElement limits how often an array's rule draws a value to find different elements: at most this many times
// for each element. If the rule finds too few different values, the array is shorter than declared.
const triesPerElement = 100

func arrayRule(kind, text string) (rule, error) {
	m := countForm.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("an array is N of a rule, not %q", text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || n > maxElements {
		return nil, fmt.Errorf("an array has at most %d elements", maxElements)
	}
	of, ok := rules[kind]
	if !ok {
		return nil, fmt.Errorf("unknown type of elements %s", kind)
	}
	draw, err := of(m[2])
	if err != nil {
		return nil, err
	}
	switch kind {
	case "INT64":
		return elements[int64](n, draw), nil
	case "FLOAT64":
		return elements[float64](n, draw), nil
	case "STRING":
		return elements[string](n, draw), nil
	case "DATE":
		return elements[civil.Date](n, draw), nil
	case "TIMESTAMP":
		return elements[time.Time](n, draw), nil
	}
	return nil, fmt.Errorf("no arrays of %s", kind)
}

// elements returns a rule whose values are arrays. To make an array, it calls draw, the rule of the elements, until it
// has n different values, or until it has called draw n*triesPerElement times.
func elements[T comparable](n int, draw rule) rule {
	return func(r *rand.Rand, above map[string]any) any {
		list, chosen := make([]T, 0, n), make(map[T]bool, n)
		for tries := n * triesPerElement; len(list) < n && tries > 0; tries-- {
			v, _ := draw(r, above).(T)
			if !chosen[v] {
				chosen[v] = true
				list = append(list, v)
			}
		}
		return list
	}
}

// drawAll draws a value for each parameter, in their order, and returns the values by name.
func drawAll(list []parameter, r *rand.Rand) map[string]any {
	values := make(map[string]any, len(list))
	for _, p := range list {
		values[p.name] = p.draw(r, values)
	}
	return values
}
