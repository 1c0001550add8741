package schema

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/schema/descriptor"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// descriptorsOf parses a FileDescriptorSet in text format and serializes it.
func descriptorsOf(t testing.TB, text string) []byte {
	t.Helper()
	set := new(descriptorpb.FileDescriptorSet)
	if err := prototext.Unmarshal([]byte(text), set); err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const shopFile = `file { name: "shop.proto" package: "shop" syntax: "proto3"
	message_type { name: "Order" field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL } }
	message_type { name: "Item" nested_type { name: "Part" } enum_type { name: "Kind" value { name: "A" number: 0 } } }
	enum_type { name: "State" value { name: "NEW" number: 0 } value { name: "PAID" number: 1 } value { name: "SENT" number: 2 } } }`

func TestHostileDescriptors(t *testing.T) {
	file := func(body string) string { return `file { name: "f" package: "p" syntax: "proto3" ` + body + ` }` }
	nested := func(levels int) string {
		return file(strings.Repeat(`message_type { name: "M" `, 1) + strings.Repeat(`nested_type { name: "M" `, levels-1) + strings.Repeat("}", levels))
	}
	good := descriptorsOf(t, file(`message_type { name: "M" }`))
	for name, test := range map[string]struct {
		descriptors []byte
		code        codes.Code
		want        string
	}{
		"none":              {nil, codes.InvalidArgument, "cannot be empty"},
		"foreign":           {[]byte("\x89PNG\r\n"), codes.InvalidArgument, "no serialized FileDescriptorSet"},
		"truncated":         {good[:len(good)-3], codes.InvalidArgument, "no serialized FileDescriptorSet"},
		"other types":       {descriptorsOf(t, shopFile), codes.InvalidArgument, "Missing descriptor for `p.M`"},
		"missing import":    {descriptorsOf(t, file(`dependency: "gone.proto" message_type { name: "M" }`)), codes.InvalidArgument, `could not resolve import "gone.proto"`},
		"own import":        {descriptorsOf(t, file(`dependency: "f" message_type { name: "M" }`)), codes.InvalidArgument, "import cycle"},
		"cyclic imports":    {descriptorsOf(t, file(`dependency: "g" message_type { name: "M" }`)+` file { name: "g" dependency: "f" }`), codes.InvalidArgument, "import cycle"},
		"unknown type":      {descriptorsOf(t, file(`message_type { name: "M" field { name: "x" number: 1 type: TYPE_MESSAGE type_name: ".p.Gone" label: LABEL_OPTIONAL } }`)), codes.InvalidArgument, `cannot resolve type: "p.Gone" not found`},
		"file twice":        {append(append([]byte{}, good...), good...), codes.InvalidArgument, "stands there twice"},
		"type twice":        {descriptorsOf(t, file(`message_type { name: "M" } message_type { name: "M" }`)), codes.InvalidArgument, "Could not parse contents of proto_descriptors"},
		"field twice":       {descriptorsOf(t, file(`message_type { name: "M" field { name: "a" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL } field { name: "b" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL } }`)), codes.InvalidArgument, "Could not parse"},
		"number of field":   {descriptorsOf(t, file(`message_type { name: "M" field { name: "a" number: 0 type: TYPE_BOOL label: LABEL_OPTIONAL } }`)), codes.InvalidArgument, "Could not parse"},
		"too deep":          {descriptorsOf(t, nested(descriptor.MaxNestedTypes+1)), codes.InvalidArgument, "nested deeper than 32 levels"},
		"extensions":        {descriptorsOf(t, `file { name: "f" package: "p" syntax: "proto2" message_type { name: "M" extension_range { start: 10 end: 20 } extension { name: "x" number: 10 type: TYPE_BOOL label: LABEL_OPTIONAL extendee: ".p.M" } } }`), codes.Unimplemented, "Message extensions are not supported for message `p.M`."},
		"message set":       {descriptorsOf(t, `file { name: "f" package: "p" syntax: "proto2" message_type { name: "M" extension_range { start: 4 end: 100 } options { message_set_wire_format: true } } }`), codes.InvalidArgument, "Could not parse"},
		"as deep as it may": {descriptorsOf(t, nested(descriptor.MaxNestedTypes)), codes.OK, ""},
	} {
		_, _, err := NewCatalog().Apply("CREATE PROTO BUNDLE (p.M)", wordCompiler{}, test.descriptors)
		if usererror.CodeOf(err) != test.code || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v %v, want %v %s", name, usererror.CodeOf(err), err, test.code, test.want)
		}
	}
	// The request may contain a bad file if no type in the statement needs that file.
	set := append(descriptorsOf(t, `file { name: "bad" dependency: "gone.proto" }`), good...)
	if _, _, err := NewCatalog().Apply("CREATE PROTO BUNDLE (p.M)", wordCompiler{}, set); err != nil {
		t.Error(err)
	}
	for name, pkg := range map[string]string{"spanner.M": "spanner", "tech.spanner.M": "tech.spanner"} {
		set := descriptorsOf(t, `file { name: "f" package: "`+pkg+`" syntax: "proto3" message_type { name: "M" } }`)
		if _, _, err := NewCatalog().Apply("CREATE PROTO BUNDLE ("+name+")", wordCompiler{}, set); usererror.CodeOf(err) != codes.FailedPrecondition {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestProtoBundleSize checks the size limit of a bundle. The limit must ignore files of the request that no type of the
// bundle needs.
func TestProtoBundleSize(t *testing.T) {
	of := func(size int) []byte { // returns a FileDescriptorSet of one file, which is size bytes long when serialized
		set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
			Name: proto.String("f"), Package: proto.String("p"), Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}},
			SourceCodeInfo: &descriptorpb.SourceCodeInfo{Location: []*descriptorpb.SourceCodeInfo_Location{{Span: []int32{0, 0, 0}, LeadingComments: proto.String("")}}},
		}}}
		comment := set.File[0].SourceCodeInfo.Location[0]
		for more := size; more != 0; more = size - proto.Size(set) {
			comment.LeadingComments = proto.String(strings.Repeat("x", len(comment.GetLeadingComments())+more))
		}
		data, err := proto.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	unrelated := append(bytes.Replace(of(MaxProtoBundle), []byte("\n\x01f"), []byte("\n\x01g"), 1), descriptorsOf(t, shopFile)...)
	for _, test := range []struct {
		name        string
		descriptors []byte
		want        string
	}{
		{"p.M", of(MaxProtoBundle), ""},
		{"p.M", of(MaxProtoBundle + 1), "The proto bundle of 5242881 bytes exceeds the maximum size of 5242880 bytes."},
		{"shop.State", unrelated, ""},
	} {
		_, _, err := NewCatalog().Apply("CREATE PROTO BUNDLE ("+test.name+")", wordCompiler{}, test.descriptors)
		if err == nil && test.want != "" || err != nil && err.Error() != test.want {
			t.Errorf("%s of %d bytes: got %v, want %q", test.name, len(test.descriptors), err, test.want)
		}
	}
}

// FuzzDescriptors checks that CREATE PROTO BUNDLE with arbitrary bytes as descriptors fails, or makes a catalog that
// checkRoundTrips accepts.
func FuzzDescriptors(f *testing.F) {
	f.Add(descriptorsOf(f, shopFile), "shop.Order")
	f.Add([]byte("\n\x00"), "M")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if strings.ContainsAny(name, "`\\\n") {
			return
		}
		c, _, err := NewCatalog().Apply("CREATE PROTO BUNDLE (`"+name+"`)", wordCompiler{}, data)
		if err == nil {
			checkRoundTrips(t, c)
		}
	})
}
