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

// vectorEval computes an expression for the rows of b at places. ok is false if the expression fails for a row. The caller then computes it row by
// row, which finds the first error.
type vectorEval func(r *run, b *batch, places []int32) (col fn.Column, ok bool)

// vector compiles an expression so that it is computed for many rows at once. It returns nil for expressions that can only be computed row by row.
// These are subqueries, lambdas, and functions that choose which arguments they compute. Expressions that make texts or lists are among them too,
// because their values must not refer to memory of the batch. Text fields of a PROTO are an exception: they are copied to a vector.
func (c *compiler) vector(e plan.Expr) vectorEval {
	switch e := e.(type) {
	case *plan.Slot:
		i := e.Index
		return func(_ *run, b *batch, _ []int32) (fn.Column, bool) { return b.column(i), true }
	case *plan.Const:
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
	case *plan.Call:
		return c.vectorCall(e)
	case *plan.Cast:
		if f, err := conversion.Cast(e.Arg.Type(), e.T, e.Safe); err == nil && e.Format == nil {
			return c.vectorByCalls(f, e.T, c.vectorArgs([]plan.Expr{e.Arg}))
		}
	}
	return nil
}

// vectorArgs compiles arguments. It returns nil if one of them can only be computed row by row.
func (c *compiler) vectorArgs(list []plan.Expr) []vectorEval {
	args := make([]vectorEval, len(list))
	for i, e := range list {
		if e == nil {
			return nil
		}
		if args[i] = c.vector(e); args[i] == nil {
			return nil
		}
	}
	return args
}

func (c *compiler) vectorCall(e *plan.Call) vectorEval {
	if len(e.Lambdas) > 0 || len(e.Args) == 0 {
		return nil
	}
	f, err := library.Lookup(e.Func)
	if err != nil {
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

// output returns the vectorRoom with this number.
func (r *run) output(at int) *vectorRoom {
	if r.outputs == nil {
		r.outputs = make([]vectorRoom, r.prog.outputs)
	}
	return &r.outputs[at]
}

// vectorRoom is the memory of one expression in a run. It is used again for each batch.
type vectorRoom struct {
	operators.Output
	cols   []fn.Column
	values []value.Value // by place
	row    []value.Value // the arguments for one row
	places []int32

	builder *value.VectorBuilder // nil before the first batch
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

// vectorField compiles the access to a field of a PROTO. The values of the field are copied to a vector of their own.
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

// vectorByCalls compiles a function that has no kernel. It calls the function for each row, with values from the columns of the arguments.
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

// vectorLogical compiles AND or OR. An argument is computed only for the rows for which no argument before it equals decisive.
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

// decide applies one argument of AND or OR to the result. It sets the rows for which the argument equals decisive, and makes the rows NULL for
// which it is NULL. It returns the places of all rows that are not decided. It stores them in room, which may be the memory of places.
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

// truth returns the BOOL at a place of col.
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

// fewEqualities is the most elements for which x IN (...) is computed as x = one OR x = another.
const fewEqualities = 8

// vectorIn compiles IN for a column and a few elements. It returns nil for others.
func (c *compiler) vectorIn(e *plan.Call, args []vectorEval) vectorEval {
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
	vector vectorEval // nil if it is computed row by row only
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

// chosen holds the places of the rows for which a condition is TRUE. It belongs to one operator, which uses its memory for each batch.
type chosen struct {
	places []int32
	row    []value.Value
}

// choose returns the places, among the given ones, whose rows of b fulfil the condition.
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

// appendTrue appends to o.places the places, among the given ones, at which col is TRUE.
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
