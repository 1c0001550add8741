package aggregate

import (
	"cmp"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// collecting holds the aggregates whose results consist of argument values: MIN, MAX, ANY_VALUE, ARRAY_AGG and
// similar ones.
var collecting = []aggregateRecord{
	{name: "min", doc: "The least value; NaN if there is one.", overloads: []aggregateOverload{{"ANY -> ANY", extremum(-1), extrema(-1)}}},
	{name: "max", doc: "The greatest value; NaN if there is one.", overloads: []aggregateOverload{{"ANY -> ANY", extremum(1), extrema(1)}}},
	{name: "any_value", doc: "The value of some row, not NULL unless all are.", keepNulls: true, overloads: []aggregateOverload{{"ANY -> ANY", anyValue, nil}}},
	{name: "array_agg", doc: "All values, NULLs too; NULL of no rows.", keepNulls: true, collects: true,
		overloads: []aggregateOverload{{"ANY -> ARRAY", simple(func() fn.State { return new(arrayAgg) }), nil}}},
	{name: "array_concat_agg", doc: "The elements of all arrays; NULL of no arrays.", collects: true,
		overloads: []aggregateOverload{{"ARRAY -> ARRAY", simple(func() fn.State { return new(arrayConcatAgg) }), nil}}},
	{name: "string_agg", doc: "STRING_AGG(text, delimiter): all texts with a delimiter (a comma) between them.", collects: true, overloads: []aggregateOverload{
		{"STRING, ?STRING -> STRING", stringAgg, nil},
		{"BYTES, ?BYTES -> BYTES", stringAgg, nil},
	}},
}

func extremum(sign int) func(*tree.Function) func() fn.State {
	return func(f *tree.Function) func() fn.State {
		return func() fn.State { return &extremumState{sign: sign, t: f.Args[0], best: value.Null(f.Args[0].Kind)} }
	}
}

// extremumState holds the MIN or MAX of the rows so far.
type extremumState struct {
	sign int
	t    *value.Type
	best value.Value
}

func (e *extremumState) Add(args []value.Value) error {
	if !args[0].IsNull() {
		e.add(args[0])
	}
	return nil
}

func (e *extremumState) add(v value.Value) {
	floating := e.t.Kind == value.Float64 || e.t.Kind == value.Float32
	switch {
	case e.best.IsNull(), floating && v.IsNaN():
		e.best = v
	case floating && e.best.IsNaN():
	case value.Compare(v, e.best, e.t) == e.sign:
		e.best = v
	}
}

func (e *extremumState) Result() (value.Value, error) { return e.best, nil }

// extrema makes the Groups for MIN (sign -1) or MAX (sign 1).
func extrema(sign int) func(*tree.Function) func() fn.Groups {
	return func(f *tree.Function) func() fn.Groups {
		g := extremumGroups{sign: sign, t: f.Args[0], whole: f.Args[0].Kind == value.Int64 || f.Args[0].Kind == value.Date}
		g.result = func(best *value.Value) (value.Value, error) {
			if best.IsNull() {
				return fn.Null(g.t.Kind)
			}
			return *best, nil
		}
		return func() fn.Groups { made := g; return &made }
	}
}

// extremumGroups keeps the least or greatest value so far of each group; NULL before the first value.
type extremumGroups struct {
	stateList[value.Value]
	sign  int
	t     *value.Type
	whole bool // the values are INT64s or DATEs
	room  []int32
}

func (e *extremumGroups) Add(rows, groups []int32, args []fn.Column) error {
	col := &args[0]
	if v := col.Vector; v != nil {
		rows = col.NotNull(rows, &e.room)
		switch {
		case e.whole && v.Ints != nil:
			e.addInts(rows, groups, v)
			return nil
		case v.Floats != nil:
			e.addFloats(rows, groups, v)
			return nil
		case v.Offsets != nil:
			e.addTexts(rows, groups, v)
			return nil
		}
	}
	for _, i := range rows {
		v := col.Peek(int(i))
		if v.IsNull() {
			continue
		}
		best := &e.states[groups[i]]
		if e.whole && !best.IsNull() {
			if cmp.Compare(v.AsInt64(), best.AsInt64()) == e.sign {
				*best = v
			}
			continue
		}
		state := extremumState{sign: e.sign, t: e.t, best: *best}
		state.add(v)
		*best = state.best
	}
	return nil
}

func (e *extremumGroups) addInts(rows, groups []int32, v *value.Vector) {
	for _, i := range rows {
		best := &e.states[groups[i]]
		if best.IsNull() || cmp.Compare(v.Ints[i], best.AsInt64()) == e.sign {
			*best = v.Peek(int(i))
		}
	}
}

// addFloats adds floating point numbers to the groups. NaN wins over every other value.
func (e *extremumGroups) addFloats(rows, groups []int32, v *value.Vector) {
	for _, i := range rows {
		best, x := &e.states[groups[i]], v.Floats[i]
		if best.IsNull() {
			*best = v.Peek(int(i))
			continue
		}
		if b := best.AsFloat64(); x != x || e.sign > 0 && x > b || e.sign < 0 && x < b {
			*best = v.Peek(int(i))
		}
	}
}

// addTexts adds STRINGs or BYTES to the groups. It copies a value only if the value becomes the least or greatest of
// its group.
func (e *extremumGroups) addTexts(rows, groups []int32, v *value.Vector) {
	for _, i := range rows {
		best := &e.states[groups[i]]
		if best.IsNull() || cmp.Compare(v.StringAt(int(i)), best.AsString()) == e.sign {
			*best = v.At(int(i))
		}
	}
}

func anyValue(f *tree.Function) func() fn.State {
	return func() fn.State { return &firstValue{value.Null(f.Type.Kind)} }
}

type firstValue struct{ v value.Value }

func (s *firstValue) Add(args []value.Value) error {
	if s.v.IsNull() {
		s.v = args[0]
	}
	return nil
}

func (s *firstValue) Result() (value.Value, error) { return s.v, nil }

type arrayAgg struct{ elems []value.Value }

func (s *arrayAgg) Add(args []value.Value) error {
	s.elems = append(s.elems, args[0])
	return nil
}

func (s *arrayAgg) Result() (value.Value, error) {
	if s.elems == nil {
		return fn.Null(value.Array)
	}
	return value.OfArray(s.elems), nil
}

type arrayConcatAgg struct {
	elems    []value.Value
	hasValue bool
}

func (s *arrayConcatAgg) Add(args []value.Value) error {
	if !args[0].IsNull() {
		s.hasValue = true
		s.elems = append(s.elems, args[0].AsList()...)
	}
	return nil
}

func (s *arrayConcatAgg) Result() (value.Value, error) {
	if !s.hasValue {
		return fn.Null(value.Array)
	}
	return value.OfArray(s.elems), nil
}

func stringAgg(f *tree.Function) func() fn.State {
	return func() fn.State { return &joinedText{kind: f.Type.Kind} }
}

type joinedText struct {
	kind     value.Kind
	text     []byte
	hasValue bool
}

func (s *joinedText) Add(args []value.Value) error {
	switch {
	case args[0].IsNull():
		return nil
	case len(args) == 2 && args[1].IsNull():
		return usererror.NullSeparator()
	case !s.hasValue:
	case len(args) == 1:
		s.text = append(s.text, ',')
	default:
		s.text = append(s.text, args[1].AsBytes()...)
	}
	s.hasValue = true
	s.text = append(s.text, args[0].AsBytes()...)
	return nil
}

func (s *joinedText) Result() (value.Value, error) {
	if !s.hasValue {
		return fn.Null(s.kind)
	}
	return fn.TextOf(s.kind, string(s.text)), nil
}
