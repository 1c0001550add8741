package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// aggCode is a compiled aggregate call.
type aggCode struct {
	node      *plan.Agg
	fn        *fn.Aggregate
	args      []eval
	types     []*value.Type // of args
	where     eval
	having    eval
	order     *ordering
	limit     eval
	room      int
	skipNulls bool // rows with a NULL argument do not count
	defers    bool // an error becomes a value of a column: see deferredState
}

func (c *compiler) agg(n *plan.Agg) (*aggCode, error) {
	a := &aggCode{node: n, room: c.reserve(len(n.Args))}
	var err error
	if a.fn, err = fn.LookupAggregate(n.Func); err != nil {
		return nil, err
	}
	a.skipNulls = n.IgnoreNulls || a.fn.IgnoresNulls && !n.RespectNulls
	if a.args, err = c.exprs(n.Args); err != nil {
		return nil, err
	}
	for _, arg := range n.Args {
		a.types = append(a.types, arg.Type())
	}
	rest, err := c.exprs([]plan.Expr{n.Where, n.Having, n.Limit})
	if err != nil {
		return nil, err
	}
	a.where, a.having, a.limit = rest[0], rest[1], rest[2]
	if len(n.OrderBy) > 0 {
		a.order, err = c.ordering(n.OrderBy)
	}
	return a, err
}

// aggState is an aggregate over the rows of one group so far.
type aggState interface {
	add(r *run, row []value.Value) error
	result(r *run) (value.Value, error)
}

// start begins an aggregate. What it collects counts as memory of h.
func (a *aggCode) start(h *held) aggState {
	if a.defers {
		return &deferredState{aggState: a.begin(h), null: value.Null(a.node.Func.Type.Kind)}
	}
	return a.begin(h)
}

func (a *aggCode) begin(h *held) aggState {
	plain := plainState{aggCode: a, state: a.fn.New(), held: h}
	if !a.node.Distinct && a.having == nil && a.order == nil && a.limit == nil {
		return &plain
	}
	s := &selectiveState{plainState: plain}
	if a.node.Distinct {
		s.distinct = newHashTable(a.types)
	}
	if a.order != nil || a.limit != nil {
		order := a.order
		if order == nil {
			order = &ordering{}
		}
		s.rows = &sorter{comparer: order.comparer(), width: len(a.args), limit: -1}
	}
	return s
}

// plainState adds every row that counts.
type plainState struct {
	*aggCode
	state fn.State
	held  *held
}

// arguments computes the arguments for a row; ok is false if the row does not count.
func (s *plainState) arguments(r *run, row []value.Value) (args []value.Value, ok bool, err error) {
	if s.where != nil {
		if ok, err := isTrue(s.where, r, row); !ok || err != nil {
			return nil, false, err
		}
	}
	args = r.room[s.room : s.room+len(s.args) : s.room+len(s.args)]
	for i, f := range s.args {
		v, err := f(r, row)
		if err != nil {
			return nil, false, err
		}
		if s.skipNulls && v.IsNull() {
			return nil, false, nil
		}
		args[i] = v
	}
	return args, true, nil
}

func (s *plainState) add(r *run, row []value.Value) error {
	args, ok, err := s.arguments(r, row)
	if !ok || err != nil {
		return err
	}
	if s.fn.Collects {
		if err := r.memory.keep(s.held, args); err != nil {
			return err
		}
	}
	return s.state.Add(args)
}

func (s *plainState) result(*run) (value.Value, error) { return s.state.Result() }

// selectiveState is an aggregate with DISTINCT, HAVING MAX or MIN, ORDER BY or LIMIT.
type selectiveState struct {
	plainState
	distinct *hashTable
	rows     *sorter // the arguments of all rows, to be sorted at the end; nil without ORDER BY and LIMIT
	extreme  value.Value
	begun    bool // extreme is set
	none     bool // the extreme is NaN
}

func (s *selectiveState) add(r *run, row []value.Value) error {
	if s.having != nil {
		ok, err := s.atExtreme(r, row)
		if !ok || err != nil {
			return err
		}
	}
	args, ok, err := s.arguments(r, row)
	if !ok || err != nil {
		return err
	}
	if s.distinct != nil {
		if _, isNew := s.distinct.find(args); !isNew {
			return nil
		}
	}
	if s.distinct != nil || s.fn.Collects {
		if err := r.memory.keep(s.held, args); err != nil {
			return err
		}
	}
	if s.rows == nil {
		return s.state.Add(args)
	}
	return s.rows.addBy(r, args, row)
}

// atExtreme says whether a row has the extreme value of HAVING so far; a new extreme begins the group anew.
func (s *selectiveState) atExtreme(r *run, row []value.Value) (bool, error) {
	v, err := s.having(r, row)
	if err != nil || v.IsNull() {
		return false, err
	}
	t := s.node.Having.Type()
	if equalsNothing(v) { // NaN is the greatest and the least, and no row has it
		s.begun, s.none = true, true
		s.restart(r)
	}
	if s.none {
		return false, nil
	}
	if s.begun {
		c := value.Compare(v, s.extreme, t)
		if !s.node.HavingMax {
			c = -c
		}
		if c <= 0 {
			return c == 0, nil
		}
	}
	s.begun, s.extreme = true, v
	s.restart(r)
	return true, nil
}

// restart drops the rows so far, when a new extreme is found.
func (s *selectiveState) restart(r *run) {
	s.state = s.fn.New()
	if s.distinct != nil {
		s.distinct.clear()
	}
	if s.rows != nil {
		s.rows.reset(r, -1)
	}
}

func (s *selectiveState) result(r *run) (value.Value, error) {
	if s.rows == nil {
		return s.state.Result()
	}
	limit := int64(-1)
	if s.limit != nil {
		var err error
		if limit, err = rowLimit(r, s.limit, "LIMIT"); err != nil {
			return value.Value{}, err
		}
	}
	s.rows.sort()
	for i := range s.rows.order {
		if limit >= 0 && int64(i) >= limit {
			break
		}
		if err := s.state.Add(s.rows.row(i)); err != nil {
			return value.Value{}, err
		}
	}
	return s.state.Result()
}

// deferredState is an aggregate that keeps its first error instead of ending the statement. The error is raised if the statement uses the result:
// see tree.AggCall.Failure.
type deferredState struct {
	aggState
	null   value.Value // the result if there was an error
	failed bool
	kept   value.Value // the error
}

func (s *deferredState) add(r *run, row []value.Value) error {
	if s.failed {
		return nil
	}
	return s.keep(s.aggState.add(r, row))
}

func (s *deferredState) result(r *run) (value.Value, error) {
	if !s.failed {
		v, err := s.aggState.result(r)
		if err == nil {
			return v, nil
		}
		if err := s.keep(err); err != nil {
			return v, err
		}
	}
	return s.null, nil
}

// keep keeps an error. It returns an error that must end the statement at once.
func (s *deferredState) keep(err error) error {
	if err == nil {
		return nil
	}
	var ok bool
	if s.kept, ok = fn.PutOff(err); !ok {
		return err
	}
	s.failed = true
	return nil
}

// failure is the error that was kept, as a value; NULL if there was none.
func (s *deferredState) failure() value.Value {
	if !s.failed {
		return value.Null(value.Bytes)
	}
	return s.kept
}
