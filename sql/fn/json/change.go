package json

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Changes has the functions that return a JSON value with changes at paths. A path that is NULL changes nothing. A
// path that leads through a value of the wrong kind changes nothing either: for example, a path to a member of an
// array.
var Changes = []fn.Record{
	{Name: "json_set", Doc: "JSON_SET(json, path, value, ..., create_if_missing): values put at paths; what is missing on the way is created, unless said not to.",
		Overloads: []fn.Overload{fn.On("JSON, (STRING, ANY)..., ?BOOL -> JSON", fn.ByType(jsonSet))}},
	{Name: "json_remove", Doc: "JSON_REMOVE(json, path, ...): without what stands at paths.", Overloads: []fn.Overload{fn.On("JSON, STRING... -> JSON", fn.Nullable(jsonRemove))}},
	{Name: "json_array_append", Doc: "JSON_ARRAY_APPEND(json, path, value, ..., append_each_element): values behind arrays at paths; of an ARRAY each element, unless said not to.",
		Overloads: []fn.Overload{fn.On("JSON, (STRING, ANY)..., ?BOOL -> JSON", fn.ByType(jsonArrayAppend))}},
	{Name: "json_array_insert", Doc: "JSON_ARRAY_INSERT(json, path, value, ..., insert_each_element): values before elements of arrays; of an ARRAY each element, unless said not to.",
		Overloads: []fn.Overload{fn.On("JSON, (STRING, ANY)..., ?BOOL -> JSON", fn.ByType(jsonArrayInsert))}},
	{Name: "json_strip_nulls", Doc: "JSON_STRIP_NULLS(json, path, include_arrays, remove_empty): without nulls in what stands at a path, in arrays too unless said not to; and without what is empty, if said so.",
		Overloads: []fn.Overload{fn.On("JSON, ?STRING, ?BOOL, ?BOOL -> JSON", fn.Nullable(jsonStripNulls))}},
}

// jsonChange makes the body of a function whose arguments are a JSON value, pairs of path and value, and an optional
// flag, which is TRUE by default. The body calls the parameter change for each pair.
func jsonChange(f *tree.Function, change func(n *jsonNode, path []jsonStep, v value.Value, t *value.Type, flag bool) error) fn.Body {
	pairs := (len(f.Args) - 1) / 2
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		paths := make([][]jsonStep, pairs)
		for i := range paths {
			var err error
			if at := a[1+2*i]; !at.IsNull() {
				if paths[i], err = parseJSONPath(at.AsString()); err != nil {
					return value.Value{}, err
				}
			}
		}
		flag := true
		if len(a)%2 == 0 {
			if a[len(a)-1].IsNull() {
				return a[0], nil
			}
			flag = a[len(a)-1].AsBool()
		}
		if a[0].IsNull() {
			return a[0], nil
		}
		n := newJSONNode(a[0].AsString())
		for i, path := range paths {
			if a[1+2*i].IsNull() {
				continue
			}
			if err := change(n, path, a[2+2*i], f.Args[2+2*i], flag); err != nil {
				return value.Value{}, err
			}
		}
		return n.value()
	})
}

func nodeOf(v value.Value, t *value.Type) *jsonNode {
	return newJSONNode(string(jsonWriter{}.append(nil, v, t)))
}

func jsonSet(f *tree.Function) fn.Body {
	return jsonChange(f, func(n *jsonNode, path []jsonStep, v value.Value, t *value.Type, create bool) error {
		return n.set(path, nodeOf(v, t), create)
	})
}

// nodesOf returns the JSON of v as a list. If the parameter each is true and v is an ARRAY, the list has v's elements,
// so that they are appended or inserted one by one. Otherwise the list has v alone.
func nodesOf(v value.Value, t *value.Type, each bool) []*jsonNode {
	if !each || t.Kind != value.Array || v.IsNull() {
		return []*jsonNode{nodeOf(v, t)}
	}
	return nodeOf(v, t).elems
}

func jsonArrayAppend(f *tree.Function) fn.Body {
	return jsonChange(f, func(n *jsonNode, path []jsonStep, v value.Value, t *value.Type, each bool) error {
		target := n.at(path)
		switch {
		case target == nil:
		case target.isNull():
			*target = jsonNode{kind: '[', elems: nodesOf(v, t, each)}
		case target.kind == '[':
			target.elems = append(target.elems, nodesOf(v, t, each)...)
		}
		return nil
	})
}

func jsonArrayInsert(f *tree.Function) fn.Body {
	return jsonChange(f, func(n *jsonNode, path []jsonStep, v value.Value, t *value.Type, each bool) error {
		if len(path) == 0 || !path[len(path)-1].isIndex {
			return nil
		}
		at := path[len(path)-1].index
		target := n.at(path[:len(path)-1])
		if target == nil || !target.isNull() && target.kind != '[' {
			return nil
		}
		if target.isNull() {
			*target = jsonNode{kind: '['}
		}
		if err := target.pad(at); err != nil {
			return err
		}
		tail := append([]*jsonNode(nil), target.elems[at:]...)
		target.elems = append(append(target.elems[:at], nodesOf(v, t, each)...), tail...)
		return nil
	})
}

func jsonRemove(_ *fn.Context, a []value.Value) (value.Value, error) {
	var paths [][]jsonStep
	for _, at := range a[1:] {
		if at.IsNull() {
			continue
		}
		path, err := parseJSONPath(at.AsString())
		if err != nil {
			return value.Value{}, err
		}
		if len(path) == 0 {
			return value.Value{}, usererror.BadArgument("The JSONPath cannot be '$'")
		}
		paths = append(paths, path)
	}
	if a[0].IsNull() {
		return a[0], nil
	}
	n := newJSONNode(a[0].AsString())
	for _, path := range paths {
		n.remove(path)
	}
	return n.value()
}

func jsonStripNulls(_ *fn.Context, a []value.Value) (value.Value, error) {
	var path []jsonStep
	if len(a) > 1 && !a[1].IsNull() {
		var err error
		if path, err = parseJSONPath(a[1].AsString()); err != nil {
			return value.Value{}, err
		}
	}
	if fn.AnyNull(a) {
		return a[0], nil
	}
	inArrays, empty := true, false
	if len(a) > 2 {
		inArrays = a[2].AsBool()
	}
	if len(a) > 3 {
		empty = a[3].AsBool()
	}
	n := newJSONNode(a[0].AsString())
	if target := n.at(path); target != nil && target.stripNulls(inArrays, empty) {
		*target = *nullNode()
	}
	return n.value()
}
