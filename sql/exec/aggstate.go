package exec

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/aggregate"
	"github.com/crowfoot-db/crowfoot/sql/fn/operators"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// aggCode is a compiled call of an aggregate function.
type aggCode struct {
	node      *plan.Agg
	fn        *fn.Aggregate
	args      []eval
	vectors   []vectorExpr  // the arguments, compiled for many rows at once
	types     []*value.Type // the types of args
	where     *condition
	having    eval
	order     *ordering
	limit     eval
	room      int
	skipNulls bool // the aggregate ignores rows whose first argument is NULL
	defers    bool // an error becomes a value of a column of the result instead of ending the statement: see deferredState
}

func (c *compiler) agg(n *plan.Agg) (*aggCode, error) {
	a := &aggCode{node: n, room: c.reserve(len(n.Args))}
	var err error
	if a.fn, err = aggregate.Lookup(n.Func); err != nil {
		return nil, err
	}
	a.skipNulls = n.IgnoreNulls || a.fn.IgnoresNulls && !n.RespectNulls
	if a.vectors, err = c.vectorExprs(n.Args); err != nil {
		return nil, err
	}
	for _, v := range a.vectors {
		a.args = append(a.args, v.eval)
	}
	for _, arg := range n.Args {
		a.types = append(a.types, arg.Type())
	}
	rest, err := c.exprs([]plan.Expr{n.Having, n.Limit})
	if err != nil {
		return nil, err
	}
	a.having, a.limit = rest[0], rest[1]
	if a.where, err = c.condition(n.Where); err != nil {
		return nil, err
	}
	if len(n.OrderBy) > 0 {
		a.order, err = c.ordering(n.OrderBy)
	}
	return a, err
}

// aggState is the state of one aggregate for one group: an intermediate result of the rows that were added, or the rows
// themselves.
type aggState interface {
	add(r *run, row []value.Value) error
	result(r *run) (value.Value, error)
	// release gives back the memory of the rows that the state keeps. The state must not be used afterwards.
	release(r *run)
}

// collector is the state of an aggregate that keeps values of each row (see aggCode.collects). The kept values can
// be moved to disk while rows of the group may still come.
type collector interface {
	aggState
	// move calls f with each kept row, in the order in which the rows were added, and forgets the rows. A kept row
	// consists of the values in row, followed by those in more. aggCode.kept returns their types.
	move(r *run, f func(row []value.Value, more ...value.Value) error) error
	// restore adds back a row that move has passed to f. After the first call of restore, add and move must not be
	// called.
	restore(r *run, row []value.Value) error
}

// collects reports whether the aggregate keeps values of each row, so that the state of a group can become large.
func (a *aggCode) collects() bool {
	return a.fn.Collects || a.node.Distinct || a.order != nil || a.limit != nil
}

// byRow reports whether the aggregate needs its input as flat rows and not as columns (see batch). It does if it keeps
// rows, chooses among them or defers errors, or if one of its expressions is computed row by row.
func (a *aggCode) byRow() bool {
	return a.collects() || a.selective() || a.defers || a.where != nil && a.where.vector == nil || anyByRow(a.vectors)
}

func (a *aggCode) selective() bool {
	return a.node.Distinct || a.having != nil || a.order != nil || a.limit != nil
}

// kept returns the types of the values that a collector keeps of a row: the value of HAVING, the arguments, and the
// keys of ORDER BY.
func (a *aggCode) kept() []*value.Type {
	var types []*value.Type
	if a.having != nil {
		types = append(types, a.node.Having.Type())
	}
	types = append(types, a.types...)
	if a.order != nil {
		types = append(types, a.order.types...)
	}
	return types
}

// start returns a new state for a group. many says that there are many groups at once, whose rows come in any
// order. The state is then a collector if the aggregate collects. If many is false, the rows of a group follow each
// other.
func (a *aggCode) start(many bool) aggState {
	var s aggState
	switch {
	case a.selective():
		s = a.startSelective(!many)
	case many && a.fn.Collects:
		s = &collectingState{plainState: plainState{aggCode: a, state: a.fn.New()}}
	default:
		s = &plainState{aggCode: a, state: a.fn.New()}
	}
	if a.defers {
		s = &deferredState{aggState: s, null: value.Null(a.node.Func.Type.Kind)}
	}
	return s
}

// plainState adds the arguments of each row to the function's state as soon as the row comes.
type plainState struct {
	*aggCode
	state fn.State
	held  held
}

// arguments computes the arguments of the aggregate for a row. ok is false if the aggregate ignores the row,
// because its WHERE is not TRUE or its first argument is a NULL to skip.
func (s *plainState) arguments(r *run, row []value.Value) (args []value.Value, ok bool, err error) {
	if s.where != nil {
		if ok, err := isTrue(s.where.eval, r, row); !ok || err != nil {
			return nil, false, err
		}
	}
	args = r.room[s.room : s.room+len(s.args) : s.room+len(s.args)]
	for i, f := range s.args {
		v, err := f(r, row)
		if err != nil {
			return nil, false, err
		}
		if i == 0 && s.skipNulls && v.IsNull() {
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
	return s.addArgs(r, args)
}

// addArgs adds the arguments of a row to the function's state.
func (s *plainState) addArgs(r *run, args []value.Value) error {
	if s.fn.Collects {
		if err := r.memory.keep(&s.held, args); err != nil {
			return err
		}
	}
	return s.state.Add(args)
}

func (s *plainState) result(*run) (value.Value, error) { return s.state.Result() }

func (s *plainState) release(r *run) { r.memory.release(&s.held) }

// collectingState keeps the arguments of all rows, and adds them to the function's state at the end. It is the
// state of aggregates such as ARRAY_AGG, which keep values of each row.
type collectingState struct {
	plainState
	rows []value.Value // the arguments of the kept rows, one row after the other
}

func (s *collectingState) add(r *run, row []value.Value) error {
	args, ok, err := s.arguments(r, row)
	if !ok || err != nil {
		return err
	}
	s.rows = append(s.rows, args...)
	return r.memory.keep(&s.held, args)
}

func (s *collectingState) result(r *run) (value.Value, error) {
	rows, n := s.rows, len(s.args)
	s.rows = nil
	for ; len(rows) > 0; rows = rows[n:] {
		if err := s.state.Add(rows[:n]); err != nil {
			return value.Value{}, err
		}
	}
	return s.state.Result()
}

func (s *collectingState) move(r *run, f func(row []value.Value, more ...value.Value) error) error {
	for n := len(s.args); len(s.rows) > 0; s.rows = s.rows[n:] {
		if err := f(s.rows[:n]); err != nil {
			return err
		}
	}
	s.rows = nil
	r.memory.release(&s.held)
	return nil
}

func (s *collectingState) restore(r *run, row []value.Value) error { return s.addArgs(r, row) }

// deferredState keeps the first error of an aggregate instead of ending the statement. The statement fails only if
// it uses the aggregate's result: see tree.AggCall.Failure.
type deferredState struct {
	aggState
	null   value.Value // the result if there was an error
	failed bool
	kept   value.Value // the error, as a value
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

// keep stores an error, so that failure returns it. If the error must end the statement at once (operators.PutOff
// returns false for it), keep does not store it but returns it.
func (s *deferredState) keep(err error) error {
	if err == nil {
		return nil
	}
	var ok bool
	if s.kept, ok = operators.PutOff(err); !ok {
		return err
	}
	s.failed = true
	return nil
}

func (s *deferredState) move(r *run, f func(row []value.Value, more ...value.Value) error) error {
	return s.aggState.(collector).move(r, f)
}

func (s *deferredState) restore(r *run, row []value.Value) error {
	if s.failed {
		return nil
	}
	return s.keep(s.aggState.(collector).restore(r, row))
}

// failure returns the stored error as a value, or NULL if there was no error.
func (s *deferredState) failure() value.Value {
	if !s.failed {
		return value.Null(value.Bytes)
	}
	return s.kept
}

// aggStates holds the states of one aggregate for many groups. Groups are numbered from 0.
type aggStates interface {
	// resize begins new groups until there are n groups.
	resize(n int)
	// add adds some rows of b to their groups. places has the indexes of these rows in the columns of b. The row with
	// the index i belongs to the group groups[i].
	add(r *run, b *batch, places, groups []int32) error
	result(r *run, group int) (value.Value, error)
	// failure returns the error that the aggregate has deferred for a group, or NULL if there was none. It may be
	// called only for an aggregate that defers errors (aggCode.defers).
	failure(group int) value.Value
	// keep forgets all groups except the given one, which becomes group 0.
	keep(r *run, group int)
	// clear forgets all groups.
	clear(r *run)
}

// states makes the states of all aggregates. many says that there are many groups at once, whose rows come in any
// order.
func (c *aggregateCode) states(many bool) []aggStates {
	all, byColumn := make([]aggStates, len(c.aggs)), make([]columnStates, len(c.aggs))
	cols := make([]fn.Column, c.args)
	for i, a := range c.aggs {
		n := len(a.args)
		switch {
		case !a.collects() && !a.selective() && !a.defers:
			byColumn[i] = columnStates{aggCode: a, groups: a.fn.NewGroups(), args: vectors{exprs: a.vectors, cols: cols[:n:n], strict: a.skipNulls}}
			all[i], cols = &byColumn[i], cols[n:]
		default:
			all[i] = &rowStates{agg: a, many: many}
		}
	}
	return all
}

// columnStates computes an aggregate from batches as they are: it passes the columns of the arguments to the
// function, and never builds rows.
type columnStates struct {
	*aggCode
	groups  fn.Groups
	args    vectors
	counted chosen // the places of the rows for which the condition where is TRUE
}

func (s *columnStates) resize(n int) { s.groups.Grow(n) }

func (s *columnStates) add(r *run, b *batch, places, groups []int32) error {
	if s.where != nil {
		var err error
		if places, err = s.counted.choose(r, b, places, s.where); err != nil {
			return err
		}
	}
	for len(places) > 0 {
		n, err := s.args.compute(r, b, places)
		if err != nil {
			return err
		}
		if err := s.groups.Add(s.withoutNulls(places[:n]), groups, s.args.cols); err != nil {
			return err
		}
		places = places[n:]
	}
	return nil
}

// withoutNulls returns places without the rows whose first argument is NULL. It returns all places if the call does
// not say IGNORE NULLS, or if the function itself ignores NULL.
func (s *columnStates) withoutNulls(places []int32) []int32 {
	if !s.skipNulls || s.fn.IgnoresNulls {
		return places
	}
	var counted []int32
	for _, i := range places {
		if !s.args.cols[0].IsNull(int(i)) {
			counted = append(counted, i)
		}
	}
	return counted
}

func (s *columnStates) result(_ *run, group int) (value.Value, error) { return s.groups.Result(group) }

func (s *columnStates) failure(int) value.Value { return value.Null(value.Bytes) }

func (s *columnStates) keep(_ *run, group int) { s.groups.Keep(group) }

func (s *columnStates) clear(*run) { s.groups.Clear() }

// rowStates has one aggState for each group and adds rows to it one by one. It serves aggregates that keep values
// of each row, choose among rows, or defer errors.
type rowStates struct {
	agg  *aggCode
	many bool // see aggCode.start
	list []aggState
}

func (s *rowStates) resize(n int) {
	s.list = slices.Grow(s.list, n-len(s.list))
	for len(s.list) < n {
		s.list = append(s.list, s.agg.start(s.many))
	}
}

func (s *rowStates) add(r *run, b *batch, places, groups []int32) error {
	for _, i := range places {
		if err := s.list[groups[i]].add(r, b.row(int(i))); err != nil {
			return err
		}
	}
	return nil
}

func (s *rowStates) result(r *run, group int) (value.Value, error) { return s.list[group].result(r) }

func (s *rowStates) failure(group int) value.Value { return s.list[group].(*deferredState).failure() }

// collector returns the state of a group as a collector. The aggregate must be one that collects.
func (s *rowStates) collector(group int) collector { return s.list[group].(collector) }

func (s *rowStates) keep(r *run, group int) {
	for i, state := range s.list {
		if i != group {
			state.release(r)
		}
	}
	s.list[0] = s.list[group]
	clear(s.list[1:])
	s.list = s.list[:1]
}

func (s *rowStates) clear(r *run) {
	for _, state := range s.list {
		state.release(r)
	}
	clear(s.list)
	s.list = s.list[:0]
}
