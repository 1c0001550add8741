package exec

import (
	"slices"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"

	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// ordering is a compiled ORDER BY.
type ordering struct {
	keys  []plan.SortKey
	evals []eval
	types []*value.Type
	tags  []collation
}

// collation is how strings of a key compare. The zero value compares by code point.
type collation struct {
	tag     language.Tag
	options []collate.Option
	set     bool
}

func (c *compiler) ordering(keys []plan.SortKey) (*ordering, error) {
	o := &ordering{keys: keys}
	for _, k := range keys {
		f, err := c.expr(k.Expr)
		if err != nil {
			return nil, err
		}
		o.evals = append(o.evals, f)
		o.types = append(o.types, k.Expr.Type())
		tag, err := collationOf(k.Collation)
		if err != nil {
			return nil, err
		}
		o.tags = append(o.tags, tag)
	}
	return o, nil
}

// collationOf reads 'und:ci' and the like: a locale, and ci to ignore case
// (https://cloud.google.com/spanner/docs/reference/standard-sql/collation-concepts).
func collationOf(name string) (collation, error) {
	if name == "" || name == "binary" || name == "unicode" {
		return collation{}, nil
	}
	locale, attribute := name, ""
	for i := range name {
		if name[i] == ':' {
			locale, attribute = name[:i], name[i+1:]
			break
		}
	}
	if locale == "unicode" {
		locale = "und"
	}
	tag, err := language.Parse(locale)
	if err != nil || attribute != "" && attribute != "ci" && attribute != "cs" {
		return collation{}, usererror.InvalidCollation(name)
	}
	c := collation{tag: tag, set: true}
	if attribute == "ci" {
		c.options = append(c.options, collate.IgnoreCase)
	}
	return c, nil
}

// comparer compares rows of sort keys. It serves one goroutine: collators have buffers.
type comparer struct {
	*ordering
	collators []*collate.Collator
}

func (o *ordering) comparer() *comparer {
	c := &comparer{ordering: o, collators: make([]*collate.Collator, len(o.keys))}
	for i, t := range o.tags {
		if t.set {
			c.collators[i] = collate.New(t.tag, t.options...)
		}
	}
	return c
}

func (c *comparer) compare(a, b []value.Value) int {
	for i := range c.keys {
		if d := c.compareKey(i, a[i], b[i]); d != 0 {
			return d
		}
	}
	return 0
}

func (c *comparer) compareKey(i int, a, b value.Value) int {
	k := &c.keys[i]
	if a.IsNull() || b.IsNull() {
		switch {
		case a.IsNull() && b.IsNull():
			return 0
		case a.IsNull() == k.NullsFirst:
			return -1
		}
		return 1
	}
	var d int
	if col := c.collators[i]; col != nil {
		d = col.CompareString(a.AsString(), b.AsString())
	} else {
		d = value.Compare(a, b, c.types[i])
	}
	if k.Desc {
		return -d
	}
	return d
}

// append computes the keys of a row.
func (o *ordering) append(r *run, keys, row []value.Value) ([]value.Value, error) {
	for _, f := range o.evals {
		v, err := f(r, row)
		if err != nil {
			return keys, err
		}
		keys = append(keys, v)
	}
	return keys, nil
}

// sorter holds rows and their sort keys, flat, and sorts them. Rows that compare equal keep their order.
type sorter struct {
	*comparer
	width      int
	rows, keys []value.Value
	order      []int32
	limit      int64 // how many rows are wanted, -1 for all
	held       held
}

func (s *sorter) reset(r *run, limit int64) {
	r.memory.release(&s.held)
	s.rows, s.keys, s.order, s.limit = nil, nil, nil, limit
}

func (s *sorter) add(r *run, row []value.Value) error { return s.addBy(r, row, row) }

// addBy adds the row stored, which is sorted by keys that are computed from row.
func (s *sorter) addBy(r *run, stored, row []value.Value) error {
	var err error
	if s.keys, err = s.append(r, s.keys, row); err != nil {
		return err
	}
	s.rows = append(s.rows, stored...)
	s.order = append(s.order, int32(len(s.order)))
	if err := r.memory.keep(&s.held, stored); err != nil {
		return err
	}
	if s.limit >= 0 && int64(len(s.order)) >= 2*s.limit+fullBatch {
		s.sort()
		r.memory.shrink(&s.held, float64(s.limit)/float64(len(s.order)))
		s.cut()
	}
	return nil
}

func (s *sorter) row(i int) []value.Value {
	at := int(s.order[i]) * s.width
	return s.rows[at : at+s.width]
}

func (s *sorter) sort() {
	n := len(s.comparer.keys)
	slices.SortStableFunc(s.order, func(i, j int32) int {
		a, b := int(i)*n, int(j)*n
		return s.compare(s.keys[a:a+n], s.keys[b:b+n])
	})
}

// cut keeps the first limit rows in order, and drops the others.
func (s *sorter) cut() {
	if s.limit < 0 || int64(len(s.order)) <= s.limit {
		return
	}
	n := len(s.comparer.keys)
	var rows, keys []value.Value
	for i := range int(s.limit) {
		rows = append(rows, s.row(i)...)
		at := int(s.order[i]) * n
		keys = append(keys, s.keys[at:at+n]...)
	}
	s.rows, s.keys, s.order = rows, keys, s.order[:s.limit]
	for i := range s.order {
		s.order[i] = int32(i)
	}
}

// sortOp sorts its input.
type sortOp struct {
	in     operator
	limit  eval
	sorter sorter
	at     int
	sorted bool
	out    batch
}

func (c *compiler) sort(n *plan.Sort) (maker, error) {
	in, err := c.whole(n.Input)
	if err != nil {
		return nil, err
	}
	order, err := c.ordering(n.Keys)
	if err != nil {
		return nil, err
	}
	limit, err := c.optional(n.Limit)
	if err != nil {
		return nil, err
	}
	width := n.Width()
	return func(r *run) operator {
		return &sortOp{in: in(r), limit: limit, sorter: sorter{comparer: order.comparer(), width: width}, out: newBatch(width)}
	}, nil
}

func (o *sortOp) open(r *run) error {
	limit := int64(-1)
	if o.limit != nil {
		var err error
		if limit, err = rowLimit(r, o.limit, "LIMIT"); err != nil {
			return err
		}
	}
	o.sorter.reset(r, limit)
	o.at, o.sorted = 0, false
	o.out.reset()
	return nil
}

func (o *sortOp) close() error { return o.in.close() }

func (o *sortOp) next(r *run) (*batch, error) {
	if !o.sorted {
		if err := drain(r, o.in, func(row []value.Value) error { return o.sorter.add(r, row) }); err != nil {
			return nil, err
		}
		o.sorter.sort()
		o.sorter.cut()
		o.sorted = true
	}
	o.out.begin()
	for ; o.at < len(o.sorter.order) && !o.out.full(); o.at++ {
		o.out.add(o.sorter.row(o.at), nil)
	}
	return o.out.some(), nil
}
