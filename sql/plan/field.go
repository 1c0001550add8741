package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// KeyColumns returns the columns of the stored key that a scan reads. The key of an index includes its suffix.
func KeyColumns(n *Scan) []*schema.Column {
	key := n.Table.Key
	if n.Index != nil {
		key = concat(n.Index.Key, n.Index.Suffix)
	}
	var columns []*schema.Column
	for _, part := range key {
		columns = append(columns, part.Column)
	}
	return columns
}

// Field returns the name and the type of a column of n's row. The name is shown in printed plans and may be empty.
func Field(n Node, slot int) (string, *value.Type) {
	switch n := n.(type) {
	case *Empty:
		return "", n.Types[slot]
	case *Scan:
		return n.Columns[slot].Name, n.Columns[slot].Type
	case *Compute:
		return n.Names[slot], n.Exprs[slot].Type()
	case *Apply:
		return joinField(n.Left, n.Right, slot)
	case *HashJoin:
		return joinField(n.Left, n.Right, slot)
	case *Unnest:
		return unnestField(n, slot)
	case *Aggregate:
		return aggregateField(n, slot)
	case *UnionAll:
		return Field(n.Inputs[0], slot)
	case *SetOp:
		name, _ := Field(n.Left, slot)
		return name, n.Types[slot]
	case *With:
		return Field(n.Body, slot)
	case *SpoolScan:
		return "", n.Types[slot]
	}
	return Field(n.inputs()[0], slot) // n passes on the rows of its input
}

// Types returns the types of the columns of n's row.
func Types(n Node) []*value.Type {
	types := make([]*value.Type, n.Width())
	for i := range types {
		_, types[i] = Field(n, i)
	}
	return types
}

func joinField(left, right Node, slot int) (string, *value.Type) {
	if w := left.Width(); slot >= w {
		return Field(right, slot-w)
	}
	return Field(left, slot)
}

func unnestField(n *Unnest, slot int) (string, *value.Type) {
	w := n.Input.Width()
	switch {
	case slot < w:
		return Field(n.Input, slot)
	case slot < w+len(n.Arrays):
		return n.Names[slot-w], n.Arrays[slot-w].Type().Elem
	}
	return "offset", value.Int64Type
}

func aggregateField(n *Aggregate, slot int) (string, *value.Type) {
	if slot < len(n.Keys) {
		return n.Names[slot], n.Keys[slot].Type()
	}
	if slot -= len(n.Keys); slot < len(n.Aggs) {
		return n.Aggs[slot].Name, n.Aggs[slot].Func.Type
	}
	if slot -= len(n.Aggs); slot < len(n.Grouping) {
		return "grouping", value.Int64Type
	}
	return "", value.BytesType
}
