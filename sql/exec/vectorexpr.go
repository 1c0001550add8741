package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/conversion"
	"github.com/crowfoot-db/crowfoot/sql/fn/library"
	"github.com/crowfoot-db/crowfoot/sql/fn/operators"
	"github.com/crowfoot-db/crowfoot/sql/fn/protobuf"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// vectorEval computes an expression for the rows of b at places (indexes in the columns of b). ok is false if the
// expression fails for a row. The caller then computes the expression row by row, to find the first error.
type vectorEval func(r *run, b *batch, places []int32) (col fn.Column, ok bool)

// vector compiles an expression so that it is computed for many rows at once. It returns nil for expressions that can
// only be computed row by row. Among these are subqueries, lambdas, and functions that choose which arguments they
// compute (except AND and OR). Expressions that make strings, bytes or lists are also computed row by row: otherwise
// their values could refer to memory of the batch, which is valid only as long as the batch. A field of a PROTO may be
// a string, because vectorField copies its values to a vector.
func (c *compiler) vector(e plan.Expr) vectorEval {
	switch e := e.(type) {
	case *plan.Slot:
		i := e.Index
		return func(_ *run, b *batch, _ []int32) (fn.Column, bool) { return b.column(i), true }
	case *tree.Literal:
		one := []value.Value{e.Value}
		return func(*run, *batch, []int32) (fn.Column, bool) { return fn.Column{Values: one}, true }
	case *plan.Parameter:
		i := e.Index
		return func(r *run, _ *batch, _ []int32) (fn.Column, bool) { return fn.Column{Values: r.params[i : i+1]}, true }
	case *plan.Outer:
		i := e.Register
		return func(r *run, _ *batch, _ []int32) (fn.Column, bool) {
			return fn.Column{Values: r.registers[i : i+1]}, true
		}
	case *tree.Call:
		return c.vectorCall(e)
	case *tree.Cast:
		if f, err := conversion.Cast(e.Arg.Type(), e.T, e.Safe); err == nil && e.Format == nil {
			return c.vectorByCalls(f, e.T, c.vectorArgs([]plan.Expr{e.Arg}))
		}
	}
	return nil
}

// vectorArgs compiles arguments of a call. It returns nil if one of them can only be computed row by row.
func (c *compiler) vectorArgs(list []plan.Expr) []vectorEval {
	args := make([]vectorEval, len(list))
	for i, e := range list {
		if args[i] = c.vector(e); args[i] == nil {
			return nil
		}
	}
	return args
}

func (c *compiler) vectorCall(e *tree.Call) vectorEval {
	if len(e.Args) == 0 {
		return nil
	}
	f, err := library.Lookup(e.Func)
	if err != nil || f.Higher != nil {
		return nil
	}
	args := c.vectorArgs(e.Args)
	switch {
	case args == nil:
		return nil
	case e.Func.Name == "$and" && !e.Func.Safe:
		return c.vectorLogical(args, false)
	case e.Func.Name == "$or" && !e.Func.Safe:
		return c.vectorLogical(args, true)
	case e.Func.Name == "$not" && !e.Func.Safe:
		return c.vectorNot(args[0])
	case e.Func.Name == "$is_null" && !e.Func.Safe:
		return c.vectorIsNull(args[0])
	case e.Func.Name == "$in" && !e.Func.Safe:
		if in := c.vectorIn(e, args); in != nil {
			return in
		}
	case e.Func.Name == "$in_array" && hasSet(e):
		return c.vectorInArray(e, args)
	}
	if read := protobuf.FieldOf(e.Func); read != nil {
		return c.vectorField(read, e.Func.Type, args[0])
	}
	if kernel := operators.LookupKernel(e.Func); kernel != nil {
		return c.vectorKernel(kernel, args)
	}
	return c.vectorByCalls(f, e.Func.Type, args)
}

// output reserves a vectorRoom for one expression and returns its number.
func (c *compiler) output() int {
	at := c.prog.outputs
	c.prog.outputs++
	return at
}

// output returns a vectorRoom. The parameter at is its number.
func (r *run) output(at int) *vectorRoom {
	if r.outputs == nil {
		r.outputs = make([]vectorRoom, r.prog.outputs)
	}
	return &r.outputs[at]
}

// vectorRoom holds the memory of one expression in a run. The expression reuses the memory for each batch.
type vectorRoom struct {
	operators.Output
	cols   []fn.Column
	values []value.Value // the results of the expression, indexed by the places of the rows (see batch)
	row    []value.Value // the arguments for one row
	places []int32

	builder *value.VectorBuilder // makes the vector of a PROTO field (see vectorField); nil before the first batch
}

// columns computes the arguments of the expression. ok is false if one of them fails for a row.
func (v *vectorRoom) columns(r *run, b *batch, places []int32, args []vectorEval) (cols []fn.Column, ok bool) {
	if v.cols == nil {
		v.cols = make([]fn.Column, len(args))
	}
	for i, arg := range args {
		if v.cols[i], ok = arg(r, b, places); !ok {
			return nil, false
		}
	}
	return v.cols, true
}

func (c *compiler) vectorKernel(kernel operators.Kernel, args []vectorEval) vectorEval {
	at := c.output()
	return func(r *run, b *batch, places []int32) (fn.Column, bool) {
		out := r.output(at)
		cols, ok := out.columns(r, b, places, args)
		if !ok || !kernel(&out.Output, cols, b.span(), places) {
			return fn.Column{}, false
		}
		return fn.Column{Vector: &out.Vector}, true
	}
}

// vectorField compiles the access to a field of a PROTO. t is the type of the field. The values of the field are copied
// to a new vector.
func (c *compiler) vectorField(read protobuf.FieldReader, t *value.Type, arg vectorEval) vectorEval {
	at := c.output()
	return func(r *run, b *batch, places []int32) (fn.Column, bool) {
		out := r.output(at)
		col, ok := arg(r, b, places)
		if !ok {
			return fn.Column{}, false
		}
		if out.builder == nil {
			out.builder = value.NewVectorBuilder(t)
		}
		out.builder.Reset()
		next := int32(0)
		for _, i := range places {
			for ; next < i; next++ {
				out.builder.AppendNull()
			}
			next++
			message := col.Peek(int(i))
			if message.IsNull() {
				out.builder.AppendNull()
				continue
			}
			v, err := read(message.AsBytes())
			if err != nil || out.builder.AppendValue(v) != nil {
				return fn.Column{}, false
			}
		}
		for ; int(next) < b.span(); next++ {
			out.builder.AppendNull()
		}
		return fn.Column{Vector: out.builder.Vector()}, true
	}
}

// vectorByCalls compiles a function that has no kernel (an implementation for whole columns). It calls the function
// for each row, with values from the columns of the arguments. It returns nil for results other than numbers, BOOL,
// DATE and TIMESTAMP, and for functions that must be computed row by row.
func (c *compiler) vectorByCalls(f *fn.Scalar, t *value.Type, args []vectorEval) vectorEval {
	switch t.Kind {
	case value.Bool, value.Int64, value.Enum, value.Float64, value.Float32, value.Date, value.Timestamp, value.Numeric:
	default:
		return nil
	}
	if args == nil || f.Lazy != nil || f.Higher != nil || f.Volatile {
		return nil
	}
	at := c.output()
	return func(r *run, b *batch, places []int32) (fn.Column, bool) {
		out := r.output(at)
		cols, ok := out.columns(r, b, places, args)
		if !ok {
			return fn.Column{}, false
		}
		out.sizeValues(b.span())
		for _, i := range places {
			out.row = out.row[:0]
			for j := range cols {
				out.row = append(out.row, cols[j].Peek(int(i)))
			}
			var err error
			if out.values[i], err = f.Call(r.fns, out.row); err != nil {
				return fn.Column{}, false
			}
		}
		return fn.Column{Values: out.values, Stride: 1}, true
	}
}

func (v *vectorRoom) sizeValues(span int) {
	if cap(v.values) < span {
		v.values = make([]value.Value, span)
	}
	v.values = v.values[:span]
}

// vectorLogical compiles AND (decisive is false) or OR (decisive is true). It computes an argument only for the
// rows for which no earlier argument equals decisive.
func (c *compiler) vectorLogical(args []vectorEval, decisive bool) vectorEval {
	at := c.output()
	return func(r *run, b *batch, places []int32) (fn.Column, bool) {
		out, span := r.output(at), b.span()
		out.Begin(value.BoolType, nil, span, places)
		bools, rest := out.Bools(span), places
		for _, i := range places {
			bools[i] = !decisive
		}
		for _, arg := range args {
			col, ok := arg(r, b, rest)
			if !ok {
				return fn.Column{}, false
			}
			out.places = out.decide(&col, rest, span, decisive, out.places[:0])
			rest = out.places
		}
		return fn.Column{Vector: &out.Vector}, true
	}
}

// decide applies one argument of AND or OR, whose values are in col, to the result in v. Where the argument equals
// decisive, the result is decisive. Where it is NULL, the result is NULL, unless a later argument is decisive.
// decide returns the places of the rows whose result is not decided yet. It stores them in room, which may share
// memory with places.
func (v *vectorRoom) decide(col *fn.Column, places []int32, span int, decisive bool, room []int32) []int32 {
	bools, nulls := v.Vector.Bools, v.Vector.Nulls
	for _, i := range places {
		null, is := truth(col, int(i))
		switch {
		case null:
			if nulls == nil {
				nulls = v.Nulls(span)
			}
			nulls[i] = true
		case is == decisive:
			bools[i] = decisive
			if nulls != nil {
				nulls[i] = false
			}
			continue
		}
		room = append(room, i)
	}
	return room
}

// truth returns the BOOL at a place of col. Its first result says whether the BOOL is NULL. If not, the second result
// is the value of the BOOL.
func truth(col *fn.Column, place int) (null, is bool) {
	if v := col.Vector; v != nil && v.Bools != nil {
		return v.Nulls != nil && v.Nulls[place], v.Bools[place]
	}
	v := col.Peek(place)
	return v.IsNull(), v.AsBool()
}

func (c *compiler) vectorNot(arg vectorEval) vectorEval {
	at := c.output()
	return func(r *run, b *batch, places []int32) (fn.Column, bool) {
		out, span := r.output(at), b.span()
		col, ok := arg(r, b, places)
		if !ok {
			return fn.Column{}, false
		}
		out.Begin(value.BoolType, nil, span, places)
		bools := out.Bools(span)
		for _, i := range places {
			null, is := truth(&col, int(i))
			if bools[i] = !is; null {
				out.Nulls(span)[i] = true
			}
		}
		return fn.Column{Vector: &out.Vector}, true
	}
}

func (c *compiler) vectorIsNull(arg vectorEval) vectorEval {
	at := c.output()
	return func(r *run, b *batch, places []int32) (fn.Column, bool) {
		out, span := r.output(at), b.span()
		col, ok := arg(r, b, places)
		if !ok {
			return fn.Column{}, false
		}
		out.Begin(value.BoolType, nil, span, places)
		bools := out.Bools(span)
		for _, i := range places {
			bools[i] = col.IsNull(int(i))
		}
		return fn.Column{Vector: &out.Vector}, true
	}
}

// fewEqualities is the greatest number of elements in (a, b, ...) for which x IN (a, b, ...) is computed as
// x = a OR x = b OR ...
const fewEqualities = 8

// vectorIn compiles x IN (a, b, ...) if x is a column and there are at most fewEqualities elements. Otherwise it
// returns nil.
func (c *compiler) vectorIn(e *tree.Call, args []vectorEval) vectorEval {
	if _, ok := e.Args[0].(*plan.Slot); !ok || len(args)-1 > fewEqualities {
		return nil
	}
	var equalities []vectorEval
	for i, other := range e.Args[1:] {
		kernel := operators.LookupKernel(&tree.Function{Name: "$equal", Args: []*value.Type{e.Args[0].Type(), other.Type()}, Type: value.BoolType})
		if kernel == nil {
			return nil
		}
		equalities = append(equalities, c.vectorKernel(kernel, []vectorEval{args[0], args[i+1]}))
	}
	return c.vectorLogical(equalities, true)
}

// condition is a compiled condition on the rows of batches.
type condition struct {
	eval   eval
	vector vectorEval // nil if the condition can only be computed row by row
}

func (c *compiler) condition(e plan.Expr) (*condition, error) {
	if e == nil {
		return nil, nil
	}
	f, err := c.expr(e)
	if err != nil {
		return nil, err
	}
	return &condition{eval: f, vector: c.vector(e)}, nil
}

// chosen holds the places of the rows for which a condition is TRUE. One operator owns it, and reuses its memory
// for each batch.
type chosen struct {
	places []int32
	row    []value.Value
}

// choose returns those of the given places (indexes in the columns of b) whose rows fulfil the condition.
func (o *chosen) choose(r *run, b *batch, places []int32, cond *condition) ([]int32, error) {
	o.places = o.places[:0]
	if cond.vector != nil && !b.isSmall() {
		if col, ok := cond.vector(r, b, places); ok {
			o.appendTrue(&col, places)
			return o.places, nil
		}
	}
	if o.row == nil {
		o.row = make([]value.Value, b.width)
	}
	for _, i := range places {
		ok, err := isTrue(cond.eval, r, b.rowAt(i, o.row))
		if err != nil {
			return nil, err
		}
		if ok {
			o.places = append(o.places, i)
		}
	}
	return o.places, nil
}

// appendTrue appends to o.places those of the given places (indexes in col) at which col is TRUE.
func (o *chosen) appendTrue(col *fn.Column, places []int32) {
	if v := col.Vector; v != nil && v.Bools != nil && v.Nulls == nil {
		if cap(o.places) < len(places) {
			o.places = make([]int32, 0, max(len(places), fullBatch))
		}
		to, n := o.places[:len(places)], 0
		for _, i := range places {
			to[n] = i
			if v.Bools[i] {
				n++
			}
		}
		o.places = to[:n]
		return
	}
	for _, i := range places {
		if null, is := truth(col, int(i)); is && !null {
			o.places = append(o.places, i)
		}
	}
}

// keep drops the rows of b for which the condition is not TRUE.
func (o *chosen) keep(r *run, b *batch, cond *condition) error {
	if cond.vector == nil {
		b.toRows()
	}
	kept, err := o.choose(r, b, b.places(), cond)
	if err == nil {
		b.keepPlaces(kept)
	}
	return err
}

// vectorExpr is a compiled expression. An operator computes it for many rows of a batch at once if it can, else row
// by row.
type vectorExpr struct {
	eval   eval
	vector vectorEval // nil if the expression can only be computed row by row
	simple bool       // the expression is a column of the batch, or the same value for all rows
}

func (c *compiler) vectorExprs(list []plan.Expr) ([]vectorExpr, error) {
	evals, err := c.exprs(list)
	if err != nil {
		return nil, err
	}
	out := make([]vectorExpr, len(list))
	for i, e := range list {
		out[i] = vectorExpr{eval: evals[i], vector: c.vector(e)}
		switch e.(type) {
		case *plan.Slot, *tree.Literal, *plan.Parameter, *plan.Outer:
			out[i].simple = true
		}
	}
	return out, nil
}

// anyByRow reports whether one of the expressions can only be computed row by row. The operator then turns each
// batch into flat rows first.
func anyByRow(list []vectorExpr) bool {
	for i := range list {
		if list[i].vector == nil {
			return true
		}
	}
	return false
}

// vectors computes a list of expressions over batches. One operator owns it.
type vectors struct {
	exprs []vectorExpr
	cols  []fn.Column     // the values of each expression for the last batch, by place; valid as long as the batch
	room  [][]value.Value // memory of the expressions that are computed row by row; nil until the first such expression
	byRow []bool          // which expressions are computed row by row in this batch; nil until the first such expression
	whole []value.Value   // memory for a row of the batch
	some  []int32         // memory for the places of rows without NULL
	// strict says that an expression need not be computed for rows for which an earlier expression is NULL.
	strict bool
}

// compute sets cols to the values of the expressions for the rows of b at places (indexes in the columns of b). It
// stops before the last of these rows if the values are large. done is the number of rows for which it has computed
// the values.
func (v *vectors) compute(r *run, b *batch, places []int32) (done int, err error) {
	byRow, wanted := false, places
	for i := range v.exprs {
		e := &v.exprs[i]
		if e.vector == nil || !e.simple && b.isSmall() {
			v.willByRow(i, b)
			byRow = true
			continue
		}
		ok := false
		if v.cols[i], ok = e.vector(r, b, wanted); !ok {
			return v.allByRow(r, b, places)
		}
		if v.strict && i < len(v.exprs)-1 {
			wanted = v.notNull(&v.cols[i], wanted)
		}
	}
	if !byRow {
		return len(places), nil
	}
	return v.rowByRow(r, b, places)
}

// willByRow records that expression i must be computed row by row for this batch, and prepares the memory for its
// values.
func (v *vectors) willByRow(i int, b *batch) {
	if v.byRow == nil {
		v.byRow = make([]bool, len(v.exprs))
	}
	if v.room == nil {
		v.room = make([][]value.Value, len(v.exprs))
	}
	n := b.span()
	if cap(v.room[i]) < n {
		v.room[i] = make([]value.Value, n)
	}
	v.byRow[i] = true
	v.cols[i] = fn.Column{Values: v.room[i][:n], Stride: 1}
}

// allByRow computes all expressions row by row. compute calls it when an expression fails for a row.
func (v *vectors) allByRow(r *run, b *batch, places []int32) (done int, err error) {
	for i := range v.exprs {
		if !v.exprs[i].simple {
			v.willByRow(i, b)
		} else {
			v.cols[i], _ = v.exprs[i].vector(r, b, places)
		}
	}
	return v.rowByRow(r, b, places)
}

// rowByRow computes the expressions that byRow marks, row by row. It stops early if the values are large. done is
// the number of rows for which it has computed the values.
func (v *vectors) rowByRow(r *run, b *batch, places []int32) (done int, err error) {
	defer clear(v.byRow)
	if v.whole == nil && b.cols != nil {
		v.whole = make([]value.Value, b.width)
	}
	before := r.made.bytes
	for done < len(places) && r.made.bytes-before < computedBytes {
		at := places[done]
		row, null := b.rowAt(at, v.whole), false
		for i := range v.exprs {
			col := &v.cols[i]
			if v.byRow[i] {
				if null {
					col.Values[at] = value.Value{}
				} else if col.Values[at], err = v.exprs[i].eval(r, row); err != nil {
					return done, err
				}
			}
			null = null || v.strict && col.IsNull(int(at))
		}
		done++
	}
	return done, nil
}

// notNull returns those of the given places (indexes in col) at which col is not NULL.
func (v *vectors) notNull(col *fn.Column, places []int32) []int32 {
	some := v.some[:0]
	for _, i := range places {
		if !col.IsNull(int(i)) {
			some = append(some, i)
		}
	}
	v.some = some
	return some
}

// row sets key to the values of the expressions for the row at a place. The values are valid as long as the batch.
func (v *vectors) row(place int32, key []value.Value) {
	for j := range v.cols {
		key[j] = v.cols[j].Peek(int(place))
	}
}
