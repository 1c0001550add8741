package database

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// withTypes returns a serialized FileDescriptorSet that defines messages p.A and p.B, each with an INT64 field x.
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

// TestTypesOfDefinitions checks that a type of the proto bundle cannot be dropped while views and functions use it, and
// that columns may call such functions.
func TestTypesOfDefinitions(t *testing.T) {
	for _, definition := range []string{
		"CREATE VIEW V SQL SECURITY INVOKER AS SELECT CAST('x:1' AS p.A) AS m",
		"CREATE VIEW V SQL SECURITY INVOKER AS SELECT (NEW p.A(2 AS x)).x AS x",
		"CREATE FUNCTION F(s STRING) RETURNS INT64 AS (CAST(s AS p.A).x)",
		"CREATE FUNCTION F(m p.A) RETURNS INT64 AS (1)",
	} {
		b := create(t)
		if err := b.db.UpdateSchema(t.Context(), []string{"CREATE PROTO BUNDLE (p.A, p.B)"}, &schemachange.Operation{ProtoDescriptors: withTypes(t)}); err != nil {
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

// TestRedefinedTypes checks that a redefinition of a type is refused if stored values were computed with the old
// definition, or if existing rows would break a CHECK.
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
		if err := b.db.UpdateSchema(t.Context(), []string{"CREATE PROTO BUNDLE (p.A)"}, &schemachange.Operation{ProtoDescriptors: withTypes(t)}); err != nil {
			t.Fatal(err)
		}
		b.alter("CREATE TABLE T (K INT64, V INT64, M p.A DEFAULT (NEW p.A()), " + test.column + ") PRIMARY KEY (K)")
		if err := b.insert("T", [2]int64{1, 7}); err != nil {
			t.Fatal(err)
		}
		err := b.db.UpdateSchema(t.Context(), []string{"ALTER PROTO BUNDLE UPDATE (p.A)"}, &schemachange.Operation{ProtoDescriptors: with(test.change)})
		if usererror.CodeOf(err) != test.want {
			t.Errorf("%s: %v, want %v", test.column, err, test.want)
		}
	}
}

// withColor returns a serialized FileDescriptorSet that defines the enumeration p.Color with the given names and
// numbers, and the message p.M with a field color.
func withColor(t *testing.T, values map[string]int32) []byte {
	color := &descriptorpb.EnumDescriptorProto{Name: proto.String("Color")}
	for name, number := range values {
		color.Value = append(color.Value, &descriptorpb.EnumValueDescriptorProto{Name: &name, Number: &number})
	}
	slices.SortFunc(color.Value, func(a, b *descriptorpb.EnumValueDescriptorProto) int { return int(a.GetNumber() - b.GetNumber()) })
	f := &descriptorpb.FileDescriptorProto{Name: proto.String("p.proto"), Package: proto.String("p"), Syntax: proto.String("proto3"), EnumType: []*descriptorpb.EnumDescriptorProto{color}}
	f.MessageType = []*descriptorpb.DescriptorProto{{Name: proto.String("M"), Field: []*descriptorpb.FieldDescriptorProto{{
		Name: proto.String("color"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum(), TypeName: proto.String(".p.Color"),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}}}}
	data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{f}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestNumberGetsName redefines an enumeration while a row stores one of its numbers, in a column and in a message. Most
// of the redefinitions give a name to a number that had none. Such a change must be refused if another stored value was
// computed from the number and would now be computed from the name, or if the row would break a CHECK. Otherwise the
// change must succeed, and all reads must show the name.
func TestNumberGetsName(t *testing.T) {
	few, more := map[string]int32{"NONE": 0, "RED": 1, "GREEN": 2}, map[string]int32{"NONE": 0, "RED": 1, "GREEN": 2, "BLUE": 7}
	const text, number = "CAST(M.color AS STRING)", "CAST(SAFE_CAST(V AS p.Color) AS STRING)"
	for _, test := range []struct {
		ddl  string
		v    int64 // the number in the single row
		to   map[string]int32
		want codes.Code
		g    string // value of G after the change
	}{
		{"G STRING(MAX) AS (" + text + ") STORED", 7, more, codes.FailedPrecondition, "7"},
		{"G STRING(MAX) AS (" + text + ") STORED", 2, more, codes.OK, "GREEN"},
		{"G STRING(MAX) AS (" + number + ") STORED", 7, more, codes.FailedPrecondition, ""},
		{"G STRING(MAX) AS (" + number + ") STORED", 2, more, codes.OK, "GREEN"},
		{"G STRING(MAX) AS (" + number + ") STORED", 2, map[string]int32{"NONE": 0, "RED": 1, "LIME": 2}, codes.InvalidArgument, "GREEN"},
		{"G STRING(MAX) AS (" + number + ") STORED", 2, map[string]int32{"NONE": 0, "RED": 1}, codes.FailedPrecondition, "GREEN"},
		{"G STRING(MAX) AS (" + number + ") STORED", 2, map[string]int32{"NONE": 0, "GREEN": 2}, codes.OK, "GREEN"},
		{"G STRING(MAX) AS (" + text + ")", 7, more, codes.OK, "BLUE"},
		{"G STRING(MAX) AS (named(V))", 7, more, codes.OK, "BLUE"},
		{"G STRING(MAX) AS (named(V)) STORED", 7, more, codes.FailedPrecondition, ""},
		{"G INT64 AS (V + 1) STORED", 7, more, codes.OK, "8"},
		{"G STRING(MAX) AS (" + text + "), CHECK (" + number + " IS NULL)", 7, more, codes.FailedPrecondition, "7"},
		{"G STRING(MAX) AS (" + text + "), CHECK (" + number + " IS NOT NULL)", 2, more, codes.OK, "GREEN"},
	} {
		c := newCopied(t)
		alter := func(want codes.Code, statement string, protos []byte) {
			t.Helper()
			if err := c.db.UpdateSchema(t.Context(), []string{statement}, &schemachange.Operation{ProtoDescriptors: protos}); usererror.CodeOf(err) != want {
				t.Fatalf("%s: %s: %v, want %v", test.ddl, statement, err, want)
			}
		}
		alter(codes.OK, "CREATE PROTO BUNDLE (p.Color, p.M)", withColor(t, few))
		alter(codes.OK, "CREATE FUNCTION named(n INT64) RETURNS STRING AS (CAST(SAFE_CAST(n AS p.Color) AS STRING))", nil)
		alter(codes.OK, "CREATE TABLE T (K INT64, V INT64, M p.M, "+test.ddl+") PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')", nil)
		if err := c.db.jobs.Transact(t.Context(), func(w table.Writer) error {
			return c.execute(w, fmt.Sprintf(`INSERT INTO T (K, V, M) VALUES (1, %d, CAST(b'\x08\x%02x' AS p.M))`, test.v, test.v))
		}); err != nil {
			t.Fatal(err)
		}
		c.now.Add(1)
		if err := c.upkeep(); err != nil {
			t.Fatal(err)
		}
		alter(test.want, "ALTER PROTO BUNDLE UPDATE (p.Color, p.M)", withColor(t, test.to))
		compareCopies(t, c.db)
		if got := c.count("SELECT IFNULL(CAST(G AS STRING), '') FROM T@{SCAN_METHOD=COLUMNAR}"); got != test.g {
			t.Errorf("%s: G is %q, want %q", test.ddl, got, test.g)
		}
		b := &bed{t: t, Registry: c.Registry, db: c.db}
		if found := b.verify(); len(found) > 0 {
			t.Errorf("%s: found %q", test.ddl, found)
		}
	}
}

// TestNumbersAndChecks redefines an enumeration: the number 1 gets another name, and the number 2 loses its name. The
// change must be refused if table A stores the number 2, or if a row of table B breaks its CHECK with the new name. It
// must succeed if neither is the case.
func TestNumbersAndChecks(t *testing.T) {
	for _, test := range []struct {
		a, b int64 // the numbers that are stored in the tables A and B
		want codes.Code
	}{{2, 0, codes.FailedPrecondition}, {0, 1, codes.FailedPrecondition}, {0, 0, codes.OK}} {
		b := create(t)
		few, other := map[string]int32{"NONE": 0, "RED": 1, "GREEN": 2}, map[string]int32{"NONE": 0, "ROSE": 1}
		if err := b.db.UpdateSchema(t.Context(), []string{"CREATE PROTO BUNDLE (p.Color)"}, &schemachange.Operation{ProtoDescriptors: withColor(t, few)}); err != nil {
			t.Fatal(err)
		}
		b.alter("CREATE TABLE A (K INT64, V p.Color) PRIMARY KEY (K)", "CREATE TABLE B (K INT64, V INT64, CHECK (V = 0 OR CAST(CAST(V AS p.Color) AS STRING) != 'ROSE')) PRIMARY KEY (K)")
		for _, sql := range []string{fmt.Sprintf("INSERT INTO A (K, V) VALUES (1, CAST(%d AS p.Color))", test.a), fmt.Sprintf("INSERT INTO B (K, V) VALUES (1, %d)", test.b)} {
			if err := b.commit(sql); err != nil {
				t.Fatal(err)
			}
		}
		err := b.db.UpdateSchema(t.Context(), []string{"ALTER PROTO BUNDLE UPDATE (p.Color)"}, &schemachange.Operation{ProtoDescriptors: withColor(t, other)})
		if usererror.CodeOf(err) != test.want {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
