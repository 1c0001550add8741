package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// subqueryCode is a compiled plan.Subquery.
type subqueryCode struct {
	node   *plan.Subquery
	number int // the index of the subquery's state in run.subqueries
	plan   maker
	in     eval
	elem   *value.Type // the type of the subquery's column; nil for EXISTS
}

// subqueryState is the state of a subquery in a run.
type subqueryState struct {
	op   operator
	done bool // value or set holds the result; only for a constant subquery, which is computed once
	// value is the result of a scalar, array or EXISTS subquery.
	value value.Value
	// set holds the values of an IN subquery other than NULL. hasNull says that NULL is among the values.
	set     *hashTable
	hasNull bool
	held    held
}

func (c *compiler) subquery(e *plan.Subquery) (eval, error) {
	code := &subqueryCode{node: e, number: len(c.prog.subqueries)}
	c.prog.subqueries = append(c.prog.subqueries, code)
	var err error
	if code.plan, err = c.input(e.Plan, e.Kind == tree.ExistsSubquery); err != nil {
		return nil, err
	}
	if code.in, err = c.optional(e.In); err != nil {
		return nil, err
	}
	if e.Kind != tree.ExistsSubquery {
		_, code.elem = plan.Field(e.Plan, 0)
	}
	if e.Kind == tree.InSubquery {
		return code.evalIn, nil
	}
	if e.Kind == tree.ArraySubquery {
		return c.bounded(e.T, code.eval), nil
	}
	return code.eval, nil
}

// start sets the registers of the subquery to columns of the current row, and returns the subquery's state.
func (q *subqueryCode) start(r *run, row []value.Value) *subqueryState {
	s := &r.subqueries[q.number]
	if s.op == nil {
		s.op = q.plan(r)
	}
	for _, b := range q.node.Bind {
		r.registers[b.Register] = row[b.Slot]
	}
	return s
}

func (q *subqueryCode) eval(r *run, row []value.Value) (value.Value, error) {
	if s := &r.subqueries[q.number]; s.done {
		return s.value, nil
	}
	s := q.start(r, row)
	v, err := q.compute(r, s.op)
	if err == nil && q.node.Constant {
		s.done, s.value = true, v
	}
	return v, err
}

// exists reports whether a subquery has a row.
func exists(r *run, op operator) (bool, error) {
	err := op.open(r)
	var b *batch
	if err == nil {
		b, err = r.pullRows(op)
	}
	if e := op.close(); err == nil {
		err = e
	}
	return b != nil, err
}

func (q *subqueryCode) compute(r *run, op operator) (value.Value, error) {
	switch q.node.Kind {
	case tree.ExistsSubquery:
		found, err := exists(r, op)
		return value.OfBool(found), err
	case tree.ArraySubquery:
		elems := []value.Value{}
		var h held // the bytes of elems, until it is returned; then the caller charges the array (see compiler.bounded)
		defer r.memory.release(&h)
		err := drain(r, op, func(row []value.Value) error {
			elems = append(elems, row[0])
			return r.memory.keep(&h, row)
		})
		return value.OfArray(elems), err
	}
	result, n := value.Null(q.node.T.Kind), 0
	err := drain(r, op, func(row []value.Value) error {
		if n++; n > 1 {
			return usererror.ScalarSubqueryRows()
		}
		result = row[0]
		return nil
	})
	return result, err
}

// evalIn computes x IN (subquery). The result is TRUE if x equals a row of the subquery. Otherwise it is NULL if
// the subquery has rows and x or one of the rows is NULL. Otherwise it is FALSE.
func (q *subqueryCode) evalIn(r *run, row []value.Value) (value.Value, error) {
	x, err := q.in(r, row)
	if err != nil {
		return value.Value{}, err
	}
	s := &r.subqueries[q.number]
	if !s.done {
		s = q.start(r, row)
		if err := q.collect(r, s); err != nil {
			return value.Value{}, err
		}
		s.done = q.node.Constant
	}
	switch {
	case s.set.len() == 0 && !s.hasNull:
		return value.OfBool(false), nil
	case x.IsNull():
		return value.Null(value.Bool), nil
	case q.elem.Kind == value.Array || q.elem.Kind == value.Struct:
		return q.searchNested(s, x), nil
	case !equalsNothing(x) && s.set.first([]value.Value{x}) >= 0:
		return value.OfBool(true), nil
	case s.hasNull:
		return value.Null(value.Bool), nil
	}
	return value.OfBool(false), nil
}

// searchNested computes x IN (subquery) if x is an ARRAY or STRUCT. It compares x with each value of the subquery,
// because a NULL within x or within a value can make the comparison NULL.
func (q *subqueryCode) searchNested(s *subqueryState, x value.Value) value.Value {
	unknown := s.hasNull
	for i := range s.set.len() {
		equal, null := value.SQLEqual(x, s.set.key(i)[0], q.elem)
		if null {
			unknown = true
		} else if equal {
			return value.OfBool(true)
		}
	}
	if unknown {
		return value.Null(value.Bool)
	}
	return value.OfBool(false)
}

func (q *subqueryCode) collect(r *run, s *subqueryState) error {
	r.memory.release(&s.held)
	s.set, s.hasNull = newHashTable([]*value.Type{q.elem}), false
	return drain(r, s.op, func(row []value.Value) error {
		if row[0].IsNull() {
			s.hasNull = true
		} else if _, isNew := s.set.find(row[:1]); isNew {
			return r.memory.keepEntry(&s.held, row)
		}
		return nil
	})
}

// spool holds the rows of a named subquery (WITH) during a run.
type spool struct {
	op     operator
	rows   rowList
	filled bool
}

// withOp is a WITH clause. When it is opened, it empties the spools whose rows depend on columns of the enclosing
// row, so that they are computed again.
type withOp struct {
	operator
	dependent []int // numbers of the spools whose rows depend on columns of the enclosing row
}

func (c *compiler) with(n *plan.With) (maker, error) {
	var dependent []int
	for _, d := range n.Defs {
		mk, err := c.whole(d.Plan)
		if err != nil {
			return nil, err
		}
		c.prog.spoolMakers[d.Number] = mk
		c.prog.spoolTypes[d.Number] = plan.Types(d.Plan)
		if !plan.Independent(d.Plan) {
			dependent = append(dependent, d.Number)
		}
	}
	body, err := c.node(n.Body)
	if err != nil {
		return nil, err
	}
	return func(r *run) operator { return &withOp{operator: body(r), dependent: dependent} }, nil
}

func (o *withOp) open(r *run) error {
	for _, i := range o.dependent {
		r.spools[i].filled = false
	}
	return o.operator.open(r)
}

// fill returns a spool, given by its number. If the rows of the spool are not computed yet, fill computes them.
func (r *run) fill(number int) (*spool, error) {
	s := &r.spools[number]
	if s.filled {
		return s, nil
	}
	if s.op == nil {
		s.op = r.prog.spoolMakers[number](r)
		s.rows.types = r.prog.spoolTypes[number]
	}
	s.rows.reset(r)
	err := drain(r, s.op, func(row []value.Value) error { return s.rows.add(r, row) })
	if err == nil {
		err = s.rows.finish()
	}
	s.filled = err == nil
	return s, err
}

// spoolScanOp returns the rows of a spool.
type spoolScanOp struct {
	number int
	rows   rowReader
	out    batch
}

func (c *compiler) spoolScan(n *plan.SpoolScan) maker {
	out := c.batch(n.Width())
	return func(*run) operator { return &spoolScanOp{number: n.Number, out: out} }
}

func (o *spoolScanOp) open(r *run) error {
	s, err := r.fill(o.number)
	if err != nil {
		return err
	}
	o.rows = s.rows.read()
	o.out.reset()
	return nil
}

func (o *spoolScanOp) close() error { return nil }

func (o *spoolScanOp) next(*run) (*batch, error) {
	o.out.begin()
	if err := o.rows.fill(&o.out); err != nil {
		return nil, err
	}
	return o.out.some(), nil
}
