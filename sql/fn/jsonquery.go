package fn

import (
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// jsonQueries have two forms each: for JSON, and for a STRING that holds a JSON text. The result is NULL if the STRING is not valid JSON.
var jsonQueries = []record{
	{name: "json_query", doc: "JSON_QUERY(json, path): what stands at a path, as JSON.", overloads: []overload{
		on("JSON, ?STRING -> JSON", byType(jsonQuery)),
		on("STRING, ?STRING -> STRING", byType(jsonQuery)),
	}},
	{name: "json_value", doc: "JSON_VALUE(json, path): the scalar at a path, as text; NULL if it is none.", overloads: []overload{
		on("JSON, ?STRING -> STRING", byType(jsonValue)),
		on("STRING, ?STRING -> STRING", byType(jsonValue)),
	}},
	{name: "json_query_array", doc: "JSON_QUERY_ARRAY(json, path): the elements of the array at a path, as JSON.", overloads: []overload{
		on("JSON, ?STRING -> ARRAY<JSON>", byType(jsonQueryArray)),
		on("STRING, ?STRING -> ARRAY<STRING>", byType(jsonQueryArray)),
	}},
	{name: "json_value_array", doc: "JSON_VALUE_ARRAY(json, path): the scalars of the array at a path, as text; NULL if an element is no scalar.", overloads: []overload{
		on("JSON, ?STRING -> ARRAY<STRING>", byType(jsonValueArray)),
		on("STRING, ?STRING -> ARRAY<STRING>", byType(jsonValueArray)),
	}},
	{name: "$subscript", doc: "json[name] or json[index]; NULL if there is no such member or element.", overloads: []overload{
		on("JSON, STRING -> JSON", strict(jsonMember)),
		on("JSON, INT64 -> JSON", strict(jsonElement)),
	}},
	{name: "json_type", doc: "object, array, string, number, boolean or null.", overloads: []overload{on("JSON -> STRING", strict(jsonType))}},
}

// jsonPaths compiles the paths of one call.
type jsonPaths struct{ cache memo[[]jsonStep] }

// find looks up the path in argument 1, or $ if there is no such argument. ok is false if nothing is there or if the text is not JSON.
func (p *jsonPaths) find(a []value.Value) (found string, ok bool, err error) {
	var path []jsonStep
	if len(a) > 1 {
		if path, err = p.cache.get(a[1].AsString(), parseJSONPath); err != nil {
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

func jsonQuery(f *tree.Function) body {
	paths := new(jsonPaths)
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		found, ok, err := paths.find(a)
		if err != nil || !ok {
			return value.Null(f.Type.Kind), err
		}
		if f.Type.Kind == value.JSON {
			return value.OfJSON(found), nil
		}
		if found == "null" {
			return null(value.String)
		}
		return ofString(jsonCompact(found))
	})
}

func jsonValue(*tree.Function) body {
	paths := new(jsonPaths)
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		found, ok, err := paths.find(a)
		if err != nil || !ok {
			return value.Null(value.String), err
		}
		if scalar, ok := jsonScalar(found); ok {
			return ofString(scalar)
		}
		return null(value.String)
	})
}

func jsonQueryArray(f *tree.Function) body {
	paths := new(jsonPaths)
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		found, ok, err := paths.find(a)
		if err != nil || !ok {
			return value.Null(value.Array), err
		}
		elements, ok := jsonElements(found)
		if !ok {
			return null(value.Array)
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

func jsonValueArray(*tree.Function) body {
	paths := new(jsonPaths)
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		found, ok, err := paths.find(a)
		if err != nil || !ok {
			return value.Null(value.Array), err
		}
		elements, ok := jsonElements(found)
		if !ok {
			return null(value.Array)
		}
		list := make([]value.Value, len(elements))
		for i, e := range elements {
			scalar, ok := jsonScalar(e)
			switch {
			case e == "null":
				list[i] = value.Null(value.String)
			case !ok:
				return null(value.Array)
			default:
				list[i] = value.OfString(scalar)
			}
		}
		return value.OfArray(list), nil
	})
}

func jsonMember(_ *Context, a []value.Value) (value.Value, error) {
	return jsonAt(a[0], jsonStep{name: a[1].AsString()})
}

func jsonElement(_ *Context, a []value.Value) (value.Value, error) {
	return jsonAt(a[0], jsonStep{index: a[1].AsInt64(), isIndex: true})
}

func jsonAt(v value.Value, step jsonStep) (value.Value, error) {
	found, ok := jsonFind(v.AsString(), []jsonStep{step})
	if !ok {
		return null(value.JSON)
	}
	return value.OfJSON(found), nil
}

// jsonTypes holds the names of types by the first character of the text. Any other character begins a number.
var jsonTypes = map[byte]string{'{': "object", '[': "array", '"': "string", 't': "boolean", 'f': "boolean", 'n': "null"}

func jsonTypeOf(text string) string {
	if name, ok := jsonTypes[text[0]]; ok {
		return name
	}
	return "number"
}

func jsonType(_ *Context, a []value.Value) (value.Value, error) {
	return ofString(jsonTypeOf(a[0].AsString()))
}
