package plan

import (
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

var (
	boolType  = value.BoolType
	trueValue = value.OfBool(true)
)

// operator adds one operator under its Spanner name; input adds the plan of one of its inputs. call is its call_type: Global, Local or "".
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

// unary adds an operator with one input; exprs then adds the operator's expressions.
func (w *protoWriter) unary(n Node, name string, m meta, input func(Node) *spannerpb.PlanNode, exprs func(*spannerpb.PlanNode)) *spannerpb.PlanNode {
	p := w.measured(n, name, m)
	link(p, input(n.inputs()[0]), "", "")
	exprs(p)
	return p
}

// scan adds a Scan, under a Filter Scan if it reads less than everything.
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

// seekableKeySize returns how many key parts the seeks bind. It is 0 for reads of a table's rows by whole keys, as in Spanner's plans.
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

// unionAll adds a union. If it merges its inputs, it gets the metadata with which a Distributed Union says so.
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

// agg adds an aggregate function under p. The link carries the name of its result.
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

// setOp adds INTERSECT and EXCEPT as the hash joins that they are.
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
