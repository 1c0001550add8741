package exec

import (
	"bytes"
	"errors"
	"slices"
	"sort"

	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// maxSkips is the most values that a skip scan looks for. Each value takes one seek, which costs as much as reading about ten rows in a sequence.
// maxSkips seeks take a few milliseconds. That is cheap beside reading an index that has more values.
const maxSkips = 1000

// skipCode finds the values of one key part for a skip scan (plan.SeekPart.Each). It seeks the first value, then past all keys that begin with it
// to the next value, and so on. It may find a value whose keys were all deleted. The seek for that value then reads nothing, which costs less than
// walking past the deleted keys, of which a pruned index has many. If there are more than maxSkips values, the scan reads all keys in one range and
// drops those whose further parts the seek does not want.
//
// A read-write transaction locks the whole range in which it looks for values. Otherwise a value that another transaction adds would be a phantom.
type skipCode struct {
	scan   *keyScan
	seek   *seekCode
	part   int // the index of the key part
	values *table.Projection
}

func newSkip(s *keyScan) (*skipCode, error) {
	c := &skipCode{scan: s, seek: &s.seeks[0]}
	c.part = slices.IndexFunc(c.seek.parts, func(p partCode) bool { return p.each })
	var err error
	c.values, err = table.NewProjection(s.node.Table, s.node.Index, plan.KeyColumns(s.node)[c.part:c.part+1])
	return c, err
}

// errManyValues tells locate that there are more than maxSkips values.
var errManyValues = errors.New("too many values for a skip scan")

// locate computes the place that the scan reads.
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

// finder finds the values for one opening of a scan.
type finder struct {
	*skipCode
	found int
	first []value.Value // the parts of the first key that was found, up to and with the skipped part
}

// find is an eachValue: it seeks the values of part i and adds their keys.
func (f *finder) find(r *run, set *table.KeySet, prefix []value.Value, i int) error {
	var in table.KeySet
	if err := f.seek.addRange(r, &in, prefix, f.among()); err != nil {
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
		if err := f.count(r); err != nil {
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

func (c *skipCode) among() *rangeCode { return c.seek.parts[c.part].among }

func (f *finder) count(r *run) error {
	r.stats.RowsScanned++
	if f.found == maxSkips {
		return errManyValues
	}
	f.found++
	return r.check()
}

// whole sets p to all keys, with any values of the first parts. p.rests are the spans in which the rest of a key must lie. The rest does not depend
// on the first parts, so whole computes it from one key, first.
func (c *skipCode) whole(r *run, p *place, first []value.Value) error {
	var all, one table.KeySet
	err := c.seek.add(r, &all, func(r *run, set *table.KeySet, prefix []value.Value, i int) error {
		return c.seek.addRange(r, set, prefix, c.among())
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
	if len(p.rests) == 0 { // a bound is NULL
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

// rest returns the bytes after the skipped part, of a key or of the bound of a range.
func (c *skipCode) rest(key []byte) []byte {
	return key[c.scan.projection.PrefixLen(key, c.part+1):]
}

// within reports whether the rest of a key lies in one of the spans rests.
func (c *skipCode) within(key []byte, rests []table.Span) bool {
	rest := c.rest(key)
	i := sort.Search(len(rests), func(i int) bool { return bytes.Compare(rest, rests[i].End) < 0 })
	return i < len(rests) && bytes.Compare(rest, rests[i].Start) >= 0
}
