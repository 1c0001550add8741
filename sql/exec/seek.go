package exec

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"sort"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// seekCode is a compiled plan.Seek.
type seekCode struct {
	key      []schema.KeyPart
	declared int // the number of key parts that the DDL declares; the key of an index entry has further parts
	parts    []partCode
	bounds   *rangeCode
	tuples   *plan.SeekTuples
	array    eval // computes the array of structs that hold the keys; nil if tuples is nil
}

type partCode struct {
	values   []eval
	array    eval
	null     bool
	nullSafe bool
	each     bool
	among    *rangeCode // if each is true: the range in which the scan looks for values of the part; nil for all values
}

type rangeCode struct {
	low, high, prefix eval
	lowOpen, highOpen bool
	like              bool
}

func (c *compiler) seek(s *plan.Seek, l *table.Layout) (seekCode, error) {
	code := seekCode{key: l.Key, declared: len(l.KeySetColumns()), tuples: s.Tuples}
	var err error
	if s.Tuples != nil {
		code.array, err = c.expr(s.Tuples.Array)
		return code, err
	}
	for _, p := range s.Parts {
		part := partCode{null: p.Null, nullSafe: p.NullSafe, each: p.Each}
		if part.values, err = c.exprs(p.Values); err != nil {
			return code, err
		}
		if part.array, err = c.optional(p.Array); err != nil {
			return code, err
		}
		if part.among, err = c.seekRange(p.Among); err != nil {
			return code, err
		}
		code.parts = append(code.parts, part)
	}
	code.bounds, err = c.seekRange(s.Range)
	return code, err
}

// seekRange compiles the bounds of a range. It returns nil if b is nil.
func (c *compiler) seekRange(b *plan.SeekRange) (*rangeCode, error) {
	if b == nil {
		return nil, nil
	}
	list, err := c.exprs([]plan.Expr{b.Low, b.High, b.Prefix})
	if err != nil {
		return nil, err
	}
	return &rangeCode{low: list[0], high: list[1], prefix: list[2], lowOpen: b.LowOpen, highOpen: b.HighOpen, like: b.Like}, nil
}

// isPoint reports whether the seek consists of exactly one whole key, whatever values its expressions have.
func (s *seekCode) isPoint() bool {
	if s.tuples != nil || s.bounds != nil || len(s.parts) != len(s.key) {
		return false
	}
	for _, p := range s.parts {
		if !p.null && len(p.values) != 1 {
			return false
		}
	}
	return true
}

// eachValue is a function that looks up the values of key part i that occur in the table after a prefix, which holds
// the key parts before part i. For each value, it adds to set the keys of the seek that begin with the prefix and the
// value.
type eachValue func(r *run, set *table.KeySet, prefix []value.Value, i int) error

// add adds the keys of the seek to set. The seek of a skip scan has no condition on one key part: for that part, add
// calls the function that the parameter each holds.
func (s *seekCode) add(r *run, set *table.KeySet, each eachValue) error {
	if s.tuples != nil {
		return s.addTuples(r, set)
	}
	return s.addParts(r, set, nil, 0, each)
}

// addParts adds to set the keys that begin with prefix and fulfil the conditions of the seek. prefix holds the key
// parts before part i. If a part can have several values, addParts continues with one value after the other. If the
// seek has a range, the key part after the last part of the seek must lie in it.
func (s *seekCode) addParts(r *run, set *table.KeySet, prefix []value.Value, i int, each eachValue) error {
	for ; i < len(s.parts); i++ {
		p := &s.parts[i]
		if prefix == nil {
			prefix = make([]value.Value, 0, len(s.key))
		}
		if p.null {
			prefix = append(prefix, value.Null(s.key[i].Column.Type.Kind))
			continue
		}
		if p.each {
			return each(r, set, prefix, i)
		}
		if len(p.values) != 1 {
			return s.addList(r, set, prefix, i, each)
		}
		v, err := p.values[0](r, nil)
		if err != nil || !p.nullSafe && equalsNothing(v) {
			return err
		}
		prefix = append(prefix, v)
	}
	if s.bounds == nil {
		s.addKey(set, prefix)
		return nil
	}
	return s.addRange(r, set, prefix, s.bounds)
}

// addList adds the keys that begin with prefix and have one of the listed values as part i.
func (s *seekCode) addList(r *run, set *table.KeySet, prefix []value.Value, i int, each eachValue) error {
	next := func(v value.Value) error {
		if equalsNothing(v) {
			return nil
		}
		return s.addParts(r, set, s.longer(prefix, v), i+1, each)
	}
	p := &s.parts[i]
	for _, f := range p.values {
		v, err := f(r, nil)
		if err == nil {
			err = next(v)
		}
		if err != nil {
			return err
		}
	}
	if p.array == nil {
		return nil
	}
	v, err := p.array(r, nil)
	if err != nil || v.IsNull() {
		return err
	}
	for _, e := range v.AsList() {
		if err := next(e); err != nil {
			return err
		}
	}
	return nil
}

// equalsNothing reports whether v is NULL or NaN, or contains one of them. Such values equal no value, not even
// themselves.
func equalsNothing(v value.Value) bool {
	if v.IsNull() {
		return true
	}
	switch v.Kind() {
	case value.Float64, value.Float32:
		return v.IsNaN()
	case value.Array, value.Struct:
		return slices.ContainsFunc(v.AsList(), equalsNothing)
	}
	return false
}

func (s *seekCode) addTuples(r *run, set *table.KeySet) error {
	v, err := s.array(r, nil)
	if err != nil || v.IsNull() {
		return err
	}
	for _, e := range v.AsList() {
		if e.IsNull() {
			continue
		}
		fields := e.AsList()
		prefix := make([]value.Value, 0, len(s.tuples.Fields))
		for _, f := range s.tuples.Fields {
			if equalsNothing(fields[f]) {
				break
			}
			prefix = append(prefix, fields[f])
		}
		if len(prefix) == len(s.tuples.Fields) {
			s.addKey(set, prefix)
		}
	}
	return nil
}

func (s *seekCode) addKey(set *table.KeySet, prefix []value.Value) {
	if len(prefix) >= s.declared {
		set.Keys = append(set.Keys, prefix)
		return
	}
	set.Ranges = append(set.Ranges, table.KeyRange{Start: prefix, End: prefix})
}

// longer returns a copy of prefix with v as one more part.
func (s *seekCode) longer(prefix []value.Value, v value.Value) []value.Value {
	return append(append(make([]value.Value, 0, len(s.key)), prefix...), v)
}

// addRange adds the keys that begin with prefix and whose next part lies in a range. The parameter in is that range.
// If in is nil, addRange adds all keys that begin with prefix.
func (s *seekCode) addRange(r *run, set *table.KeySet, prefix []value.Value, in *rangeCode) error {
	if in == nil {
		set.Ranges = append(set.Ranges, table.KeyRange{Start: prefix, End: prefix})
		return nil
	}
	b, ok, err := in.compute(r, s.key[len(prefix)].Column.Type.Kind)
	if err != nil || !ok {
		return err
	}
	with := func(v *value.Value) []value.Value {
		if v == nil {
			return prefix
		}
		return s.longer(prefix, *v)
	}
	rng := table.KeyRange{Start: with(b.low), StartOpen: b.low != nil && b.lowOpen, End: with(b.high), EndOpen: b.high != nil && b.highOpen}
	if s.key[len(prefix)].Desc {
		rng = table.KeyRange{Start: rng.End, StartOpen: rng.EndOpen, End: rng.Start, EndOpen: rng.StartOpen}
	}
	set.Ranges = append(set.Ranges, rng)
	return nil
}

// bounds are the two ends of a range of values of one key part. An end is nil if the range is unlimited there.
type bounds struct {
	low, high         *value.Value
	lowOpen, highOpen bool
}

// compute computes the bounds of the range. ok is false if no value can lie between them.
func (c *rangeCode) compute(r *run, k value.Kind) (b bounds, ok bool, err error) {
	least := value.Null(k)
	if c.high != nil { // in a key, NaN comes between NULL and the numbers, but NaN < x and NaN <= x are never TRUE
		switch k {
		case value.Float64:
			least = value.OfFloat64(math.NaN())
		case value.Float32:
			least = value.OfFloat32(float32(math.NaN()))
		}
	}
	b.low, b.lowOpen = &least, true
	if c.prefix != nil {
		return c.prefixed(r, b)
	}
	if c.low != nil {
		v, err := c.low(r, nil)
		if err != nil || equalsNothing(v) {
			return b, false, err
		}
		b.low, b.lowOpen = &v, c.lowOpen
	}
	if c.high != nil {
		v, err := c.high(r, nil)
		if err != nil || equalsNothing(v) {
			return b, false, err
		}
		b.high, b.highOpen = &v, c.highOpen
	}
	return b, true, nil
}

// prefixed restricts b to the values that begin with the prefix (c.prefix). Its second result is false if the prefix
// is NULL, because no value matches then.
func (c *rangeCode) prefixed(r *run, b bounds) (bounds, bool, error) {
	v, err := c.prefix(r, nil)
	if err != nil || v.IsNull() {
		return b, false, err
	}
	text := v.AsString()
	if c.like {
		text, _ = plan.LikePrefix(text)
	}
	if text == "" {
		return b, true, nil
	}
	low := ofKind(v.Kind(), text)
	b.low, b.lowOpen = &low, false
	if after, ok := successor(text); ok {
		high := ofKind(v.Kind(), after)
		b.high, b.highOpen = &high, true
	}
	return b, true, nil
}

func ofKind(k value.Kind, text string) value.Value {
	if k == value.Bytes {
		return value.OfBytes([]byte(text))
	}
	return value.OfString(text)
}

// successor returns the least byte string that is greater than all byte strings that begin with s. The result can
// be invalid UTF-8. ok is false if there is no such byte string.
func successor(s string) (string, bool) {
	b := []byte(s)
	for len(b) > 0 {
		if last := len(b) - 1; b[last] < 0xFF {
			b[last]++
			return string(b), true
		}
		b = b[:len(b)-1]
	}
	return "", false
}

// maxSkips is the greatest number of values that a skip scan looks for. Each value takes one seek, which costs as
// much as reading about ten rows in sequence. If there are more values, maxSkips seeks were in vain. But they took only
// a few milliseconds, and the scan of the whole index that then follows takes far longer.
const maxSkips = 1000

// skipCode finds the values of one key part for a skip scan (plan.SeekPart.Each). It seeks the first value, then
// skips all keys that begin with that value to find the next one, and so on. It also finds values that only deleted
// keys have. The scan then finds no rows for such a value, but that costs less than walking past all deleted keys (an
// index can have very many of them) to the next key that exists. If there are more than maxSkips values, the scan
// instead reads all keys in one range, and drops those whose parts after the skipped part do not fulfil the seek.
//
// A read-write transaction locks the whole range in which it looks for values. Otherwise another transaction could
// add a value there, and its rows would be phantoms.
type skipCode struct {
	scan   *keyScan
	seek   *seekCode
	part   int        // the index in seek.parts of the key part whose values are looked up
	among  *rangeCode // the range in which these values must lie; nil if all values are looked up
	values *table.Projection
}

func newSkip(s *keyScan) (*skipCode, error) {
	c := &skipCode{scan: s, seek: &s.seeks[0]}
	c.part = slices.IndexFunc(c.seek.parts, func(p partCode) bool { return p.each })
	c.among = c.seek.parts[c.part].among
	var err error
	c.values, err = table.NewProjection(s.node.Table, s.node.Index, plan.KeyColumns(s.node)[c.part:c.part+1])
	return c, err
}

// errManyValues is returned by finder.find if there are more than maxSkips values. locate then reads all keys in
// one range.
var errManyValues = errors.New("too many values for a skip scan")

// locate sets p to the spans that the scan reads. For that it first looks up the values of the skipped key part.
func (c *skipCode) locate(r *run, p *place) error {
	f := finder{skipCode: c}
	var set table.KeySet
	err := c.seek.add(r, &set, f.find)
	p.rests = nil
	if errors.Is(err, errManyValues) {
		return c.whole(r, p, f.first)
	}
	if err == nil {
		p.spans, err = c.scan.projection.Spans(set)
	}
	return err
}

// finder looks up the values of the skipped key part. A scan makes a new finder each time it is opened.
type finder struct {
	*skipCode
	found int
	first []value.Value // the parts of the first key that was found, up to and including the skipped part
}

// find is an eachValue for the skipped key part i: it looks up in the table the values of the part after prefix,
// and adds the keys with each value to set.
func (f *finder) find(r *run, set *table.KeySet, prefix []value.Value, i int) error {
	var in table.KeySet
	if err := f.seek.addRange(r, &in, prefix, f.among); err != nil {
		return err
	}
	spans, err := f.values.Spans(in)
	if err != nil {
		return err
	}
	read := f.scan.read(r, &place{spans: spans})
	read.Projection, read.Reverse, read.Partial, read.Deleted = f.values, false, false, true
	rows := read.Open(r.ctx, r.view)
	defer rows.Close()
	for {
		ok, err := rows.Next()
		if !ok || err != nil {
			return err
		}
		r.stats.RowsScanned++
		if f.found == maxSkips {
			return errManyValues
		}
		f.found++
		if err := r.check(); err != nil {
			return err
		}
		longer := f.seek.longer(prefix, rows.Values(nil)[0])
		if f.first == nil {
			f.first = slices.Clone(longer)
		}
		if err := f.seek.addParts(r, set, longer, i+1, f.find); err != nil {
			return err
		}
		rows.SkipPrefix(i + 1)
	}
}

// whole sets p to one range with all values of the skipped part, in place of one range for each value. That range does
// not restrict the key parts after the skipped part, so the scan must test them for each row: it drops the keys whose
// bytes after the skipped part lie in none of the spans in p.rests. These bytes do not depend on the parts before them,
// so whole can compute the spans of p.rests from a single key. The parameter first holds the parts of that key, up to
// and including the skipped part.
func (c *skipCode) whole(r *run, p *place, first []value.Value) error {
	var all, one table.KeySet
	err := c.seek.add(r, &all, func(r *run, set *table.KeySet, prefix []value.Value, i int) error {
		return c.seek.addRange(r, set, prefix, c.among)
	})
	if err != nil {
		return err
	}
	if p.spans, err = c.scan.projection.Spans(all); err != nil {
		return err
	}
	if err = c.seek.addParts(r, &one, first, len(first), nil); err != nil {
		return err
	}
	if p.rests, err = c.scan.projection.Spans(one); err != nil {
		return err
	}
	if len(p.rests) == 0 { // a value or bound is NULL, so no key fulfils the seek
		p.spans = nil
		return nil
	}
	p.rests = table.Ranges(p.rests)
	for i := range p.rests {
		s := &p.rests[i]
		s.Start, s.End = c.rest(s.Start), c.rest(s.End)
	}
	return nil
}

// rest returns the bytes after the skipped part of a key. key may also be the bound of a range.
func (c *skipCode) rest(key []byte) []byte {
	return key[c.scan.projection.PrefixLen(key, c.part+1):]
}

// within reports whether the bytes of a key after the skipped part lie in one of the spans in rests, which is
// sorted.
func (c *skipCode) within(key []byte, rests []table.Span) bool {
	rest := c.rest(key)
	i := sort.Search(len(rests), func(i int) bool { return bytes.Compare(rest, rests[i].End) < 0 })
	return i < len(rests) && bytes.Compare(rest, rests[i].Start) >= 0
}
