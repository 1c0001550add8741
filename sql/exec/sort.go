package exec

import (
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
	// computed tells for each key whether it is computed; see isComputed.
	computed []bool
	types    []*value.Type
	tags     []collation
}

// collation tells how the strings of a key are compared. The zero value compares by code point.
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
		o.evals, o.computed = append(o.evals, f), append(o.computed, isComputed(k.Expr))
		o.types = append(o.types, k.Expr.Type())
		tag, err := collationOf(k.Collation)
		if err != nil {
			return nil, err
		}
		o.tags = append(o.tags, tag)
	}
	return o, nil
}

// collationOf parses the name of a collation, such as 'und:ci'. It is a locale, with ci to ignore case
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

// comparer compares the sort keys of rows. Only one goroutine may use it, since collators have buffers.
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

// append computes the sort keys of a row and appends them to keys.
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

// sortOp sorts its input.
type sortOp struct {
	in     operator
	limit  eval
	sorter sorter
	sorted bool
	out    batch
}

func (c *compiler) sort(n *plan.Sort) (maker, error) {
	if n.Major > 0 {
		return c.minorSort(n)
	}
	in, err := c.whole(n.Input)
	if err != nil {
		return nil, err
	}
	code, err := c.sortCode(n)
	if err != nil {
		return nil, err
	}
	return func(r *run) operator {
		return &sortOp{in: in(r), limit: code.limit, sorter: code.sorter(), out: newBatch(len(code.types))}
	}, nil
}

// sortCode is a compiled Sort without its input.
type sortCode struct {
	order *ordering
	limit eval
	types []*value.Type
}

func (c *compiler) sortCode(n *plan.Sort) (*sortCode, error) {
	order, err := c.ordering(n.Keys)
	if err != nil {
		return nil, err
	}
	limit, err := c.optional(n.Limit)
	if err != nil {
		return nil, err
	}
	return &sortCode{order, limit, plan.Types(n)}, nil
}

func (s *sortCode) sorter() sorter { return newSorter(s.order, s.types) }

func (o *sortOp) open(r *run) error {
	limit, err := optionalLimit(r, o.limit)
	if err != nil {
		return err
	}
	o.sorter.reset(r, limit)
	o.sorted = false
	o.out.reset()
	return nil
}

func (o *sortOp) close() error { return o.in.close() }

func (o *sortOp) next(r *run) (*batch, error) {
	if !o.sorted {
		if err := drain(r, o.in, func(row []value.Value) error { return o.sorter.addBy(r, row) }); err != nil {
			return nil, err
		}
		if err := o.sorter.finish(r); err != nil {
			return nil, err
		}
		o.sorted = true
	}
	o.out.begin()
	if err := o.out.fill(o.sorter.nextRow); err != nil {
		return nil, err
	}
	return o.out.some(), nil
}
