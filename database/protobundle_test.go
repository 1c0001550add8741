package database

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// withTypes is a set of one file that defines messages p.A and p.B, each with the field x.
func withTypes(t *testing.T) []byte {
	f := &descriptorpb.FileDescriptorProto{Name: proto.String("p.proto"), Package: proto.String("p")}
	for _, name := range []string{"A", "B"} {
		f.MessageType = append(f.MessageType, &descriptorpb.DescriptorProto{Name: &name, Field: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("x"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}}})
	}
	data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{f}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTypesOfDefinitions: types of the proto bundle are not taken away from views and functions, and columns may call functions that use them.
func TestTypesOfDefinitions(t *testing.T) {
	for _, definition := range []string{
		"CREATE VIEW V SQL SECURITY INVOKER AS SELECT CAST('x:1' AS p.A) AS m",
		"CREATE VIEW V SQL SECURITY INVOKER AS SELECT (NEW p.A(2 AS x)).x AS x",
		"CREATE FUNCTION F(s STRING) RETURNS INT64 AS (CAST(s AS p.A).x)",
		"CREATE FUNCTION F(m p.A) RETURNS INT64 AS (1)",
	} {
		b := create(t)
		if err := b.db.UpdateSchema(t.Context(), []string{"CREATE PROTO BUNDLE (p.A, p.B)"}, &SchemaOperation{ProtoDescriptors: withTypes(t)}); err != nil {
			t.Fatal(err)
		}
		b.alter(definition)
		b = b.reopen()
		b.alter("ALTER PROTO BUNDLE DELETE (p.B)")
		for _, change := range []string{"ALTER PROTO BUNDLE DELETE (p.A)", "DROP PROTO BUNDLE"} {
			if err := b.db.UpdateSchema(t.Context(), []string{change}, nil); usererror.CodeOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "p.A") {
				t.Errorf("%s; %s: %v", definition, change, err)
			}
		}
		if !strings.Contains(definition, "s STRING") {
			continue
		}
		b.alter("CREATE FUNCTION G(s STRING) RETURNS INT64 AS (F(s) + 1)", "CREATE TABLE T (K INT64, V INT64, X INT64 AS (G(CONCAT('x:', CAST(V AS STRING)))) STORED) PRIMARY KEY (K)")
		b = b.reopen()
		if err := b.insert("T", [2]int64{1, 7}); err != nil {
			t.Fatal(err)
		}
		if got := b.query("SELECT X FROM T"); got != "8\n" {
			t.Errorf("X is %s", got)
		}
	}
}

// TestRedefinedTypes: a type that has another meaning is refused where values that were computed with the old one stand, and where existing rows break a CHECK by it.
func TestRedefinedTypes(t *testing.T) {
	with := func(change func(f *descriptorpb.FieldDescriptorProto)) []byte {
		var set descriptorpb.FileDescriptorSet
		if err := proto.Unmarshal(withTypes(t), &set); err != nil {
			t.Fatal(err)
		}
		change(set.File[0].MessageType[0].Field[0])
		data, err := proto.Marshal(&set)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, test := range []struct {
		column string
		change func(f *descriptorpb.FieldDescriptorProto)
		want   codes.Code
	}{
		{"G INT64 AS (M.x) STORED", func(f *descriptorpb.FieldDescriptorProto) { f.Number = proto.Int32(2) }, codes.InvalidArgument},
		{"G INT64 AS (M.x) STORED", func(f *descriptorpb.FieldDescriptorProto) { f.DefaultValue = proto.String("9") }, codes.InvalidArgument},
		{"G INT64 AS (M.x)", func(f *descriptorpb.FieldDescriptorProto) { f.Number = proto.Int32(2) }, codes.OK},
		{"CHECK (M.x < 5)", func(f *descriptorpb.FieldDescriptorProto) { f.DefaultValue = proto.String("9") }, codes.FailedPrecondition},
		{"CHECK (M.x < 5)", func(f *descriptorpb.FieldDescriptorProto) { f.DefaultValue = proto.String("3") }, codes.OK},
	} {
		b := create(t)
		if err := b.db.UpdateSchema(t.Context(), []string{"CREATE PROTO BUNDLE (p.A)"}, &SchemaOperation{ProtoDescriptors: withTypes(t)}); err != nil {
			t.Fatal(err)
		}
		b.alter("CREATE TABLE T (K INT64, V INT64, M p.A DEFAULT (NEW p.A()), " + test.column + ") PRIMARY KEY (K)")
		if err := b.insert("T", [2]int64{1, 7}); err != nil {
			t.Fatal(err)
		}
		err := b.db.UpdateSchema(t.Context(), []string{"ALTER PROTO BUNDLE UPDATE (p.A)"}, &SchemaOperation{ProtoDescriptors: with(test.change)})
		if usererror.CodeOf(err) != test.want {
			t.Errorf("%s: %v, want %v", test.column, err, test.want)
		}
	}
}
