package json

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Queries has the functions that extract parts of JSON. Each has a form for JSON, and most have one for a STRING that
// holds a JSON text. The result is NULL if the STRING is not valid JSON.
var Queries = []fn.Record{
	{Name: "json_query", Doc: "JSON_QUERY(json, path): what stands at a path, as JSON.", Overloads: []fn.Overload{
		fn.On("JSON, ?STRING -> JSON", fn.ByType(jsonQuery)),
		fn.On("STRING, ?STRING -> STRING", fn.ByType(jsonQuery)),
	}},
	{Name: "json_value", Doc: "JSON_VALUE(json, path): the scalar at a path, as text; NULL if it is none.", Overloads: []fn.Overload{
		fn.On("JSON, ?STRING -> STRING", fn.ByType(jsonValue)),
		fn.On("STRING, ?STRING -> STRING", fn.ByType(jsonValue)),
	}},
	{Name: "json_query_array", Doc: "JSON_QUERY_ARRAY(json, path): the elements of the array at a path, as JSON.", Overloads: []fn.Overload{
		fn.On("JSON, ?STRING -> ARRAY<JSON>", fn.ByType(jsonQueryArray)),
		fn.On("STRING, ?STRING -> ARRAY<STRING>", fn.ByType(jsonQueryArray)),
	}},
	{Name: "json_value_array", Doc: "JSON_VALUE_ARRAY(json, path): the scalars of the array at a path, as text; NULL if an element is no scalar.", Overloads: []fn.Overload{
		fn.On("JSON, ?STRING -> ARRAY<STRING>", fn.ByType(jsonValueArray)),
		fn.On("STRING, ?STRING -> ARRAY<STRING>", fn.ByType(jsonValueArray)),
	}},
	{Name: "$subscript", Doc: "json[name] or json[index]; NULL if there is no such member or element.", Overloads: []fn.Overload{
		fn.On("JSON, STRING -> JSON", fn.Strict(jsonMember)),
		fn.On("JSON, INT64 -> JSON", fn.Strict(jsonElement)),
	}},
	{Name: "json_type", Doc: "object, array, string, number, boolean or null.", Overloads: []fn.Overload{fn.On("JSON -> STRING", fn.Strict(jsonType))}},
}

// jsonPaths parses the paths that one call in a statement uses, and keeps the last parsed path for the next row.
type jsonPaths struct{ cache fn.Memo[[]jsonStep] }

// find returns the part of the JSON text a[0] at path a[1], or at $ if there is no a[1]. ok is false if the path
// matches nothing, or if a[0] is a STRING that is not JSON.
func (p *jsonPaths) find(a []value.Value) (found string, ok bool, err error) {
	var path []jsonStep
	if len(a) > 1 {
		if path, err = p.cache.Get(a[1].AsString(), parseJSONPath); err != nil {
			return "", false, err
		}
	}
	text := a[0].AsString()
	if a[0].Kind() == value.String {
		if _, err := value.ParseJSONRounding(text); err != nil {
			return "", false, nil
		}
	}
	found, ok = jsonFind(text, path)
	return found, ok, nil
}

func jsonQuery(f *tree.Function) fn.Body {
	paths := new(jsonPaths)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		found, ok, err := paths.find(a)
		if err != nil || !ok {
			return value.Null(f.Type.Kind), err
		}
		if f.Type.Kind == value.JSON {
			return value.OfJSON(found), nil
		}
		if found == "null" {
			return fn.Null(value.String)
		}
		return fn.OfString(jsonCompact(found))
	})
}

func jsonValue(*tree.Function) fn.Body {
	paths := new(jsonPaths)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		found, ok, err := paths.find(a)
		if err != nil || !ok {
			return value.Null(value.String), err
		}
		if scalar, ok := jsonScalar(found); ok {
			return fn.OfString(scalar)
		}
		return fn.Null(value.String)
	})
}

func jsonQueryArray(f *tree.Function) fn.Body {
	paths := new(jsonPaths)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		found, ok, err := paths.find(a)
		if err != nil || !ok {
			return value.Null(value.Array), err
		}
		elements, ok := jsonElements(found)
		if !ok {
			return fn.Null(value.Array)
		}
		list := make([]value.Value, len(elements))
		for i, e := range elements {
			if list[i] = value.OfJSON(e); f.Type.Elem.Kind == value.String {
				list[i] = value.OfString(jsonCompact(e))
			}
		}
		return value.OfArray(list), nil
	})
}

func jsonValueArray(*tree.Function) fn.Body {
	paths := new(jsonPaths)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		found, ok, err := paths.find(a)
		if err != nil || !ok {
			return value.Null(value.Array), err
		}
		elements, ok := jsonElements(found)
		if !ok {
			return fn.Null(value.Array)
		}
		list := make([]value.Value, len(elements))
		for i, e := range elements {
			scalar, ok := jsonScalar(e)
			switch {
			case e == "null":
				list[i] = value.Null(value.String)
			case !ok:
				return fn.Null(value.Array)
			default:
				list[i] = value.OfString(scalar)
			}
		}
		return value.OfArray(list), nil
	})
}

func jsonMember(_ *fn.Context, a []value.Value) (value.Value, error) {
	return jsonAt(a[0], jsonStep{name: a[1].AsString()})
}

func jsonElement(_ *fn.Context, a []value.Value) (value.Value, error) {
	return jsonAt(a[0], jsonStep{index: a[1].AsInt64(), isIndex: true})
}

func jsonAt(v value.Value, step jsonStep) (value.Value, error) {
	found, ok := jsonFind(v.AsString(), []jsonStep{step})
	if !ok {
		return fn.Null(value.JSON)
	}
	return value.OfJSON(found), nil
}

// jsonTypes holds the names of JSON types by the first character of a value's text. Any other character begins a
// number.
var jsonTypes = map[byte]string{'{': "object", '[': "array", '"': "string", 't': "boolean", 'f': "boolean", 'n': "null"}

func jsonTypeOf(text string) string {
	if name, ok := jsonTypes[text[0]]; ok {
		return name
	}
	return "number"
}

func jsonType(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfString(jsonTypeOf(a[0].AsString()))
}
