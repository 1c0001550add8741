package plan

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Proto returns the plan in the form that clients and their tools draw, with the operators of Cloud Spanner
// (https://cloud.google.com/spanner/docs/query-execution-operators). The function stats returns the execution_stats of
// an operator; stats can be nil. literals holds the values of the parameters that are written as constants, by name.
//
// Proto puts a Distributed Union above each part of the plan that could run on the servers that store the rows of its
// driving scan. Below it stands a second Distributed Union, the local one, which runs on each of these servers. The
// local union and the Serialize Result, which computes the result's columns, are at the same positions as in Spanner's
// plans.
func (p *Plan) Proto(stats func(Node) *structpb.Struct, literals map[string]value.Value) *spannerpb.QueryPlan {
	w := &protoWriter{stats: stats, literals: literals}
	if m, ok := p.Root.(*DML); ok {
		w.dml(m)
	} else {
		w.top(p.Root, w.results(p))
	}
	return &spannerpb.QueryPlan{PlanNodes: w.nodes}
}

// protoWriter makes the list of nodes, each node before the nodes below it. Its methods add a node with all nodes
// below it, and return that node.
type protoWriter struct {
	nodes    []*spannerpb.PlanNode
	stats    func(Node) *structpb.Struct
	literals map[string]value.Value
	vars     int
}

// meta holds the metadata of a node. All values are strings.
type meta map[string]string

func (w *protoWriter) add(name string, m meta) *spannerpb.PlanNode {
	n := &spannerpb.PlanNode{Index: int32(len(w.nodes)), Kind: spannerpb.PlanNode_RELATIONAL, DisplayName: name}
	if len(m) > 0 {
		n.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{}}
		for k, v := range m {
			n.Metadata.Fields[k] = structpb.NewStringValue(v)
		}
	}
	w.nodes = append(w.nodes, n)
	return n
}

// measured adds the node of an operator together with the operator's execution statistics.
func (w *protoWriter) measured(op Node, name string, m meta) *spannerpb.PlanNode {
	n := w.add(name, m)
	if w.stats != nil {
		n.ExecutionStats = w.stats(op)
	}
	return n
}

func link(from, to *spannerpb.PlanNode, kind, variable string) {
	from.ChildLinks = append(from.ChildLinks, &spannerpb.PlanNode_ChildLink{ChildIndex: to.Index, Type: kind, Variable: variable})
}

// scalar adds a node for the expression e, with the subqueries in e below it. The first parameter is the parent of the
// new node; kind and variable are the type and the variable of the link to the new node. If e is nil, scalar does
// nothing.
func (w *protoWriter) scalar(from *spannerpb.PlanNode, e Expr, kind, variable string) {
	if e == nil {
		return
	}
	d := describer{literals: w.literals}
	n := w.add(scalarName(d.known(e)), nil)
	n.Kind = spannerpb.PlanNode_SCALAR
	n.ShortRepresentation = &spannerpb.PlanNode_ShortRepresentation{Description: d.expr(e)}
	link(from, n, kind, variable)
	for i, q := range d.subqueries {
		name := "Scalar Subquery"
		if q.Kind == tree.ArraySubquery {
			name = "Array Subquery"
		}
		sub := w.add(name, nil)
		sub.Kind = spannerpb.PlanNode_SCALAR
		variable := "sv_" + strconv.Itoa(i+1)
		sub.ShortRepresentation = &spannerpb.PlanNode_ShortRepresentation{Description: "$" + variable}
		link(n, sub, "Scalar", variable)
		link(sub, w.global(q.Plan), "", "")
		if n.ShortRepresentation.Subqueries == nil {
			n.ShortRepresentation.Subqueries = map[string]int32{}
		}
		n.ShortRepresentation.Subqueries[variable] = sub.ChildLinks[0].ChildIndex
	}
}

func scalarName(e Expr) string {
	switch e := e.(type) {
	case *Slot, *Outer:
		return "Reference"
	case *tree.Literal:
		return "Constant"
	case *Parameter:
		return "Parameter"
	case *tree.GetField, *tree.GetJSONField:
		return "Field Access"
	case *tree.MakeStruct:
		return "Struct Constructor"
	case *tree.Call:
		if e.Func.Name == "$make_array" {
			return "Array Constructor"
		}
	}
	return "Function"
}

// output holds the columns of the result, which Serialize Result computes.
type output struct {
	op    Node // the Compute that makes the columns, or nil
	exprs []Expr
	names []string
}

// results returns the columns of a query's result. If the root of the plan is a Compute, they are its expressions. If
// the root is another operator, they are the columns of its rows.
func (w *protoWriter) results(p *Plan) output {
	if c, ok := p.Root.(*Compute); ok {
		return output{op: c, exprs: c.Exprs, names: c.Names}
	}
	var out output
	for i := range p.Root.Width() {
		name, t := Field(p.Root, i)
		out.exprs = append(out.exprs, &Slot{T: t, Index: i, Name: name})
		out.names = append(out.names, name)
	}
	return out
}

// top adds the whole plan of a query.
func (w *protoWriter) top(root Node, out output) *spannerpb.PlanNode {
	body := root
	if c, ok := root.(*Compute); ok {
		body = c.Input
	}
	if a, ok := body.(*Apply); ok && !isLocal(a) && isLocal(a.Left) {
		return w.distributed(driving(a), func() *spannerpb.PlanNode { return w.distributedApply(a, &out) })
	}
	if isLocal(body) {
		return w.union(body, func() *spannerpb.PlanNode { return w.serialize(out, func() *spannerpb.PlanNode { return w.raw(body) }) })
	}
	return w.serialize(out, func() *spannerpb.PlanNode { return w.global(body) })
}

func (w *protoWriter) serialize(out output, input func() *spannerpb.PlanNode) *spannerpb.PlanNode {
	n := w.add("Serialize Result", nil)
	if out.op != nil && w.stats != nil {
		n.ExecutionStats = w.stats(out.op)
	}
	link(n, input(), "", "")
	for i, e := range out.exprs {
		w.scalar(n, e, "", out.names[i])
	}
	return n
}

// isLocal reports whether a plan can run on the servers that store the rows of its driving scan.
func isLocal(n Node) bool {
	s := driving(n)
	if s == nil || s.Table.Rows != nil {
		return false
	}
	ok := true
	Walk(n, func(in Node) {
		switch in := in.(type) {
		case *Apply:
			ok = ok && !in.BackJoin && local(in)
		case *Scan, *Filter, *Compute, *Unnest:
		default:
			ok = false
		}
	})
	for _, e := range n.exprs() {
		ok = ok && !readsTables(e)
	}
	return ok
}

// distributed adds a Distributed Union above a part of the plan that the scan s drives. The function input adds that
// part of the plan.
func (w *protoWriter) distributed(s *Scan, input func() *spannerpb.PlanNode) *spannerpb.PlanNode {
	m := meta{"distribution_table": s.target()}
	if s.Ordered {
		m["preserve_subquery_order"] = "true"
	}
	n := w.add("Distributed Union", m)
	in := input()
	n.Metadata.Fields["subquery_cluster_node"] = structpb.NewStringValue(strconv.Itoa(int(in.Index)))
	link(n, in, "", "")
	split := s.seekCondition()
	if split == nil {
		split = &tree.Literal{T: boolType, Value: trueValue}
	}
	w.scalar(n, split, "Split Range", "")
	return n
}

// localUnion adds the local half of a Distributed Union, which runs on each server. The function input adds the plan
// below it.
func (w *protoWriter) localUnion(input func() *spannerpb.PlanNode) *spannerpb.PlanNode {
	n := w.add("Distributed Union", meta{"call_type": "Local"})
	in := input()
	n.Metadata.Fields["subquery_cluster_node"] = structpb.NewStringValue(strconv.Itoa(int(in.Index)))
	link(n, in, "", "")
	return n
}

// union adds both halves of a Distributed Union (global and local) above body, which is a local plan (see isLocal).
func (w *protoWriter) union(body Node, input func() *spannerpb.PlanNode) *spannerpb.PlanNode {
	return w.distributed(driving(body), func() *spannerpb.PlanNode { return w.localUnion(input) })
}

func (n *Scan) target() string {
	if n.Index != nil {
		return n.Index.FullName()
	}
	return n.Table.FullName()
}

// global adds an operator that runs on the server that received the query, together with the operators below it.
func (w *protoWriter) global(n Node) *spannerpb.PlanNode {
	if isLocal(n) {
		return w.union(n, func() *spannerpb.PlanNode { return w.raw(n) })
	}
	switch op := n.(type) {
	case *Apply:
		if s := driving(op.Left); s != nil && isLocal(op.Left) {
			return w.distributed(s, func() *spannerpb.PlanNode { return w.distributedApply(op, nil) })
		}
	case *Aggregate, *Sort, *Limit:
		if in := n.inputs()[0]; isLocal(in) {
			return w.twice(n, in)
		}
	}
	return w.operator(n, "", func(in Node) *spannerpb.PlanNode { return w.global(in) })
}

// twice adds the operator n as two operators: the first runs on each server, and the second runs over the results of
// all servers. The parameter in is the input of n, a local plan (see isLocal). A sort without a limit is added only
// once, over the rows of all servers, because a sort on each server would drop no rows.
func (w *protoWriter) twice(n, in Node) *spannerpb.PlanNode {
	if s, ok := n.(*Sort); ok && s.Limit == nil {
		return w.operator(n, "", func(in Node) *spannerpb.PlanNode { return w.global(in) })
	}
	return w.operator(n, "Global", func(Node) *spannerpb.PlanNode {
		return w.distributed(driving(in), func() *spannerpb.PlanNode {
			stats := w.stats
			w.stats = nil // only the global half shows the operator's statistics
			half := w.operator(n, "Local", func(Node) *spannerpb.PlanNode {
				w.stats = stats
				return w.localUnion(func() *spannerpb.PlanNode { return w.raw(in) })
			})
			w.stats = stats
			return half
		})
	})
}

var applyNames = map[JoinKind]string{InnerJoin: "Cross Apply", LeftJoin: "Outer Apply", SemiJoin: "Semi Apply", AntiJoin: "Anti-Semi Apply"}

// distributedApply adds a join whose right side may be stored on other servers: rows of the left side are sent to
// those servers in batches. If out is not nil, those servers also serialize the result.
func (w *protoWriter) distributedApply(a *Apply, out *output) *spannerpb.PlanNode {
	name := strings.Replace(applyNames[a.Kind], "-", " ", 1)
	n := w.measured(a, "Distributed "+name, meta{})
	n.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{}}
	w.vars++
	batch := "v" + strconv.Itoa(w.vars)
	create := w.add("Create Batch", nil)
	link(n, create, "", batch)
	link(create, w.localUnion(func() *spannerpb.PlanNode {
		s := w.add("Compute Struct", nil)
		link(s, w.raw(a.Left), "", "")
		return s
	}), "", "")
	inner := func() *spannerpb.PlanNode { return w.batchApply(a, batch) }
	var mapped *spannerpb.PlanNode
	if out != nil {
		mapped = w.serialize(*out, inner)
	} else {
		mapped = inner()
	}
	n.Metadata.Fields["subquery_cluster_node"] = structpb.NewStringValue(strconv.Itoa(int(mapped.Index)))
	link(n, mapped, "Map", "")
	return n
}

// batchApply adds the join of a batch with rows of the right side. It runs on the server that received the batch.
func (w *protoWriter) batchApply(a *Apply, batch string) *spannerpb.PlanNode {
	n := w.add(applyNames[a.Kind], nil)
	keys := w.add("KeyRangeAccumulator", nil)
	link(n, keys, "Input", "")
	scan := w.add("Scan", meta{"scan_type": "BatchScan", "scan_target": "$" + batch, "scan_method": "Row"})
	link(keys, scan, "", "")
	for _, b := range a.Bind {
		_, t := Field(a.Left, b.Slot)
		w.scalar(scan, &Slot{T: t, Index: b.Slot, Name: b.Name}, "", b.Name)
	}
	var right *spannerpb.PlanNode
	if s := driving(a.Right); s != nil && isLocal(a.Right) {
		right = w.localUnion(func() *spannerpb.PlanNode { return w.raw(a.Right) })
	} else {
		right = w.global(a.Right)
	}
	link(n, right, "Map", "")
	return n
}

// raw adds the operators of a local plan (see isLocal), without adding unions.
func (w *protoWriter) raw(n Node) *spannerpb.PlanNode {
	return w.operator(n, "", func(in Node) *spannerpb.PlanNode { return w.raw(in) })
}

// dml adds a DML statement.
func (w *protoWriter) dml(m *DML) {
	op := map[Kind]string{Insert: "INSERT", Update: "UPDATE", Delete: "DELETE"}[m.Kind]
	switch m.Mode {
	case tree.InsertOrUpdate:
		op = "INSERT_OR_UPDATE"
	case tree.InsertOrIgnore:
		op = "INSERT_OR_IGNORE"
	}
	n := w.measured(m, "Apply Mutations", meta{"operation_type": op, "table": m.Table.FullName()})
	if m.Input != nil {
		link(n, w.top(m.Input, w.results(&Plan{Root: m.Input})), "", "")
	} else {
		link(n, w.add("Unit Relation", nil), "", "")
	}
	if m.Return != nil {
		for _, e := range m.Return.Exprs {
			w.scalar(n, e, "", "")
		}
	}
}

// with returns a copy of m, to which it adds the entries of another meta.
func (m meta) with(more meta) meta {
	out := maps.Clone(m)
	maps.Copy(out, more)
	return out
}

var (
	boolType  = value.BoolType
	trueValue = value.OfBool(true)
)

// operator adds one operator with the name that Spanner gives it. It calls the function input to add the plan of each
// input. The parameter call is the operator's call_type: Global, Local, or "" for none.
func (w *protoWriter) operator(n Node, call string, input func(Node) *spannerpb.PlanNode) *spannerpb.PlanNode {
	m := meta{}
	if call != "" {
		m["call_type"] = call
	}
	switch op := n.(type) {
	case *Unit:
		return w.measured(n, "Unit Relation", nil)
	case *Empty:
		return w.measured(n, "Empty Relation", nil)
	case *Scan:
		return w.scan(op)
	case *SpoolScan:
		return w.measured(n, "Scan", meta{"scan_type": "SpoolScan", "spool_name": op.Name, "scan_target": op.Name})
	case *Filter:
		return w.unary(n, "Filter", m, input, func(p *spannerpb.PlanNode) { w.scalar(p, op.Cond, "Condition", "") })
	case *Compute:
		return w.unary(n, "Compute", m, input, func(p *spannerpb.PlanNode) {
			for i, e := range op.Exprs {
				w.scalar(p, e, "", op.Names[i])
			}
		})
	case *Sample:
		return w.unary(n, "Random Id Assign", m, input, func(p *spannerpb.PlanNode) { w.scalar(p, op.Size, "", "") })
	case *Limit:
		return w.unary(n, "Limit", m, input, func(p *spannerpb.PlanNode) {
			w.scalar(p, op.Count, "Limit", "")
			w.scalar(p, op.Offset, "Offset", "")
		})
	case *Sort:
		return w.sort(op, m, input)
	case *Aggregate:
		return w.aggregate(op, m, input)
	case *Unnest:
		return w.unnest(op, m, input)
	case *Apply:
		p := w.measured(n, applyNames[op.Kind], nil)
		link(p, input(op.Left), "Input", "")
		link(p, input(op.Right), "Map", "")
		return p
	case *HashJoin:
		return w.hashJoin(op, input)
	case *UnionAll:
		return w.unionAll(op, m, input)
	case *SetOp:
		return w.setOp(op, input)
	case *With:
		return w.with(op, input)
	}
	return w.measured(n, fmt.Sprintf("%T", n), nil)
}

// unary adds an operator with one input. The function input adds the plan of the input, and the function exprs adds the
// operator's expressions below the node.
func (w *protoWriter) unary(n Node, name string, m meta, input func(Node) *spannerpb.PlanNode, exprs func(*spannerpb.PlanNode)) *spannerpb.PlanNode {
	p := w.measured(n, name, m)
	link(p, input(n.inputs()[0]), "", "")
	exprs(p)
	return p
}

// scan adds a Scan. If the scan does not return all rows of the table or index, scan adds it below a Filter Scan.
func (w *protoWriter) scan(s *Scan) *spannerpb.PlanNode {
	m := meta{"scan_type": "TableScan", "scan_target": s.target(), "scan_method": s.shownMethod()}
	if s.Index != nil {
		m["scan_type"] = "IndexScan"
	}
	if s.Reverse {
		m["scan_order"] = "Reverse"
	}
	if s.Seeks == nil {
		m["Full scan"] = "true"
	}
	if text := s.advice(); text != "" {
		m[adviceKey] = text
	}
	if s.Seeks == nil && s.Residual == nil && s.Limit == nil {
		return w.scanLeaf(s, m)
	}
	p := w.measured(s, "Filter Scan", meta{"seekable_key_size": strconv.Itoa(s.seekableKeySize())})
	link(p, w.scanLeaf(s, m), "", "")
	w.scalar(p, s.seekCondition(), "Seek Condition", "")
	w.scalar(p, s.Residual, "Residual Condition", "")
	w.scalar(p, s.Limit, "Limit", "")
	return p
}

func (w *protoWriter) scanLeaf(s *Scan, m meta) *spannerpb.PlanNode {
	p := w.measured(s, "Scan", m)
	for i, c := range s.Columns {
		w.scalar(p, &Slot{T: c.Type, Index: i, Name: c.Name}, "", c.Name)
	}
	return p
}

// seekableKeySize returns how many key parts the seeks bind. As in Spanner's plans, it is 0 if the scan reads rows
// of a table by whole keys.
func (n *Scan) seekableKeySize() int {
	size := 0
	for _, s := range n.Seeks {
		k := len(s.Parts)
		if s.Range != nil {
			k++
		}
		size = max(size, k)
	}
	if len(n.Seeks) == 1 && n.Index == nil && size == len(n.Table.Key) && n.Seeks[0].Range == nil {
		return 0
	}
	return size
}

func (w *protoWriter) sort(s *Sort, m meta, input func(Node) *spannerpb.PlanNode) *spannerpb.PlanNode {
	name := "Sort"
	if s.Major > 0 {
		name = "Minor Sort"
	}
	if s.Limit != nil {
		name += " Limit"
	}
	return w.unary(s, name, m, input, func(p *spannerpb.PlanNode) {
		for i, k := range s.Keys {
			direction := " (ASC)"
			if k.Desc {
				direction = " (DESC)"
			}
			kind := "Key"
			if s.Major > i {
				kind = "MajorKey"
			} else if s.Major > 0 {
				kind = "MinorKey"
			}
			w.scalar(p, k.Expr, kind, "sort_"+strconv.Itoa(i+1))
			last := w.nodes[p.ChildLinks[len(p.ChildLinks)-1].ChildIndex]
			last.ShortRepresentation.Description += direction
		}
		w.scalar(p, s.Limit, "Limit", "")
	})
}

// unionAll adds a union. If the union merges its inputs, its metadata has preserve_subquery_order, as the metadata of a
// Distributed Union that keeps an order has.
func (w *protoWriter) unionAll(u *UnionAll, m meta, input func(Node) *spannerpb.PlanNode) *spannerpb.PlanNode {
	if u.Order != nil {
		m["preserve_subquery_order"] = "true"
	}
	p := w.measured(u, "Union All", m)
	for _, in := range u.Inputs {
		one := w.add("Union Input", nil)
		link(p, one, "Input", "")
		link(one, input(in), "", "")
	}
	w.scalar(p, u.Limit, "Limit", "")
	return p
}

func (w *protoWriter) aggregate(a *Aggregate, m meta, input func(Node) *spannerpb.PlanNode) *spannerpb.PlanNode {
	kind := "Hash"
	if a.Stream {
		kind = "Stream"
	}
	return w.unary(a, "Aggregate", m.with(meta{"iterator_type": kind}), input, func(p *spannerpb.PlanNode) {
		for i, k := range a.Keys {
			w.scalar(p, k, "Key", columnName(a.Names[i], i))
		}
		for i := range a.Aggs {
			w.agg(p, &a.Aggs[i], len(a.Keys)+i)
		}
	})
}

// agg adds an aggregate function below p. The link from p to the function has the name of the function's result column.
// If the column has no name, agg makes one from the number slot.
func (w *protoWriter) agg(p *spannerpb.PlanNode, a *Agg, slot int) {
	d := describer{literals: w.literals}
	n := w.add("Function", nil)
	n.Kind = spannerpb.PlanNode_SCALAR
	args := d.list(a.Args)
	if a.Distinct {
		args = "DISTINCT " + args
	}
	name := strings.ToUpper(strings.TrimPrefix(a.Func.Name, "$"))
	if a.Func.Name == "$count_star" {
		name, args = "COUNT", "*"
	}
	n.ShortRepresentation = &spannerpb.PlanNode_ShortRepresentation{Description: name + "(" + args + ")"}
	link(p, n, "Agg", columnName(strings.TrimPrefix(a.Name, "$"), slot))
}

func (w *protoWriter) unnest(u *Unnest, m meta, input func(Node) *spannerpb.PlanNode) *spannerpb.PlanNode {
	_, alone := u.Input.(*Unit)
	var p *spannerpb.PlanNode
	leaf := func() *spannerpb.PlanNode {
		n := w.measured(u, "Array Unnest", m)
		for i, a := range u.Arrays {
			w.scalar(n, a, "", columnName(u.Names[i], i))
		}
		w.scalar(n, u.Cond, "Condition", "")
		return n
	}
	if alone {
		return leaf()
	}
	name := "Cross Apply"
	if u.Outer {
		name = "Outer Apply"
	}
	p = w.add(name, nil)
	link(p, input(u.Input), "Input", "")
	link(p, leaf(), "Map", "")
	return p
}

var joinTypes = map[JoinKind]string{InnerJoin: "INNER", LeftJoin: "LEFT_OUTER", FullJoin: "FULL_OUTER", SemiJoin: "SEMI", AntiJoin: "ANTI"}

func (w *protoWriter) hashJoin(j *HashJoin, input func(Node) *spannerpb.PlanNode) *spannerpb.PlanNode {
	p := w.measured(j, "Hash Join", meta{"join_type": joinTypes[j.Kind]})
	link(p, input(j.Right), "Build", "")
	link(p, input(j.Left), "Probe", "")
	var conds []Expr
	for i := range j.LeftKeys {
		conds = append(conds, condition("$equal", j.LeftKeys[i], j.RightKeys[i]))
	}
	if j.Cond != nil {
		conds = append(conds, j.Cond)
	}
	w.scalar(p, combine("$and", conds), "Condition", "")
	return p
}

// setOp adds an INTERSECT or EXCEPT in the form of a hash join.
func (w *protoWriter) setOp(s *SetOp, input func(Node) *spannerpb.PlanNode) *spannerpb.PlanNode {
	kind := "SEMI"
	if s.Kind == tree.Except {
		kind = "ANTI"
	}
	m := meta{"join_type": kind, "set_operation": map[tree.SetOpKind]string{tree.Intersect: "INTERSECT", tree.Except: "EXCEPT"}[s.Kind]}
	if s.All {
		m["set_operation"] += " ALL"
	} else {
		m["set_operation"] += " DISTINCT"
	}
	p := w.measured(s, "Hash Join", m)
	link(p, input(s.Right), "Build", "")
	link(p, input(s.Left), "Probe", "")
	return p
}

func (w *protoWriter) with(n *With, input func(Node) *spannerpb.PlanNode) *spannerpb.PlanNode {
	p := w.measured(n, "Cross Apply", nil)
	for _, d := range n.Defs {
		s := w.add("SpoolBuild", meta{"spool_name": d.Name})
		link(p, s, "Input", "")
		link(s, input(d.Plan), "", "")
	}
	link(p, input(n.Body), "Map", "")
	return p
}
