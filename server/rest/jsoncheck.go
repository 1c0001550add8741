package rest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// unmarshalJSON decodes JSON into a message. It returns an error if the JSON has fields or values that the message
// cannot have.
func unmarshalJSON(data []byte, m proto.Message) error {
	err := protojson.Unmarshal(data, m)
	if err == nil {
		return nil
	}
	check := jsonCheck{in: json.NewDecoder(bytes.NewReader(data))}
	check.message(m.ProtoReflect().Descriptor(), "", 0)
	if check.found != nil {
		return check.found
	}
	return usererror.InvalidJSON(err)
}

// A jsonCheck reads JSON that protojson has refused, to report the error as Google's APIs do: by the path of a field,
// not by line and column. It finds fields and values that the message cannot have. If the text is not JSON it finds
// nothing, and the reply has protojson's own error.
//
// The methods message, field, entries, elements and value read the JSON value at a path. They return false to end the
// check.
type jsonCheck struct {
	in    *json.Decoder
	found error
}

// maxJSONDepth is the greatest depth to which the check follows messages within messages. A limit is needed because
// some messages, such as Type, can contain themselves.
const maxJSONDepth = 64

func (c *jsonCheck) message(d protoreflect.MessageDescriptor, path string, depth int) bool {
	if inside, ok := c.begins('{'); !inside || depth > maxJSONDepth {
		return ok && !inside
	}
	for c.in.More() {
		name, ok := c.name()
		if !ok {
			return false
		}
		f := fieldNamed(d, name)
		if f == nil {
			c.found = usererror.UnknownField(name, path)
			return false
		}
		if !c.field(f, strings.TrimPrefix(path+"."+string(f.Name()), "."), depth) {
			return false
		}
	}
	return c.ends()
}

func (c *jsonCheck) field(f protoreflect.FieldDescriptor, path string, depth int) bool {
	switch {
	case f.IsMap():
		return c.entries(f.MapValue(), path, depth)
	case f.IsList():
		return c.elements(f, path, depth)
	}
	return c.value(f, path, depth)
}

// entries reads the entries of a map. The path of a value contains the index of its entry, from 0.
func (c *jsonCheck) entries(f protoreflect.FieldDescriptor, path string, depth int) bool {
	if inside, ok := c.begins('{'); !inside {
		return ok
	}
	for i := 0; c.in.More(); i++ {
		if _, ok := c.name(); !ok || !c.value(f, path+"["+strconv.Itoa(i)+"].value", depth) {
			return false
		}
	}
	return c.ends()
}

func (c *jsonCheck) elements(f protoreflect.FieldDescriptor, path string, depth int) bool {
	if inside, ok := c.begins('['); !inside {
		return ok
	}
	for i := 0; c.in.More(); i++ {
		if !c.value(f, path+"["+strconv.Itoa(i)+"]", depth) {
			return false
		}
	}
	return c.ends()
}

func (c *jsonCheck) value(f protoreflect.FieldDescriptor, path string, depth int) bool {
	if !isLeaf(f) {
		return c.message(f.Message(), path, depth+1)
	}
	var raw json.RawMessage
	if err := c.in.Decode(&raw); err != nil {
		return false
	}
	data := raw
	if f.IsList() {
		data = slices.Concat([]byte("["), raw, []byte("]"))
	}
	if err := protojson.Unmarshal(named(f, data), dynamicpb.NewMessage(f.ContainingMessage())); err != nil {
		c.found = usererror.InvalidField(path, typeOf(f), string(raw))
		return false
	}
	return true
}

// isLeaf reports whether the check treats the field's values as a whole and looks for no fields in them. These are
// scalars, and messages of google.protobuf, which have special forms in JSON.
func isLeaf(f protoreflect.FieldDescriptor) bool {
	return f.Message() == nil || f.Message().ParentFile().Package() == "google.protobuf"
}

// typeOf returns the name of the field's type for errors.
func typeOf(f protoreflect.FieldDescriptor) string {
	const prefix = "type.googleapis.com/"
	switch {
	case f.Message() != nil:
		return prefix + string(f.Message().FullName())
	case f.Enum() != nil:
		return prefix + string(f.Enum().FullName())
	}
	return "TYPE_" + strings.ToUpper(f.Kind().String())
}

// begins reads the next token. The parameter with is { or [, which opens an object or a list. inside is true if the
// token is this delimiter. ok is true if inside is true or if the token is null, because null is valid for every field.
func (c *jsonCheck) begins(with json.Delim) (inside, ok bool) {
	token, err := c.in.Token()
	inside = err == nil && token == with
	return inside, inside || (err == nil && token == nil)
}

func (c *jsonCheck) ends() bool {
	_, err := c.in.Token()
	return err == nil
}

func (c *jsonCheck) name() (string, bool) {
	token, err := c.in.Token()
	name, ok := token.(string)
	return name, ok && err == nil
}

// fieldNamed finds a field by its name in the proto or its name in JSON.
func fieldNamed(d protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if f := d.Fields().ByName(protoreflect.Name(name)); f != nil {
		return f
	}
	return d.Fields().ByJSONName(name)
}

// named returns a JSON object with one field f, whose value is the JSON data.
func named(f protoreflect.FieldDescriptor, data []byte) []byte {
	return slices.Concat([]byte(`{"`+f.JSONName()+`":`), data, []byte("}"))
}
