package json

import (
	"sort"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Searches has the functions that look for values in JSON.
var Searches = []fn.Record{
	{Name: "json_contains", Doc: "JSON_CONTAINS(json, part): whether the part is in the value: each of its members and elements somewhere at the same level.",
		Overloads: []fn.Overload{fn.On("JSON, JSON -> BOOL", fn.Strict(jsonContains))}},
	{Name: "json_keys", Doc: "JSON_KEYS(json, max_depth, mode): the paths of all members, sorted, down to a depth; in mode lax also through arrays, in lax recursive also through arrays in arrays.",
		Overloads: []fn.Overload{fn.On("JSON, ?INT64, ?STRING -> ARRAY<STRING>", fn.Nullable(jsonKeys))}},
}

func jsonContains(_ *fn.Context, a []value.Value) (value.Value, error) {
	whole, part := newJSONNode(a[0].AsString()), newJSONNode(a[1].AsString())
	if whole.kind == '[' && part.kind == 0 { // at the top level, an array contains a scalar that is one of its elements
		part = &jsonNode{kind: '[', elems: []*jsonNode{part}}
	}
	return fn.OfBool(whole.contains(part))
}

func (n *jsonNode) contains(part *jsonNode) bool {
	if n.kind != part.kind {
		return false
	}
	switch n.kind {
	case '{':
		for _, m := range part.members {
			if mine := n.child(jsonStep{name: m.name}); mine == nil || !mine.contains(m.node) {
				return false
			}
		}
		return true
	case '[':
		for _, e := range part.elems {
			if !n.hasElement(e) {
				return false
			}
		}
		return true
	}
	return sameScalar(n.scalar, part.scalar)
}

func (n *jsonNode) hasElement(part *jsonNode) bool {
	for _, e := range n.elems {
		if e.contains(part) {
			return true
		}
	}
	return false
}

// sameScalar reports whether two scalars are equal. 1 and 1.0 are the same number.
func sameScalar(a, b string) bool {
	if a == b {
		return true
	}
	if jsonTypeOf(a) != "number" || jsonTypeOf(b) != "number" {
		return false
	}
	return strings.TrimSuffix(a, ".0") == strings.TrimSuffix(b, ".0")
}

func jsonKeys(_ *fn.Context, a []value.Value) (value.Value, error) {
	w := keyWalk{paths: make(map[string]bool), maxDepth: 1 << 30}
	if len(a) > 1 && !a[1].IsNull() {
		if w.maxDepth = a[1].AsInt64(); w.maxDepth <= 0 {
			return fn.BadArgument("max_depth must be positive.")
		}
	}
	if len(a) > 2 && !a[2].IsNull() {
		switch mode := strings.ToLower(a[2].AsString()); mode {
		case "strict":
		case "lax":
			w.arrays = 1
		case "lax recursive":
			w.arrays = 1 << 30
		default:
			return value.Value{}, usererror.BadArgument("Invalid JSON mode specified: " + a[2].AsString())
		}
	}
	if a[0].IsNull() || len(a) > 2 && a[2].IsNull() {
		return fn.Null(value.Array)
	}
	w.walk(newJSONNode(a[0].AsString()), "", 0, 0)
	paths := make([]string, 0, len(w.paths))
	for p := range w.paths {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	list := make([]value.Value, len(paths))
	for i, p := range paths {
		list[i] = value.OfString(p)
	}
	return value.OfArray(list), nil
}

// keyWalk collects the paths of members for JSON_KEYS.
type keyWalk struct {
	paths    map[string]bool
	maxDepth int64
	arrays   int // the maximum number of directly nested arrays that the walk enters
}

func (w *keyWalk) walk(n *jsonNode, path string, depth int64, arrays int) {
	if n.kind == '[' && arrays < w.arrays {
		for _, e := range n.elems {
			w.walk(e, path, depth, arrays+1)
		}
	}
	if n.kind != '{' || depth == w.maxDepth {
		return
	}
	for _, m := range n.members {
		p := keyText(m.name)
		if path != "" {
			p = path + "." + p
		}
		w.paths[p] = true
		w.walk(m.node, p, depth+1, 0)
	}
}

// keyText returns the name of a member as it is written in a path: in quotes if it contains characters that have a
// meaning in paths.
func keyText(name string) string {
	if name != "" && !strings.ContainsAny(name, ".[]\"'$ *\\") {
		return name
	}
	return string(value.AppendJSONString(nil, name))
}
