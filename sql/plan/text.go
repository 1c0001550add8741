package plan

import (
	"fmt"
	"sort"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// Text formats a plan as viewers of plans do: one operator on each line, indented under the operator that reads its
// rows, with its conditions and keys below it.
func Text(p *spannerpb.QueryPlan) string {
	var b strings.Builder
	if len(p.GetPlanNodes()) > 0 {
		writeNode(&b, p, p.PlanNodes[0], "", 0)
	}
	return b.String()
}

func writeNode(b *strings.Builder, p *spannerpb.QueryPlan, n *spannerpb.PlanNode, role string, depth int) {
	indent := strings.Repeat("  ", depth)
	b.WriteString(indent)
	if role != "" {
		b.WriteString("[" + role + "] ")
	}
	b.WriteString(title(n) + "\n")
	if text := n.GetMetadata().GetFields()[adviceKey].GetStringValue(); text != "" {
		b.WriteString(indent + "  Cloud Spanner " + text + "\n")
	}
	for _, l := range n.GetChildLinks() {
		child := p.PlanNodes[l.ChildIndex]
		if child.Kind == spannerpb.PlanNode_RELATIONAL {
			continue
		}
		writeScalar(b, p, l, child, depth+1)
	}
	for _, l := range n.GetChildLinks() {
		if child := p.PlanNodes[l.ChildIndex]; child.Kind == spannerpb.PlanNode_RELATIONAL {
			writeNode(b, p, child, l.Type, depth+1)
		}
	}
}

// writeScalar prints a scalar node and the subqueries in it. It does not print the node itself if it is only a column
// and the link to it has no type, or if it is a Split Range that is always TRUE.
func writeScalar(b *strings.Builder, p *spannerpb.QueryPlan, l *spannerpb.PlanNode_ChildLink, n *spannerpb.PlanNode, depth int) {
	indent := strings.Repeat("  ", depth)
	text := n.GetShortRepresentation().GetDescription()
	reference := n.DisplayName == "Reference" && l.Type == ""
	if !reference && !(l.Type == "Split Range" && text == "true") {
		kind := l.Type
		if kind == "" {
			kind = "Compute"
		}
		if l.Variable != "" {
			text = "$" + columnName(l.Variable, 0) + " := " + text
		}
		fmt.Fprintf(b, "%s%s: %s\n", indent, kind, text)
	}
	for _, sub := range n.GetChildLinks() {
		q := p.PlanNodes[sub.ChildIndex]
		fmt.Fprintf(b, "%s  $%s: %s\n", indent, sub.Variable, q.DisplayName)
		for _, in := range q.GetChildLinks() {
			writeNode(b, p, p.PlanNodes[in.ChildIndex], "", depth+2)
		}
	}
}

// title returns the name of an operator, together with the metadata that viewers of plans show before and after the
// name.
func title(n *spannerpb.PlanNode) string {
	m := map[string]string{}
	for k, v := range n.GetMetadata().GetFields() {
		m[k] = v.GetStringValue()
	}
	name := n.DisplayName
	if kind := m["iterator_type"]; kind != "" {
		name = kind + " " + name
	}
	if call := m["call_type"]; call != "" {
		name = call + " " + name
	}
	if kind, ok := m["scan_type"]; ok {
		name = strings.TrimSuffix(kind, "Scan") + " Scan on " + m["scan_target"]
	}
	for _, k := range []string{"iterator_type", "call_type", "scan_type", "scan_target", "subquery_cluster_node", adviceKey} {
		delete(m, k)
	}
	var list []string
	for k, v := range m {
		list = append(list, k+": "+v)
	}
	if len(list) == 0 {
		return name
	}
	sort.Strings(list)
	return name + " (" + strings.Join(list, ", ") + ")"
}
