package rest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// decodeRequest sets the fields of req from the body, the query and the path of an HTTP request. body is the
// decompressed body, and values holds the values of the path's variables. If path and query set the same field, the
// path wins. If query and body set the same field, the query wins.
func decodeRequest(route *route, values []string, r *http.Request, body []byte, req proto.Message) error {
	if route.body != "" {
		if err := decodeBody(route.body, body, req); err != nil {
			return err
		}
	}
	if err := decodeQuery(r, req); err != nil {
		return err
	}
	for i, v := range route.variables {
		tree := fieldTree{}
		if err := tree.add(req.ProtoReflect().Descriptor(), v.field, values[i:i+1]); err != nil {
			return err
		}
		if err := tree.merge(req); err != nil {
			return err
		}
	}
	return nil
}

// decodeBody decodes JSON into the message (field "*") or into one of its fields. It does not check the content type,
// because curl by default says that any body is a form.
func decodeBody(field string, data []byte, req proto.Message) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	if field != "*" {
		data = named(req.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(field)), data)
	}
	return unmarshalJSON(data, req)
}

// decodeQuery decodes query parameters into fields: a.b=1 sets field b of field a. It skips the parameters that all of
// Google's APIs have.
func decodeQuery(r *http.Request, req proto.Message) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	tree, query := fieldTree{}, r.URL.Query()
	for _, path := range slices.Sorted(maps.Keys(query)) {
		if strings.HasPrefix(path, "$") || slices.Contains(systemParameters, path) {
			continue
		}
		if err := tree.add(req.ProtoReflect().Descriptor(), path, query[path]); err != nil {
			return err
		}
	}
	return tree.merge(req)
}

// systemParameters are the query parameters that all of Google's APIs have: those of
// https://cloud.google.com/apis/docs/system-parameters and older ones. Those that begin with $ are not listed here.
var systemParameters = []string{
	"access_token", "alt", "callback", "fields", "key", "oauth_token", "prettyPrint", "quotaUser", "uploadType", "upload_protocol", "userIp",
}

// A fieldTree is a message as a tree of JSON values, built from query parameters.
type fieldTree map[string]any

// maxFieldPath is how many names the path of a parameter can have.
const maxFieldPath = 16

// add sets the field that path leads to. path consists of field names, as in the proto or in JSON, joined by dots.
func (t fieldTree) add(d protoreflect.MessageDescriptor, path string, values []string) error {
	names := strings.Split(path, ".")
	for i, name := range names {
		f := fieldNamed(d, name)
		if f == nil || i == maxFieldPath {
			return usererror.UnknownParameter(path, name)
		}
		last := i == len(names)-1
		switch {
		case last && isLeaf(f):
			t[f.JSONName()] = jsonOf(f, values)
			return nil
		case last, f.IsMap(), f.IsList():
			return usererror.MessageParameter(path, name)
		case isLeaf(f):
			return usererror.UnknownParameter(path, names[i+1])
		}
		child, ok := t[f.JSONName()].(fieldTree)
		if !ok {
			child = fieldTree{}
			t[f.JSONName()] = child
		}
		t, d = child, f.Message()
	}
	return nil
}

// jsonOf returns the JSON value of a field whose values are given as text. Values of most types stay strings, which
// protojson accepts.
func jsonOf(f protoreflect.FieldDescriptor, values []string) any {
	if f.IsList() {
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = scalarJSON(f, v)
		}
		return list
	}
	return scalarJSON(f, values[len(values)-1])
}

func scalarJSON(f protoreflect.FieldDescriptor, text string) any {
	switch f.Kind() {
	case protoreflect.BoolKind:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case protoreflect.MessageKind:
		if f.Message().FullName() == "google.protobuf.FieldMask" {
			return camelCase(text)
		}
	case protoreflect.EnumKind:
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			return n
		}
	}
	return text
}

// camelCase converts the names of a field mask to JSON names, which protojson requires.
func camelCase(names string) string {
	var b strings.Builder
	for i := 0; i < len(names); i++ {
		if names[i] == '_' && i+1 < len(names) && names[i+1] >= 'a' && names[i+1] <= 'z' {
			i++
			b.WriteByte(names[i] - 'a' + 'A')
			continue
		}
		b.WriteByte(names[i])
	}
	return b.String()
}

// merge decodes the tree and merges the result into m.
func (t fieldTree) merge(m proto.Message) error {
	if len(t) == 0 {
		return nil
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	part := m.ProtoReflect().New().Interface()
	if err := unmarshalJSON(data, part); err != nil {
		return err
	}
	proto.Merge(m, part)
	return nil
}
