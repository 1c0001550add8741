package crowfoot_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot"
)

// TestDDLFileErrors checks that an error in a DDL file names file, line and column.
func TestDDLFileErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"CREATE TABLE A (K INT64) PRIMARY KEY (K);\n\nCREATE TABLE B (\n  K INT64\n  V INT64) PRIMARY KEY (K)", "schema.sql:5:3: syntax error: "},
		{"-- one line\n /* two */ CREATE TABLE A (K INT64 V INT64) PRIMARY KEY (K)", "schema.sql:2:36: syntax error: "},
		{"CREATE TABLE A (K INT64) PRIMARY KEY (K);\n-- again\n  CREATE TABLE A (K INT64) PRIMARY KEY (K);", "schema.sql:3:16: Duplicate name in schema: A."},
		{"CREATE TABLE A (\n  K INT64,\n  V VARCHAR(10),\n) PRIMARY KEY (K)", "schema.sql:3:5: Type not found: VARCHAR; Spanner's type is STRING(n)\n  V VARCHAR(10),\n    ^"},
		{"\n  CREATE TABLE A (K INT64, V ARRAY<TEXT>) PRIMARY KEY (K)", "schema.sql:2:36: Type not found: TEXT; Spanner's type is STRING(MAX)"},
		{"CREATE TABLE A (K INT64, V INT64) PRIMARY KEY (K,\n  Z)", "schema.sql:2:3: "},
		{"CREATE TABLE A (\n  K INT64,\n  G INT64 AS (K + Z) STORED,\n) PRIMARY KEY (K)", "schema.sql:3:3: Error parsing the definition of generated column `A`.`G`: Unrecognized name: Z [at 1:5]\nK + Z\n    ^"},
		{"CREATE TABLE A (K INT64) PRIMARY KEY (K);\nCREATE INDEX I ON B (K)", "schema.sql:2:19: Table not found: B"},
		{"CREATE TABLE A (K INT64) PRIMARY KEY (K);\nCREATE INDEX I ON A (K,\n L)", "schema.sql:3:2: "},
		{"CREATE TABLE A (K INT64) PRIMARY KEY (K);\nALTER TABLE A DROP COLUMN Z", "schema.sql:2:27: Column not found"},
		{"CREATE TABLE A (K INT64,\n  CONSTRAINT F FOREIGN KEY (K) REFERENCES B (K)) PRIMARY KEY (K)", "schema.sql:2:43: Table not found: B"},
		{"CREATE TABLE A (K INT64, order INT64) PRIMARY KEY (K)", "schema.sql:1:26: syntax error: Expecting a name but found 'order', a reserved word: as a name it is written `order`\n"},
		{"CREATE TABLE A (K INT64)\n  PRIMARY KEY ('K", "schema.sql:2:16: syntax error: "},
	} {
		file := filepath.Join(t.TempDir(), "schema.sql")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := crowfoot.Start(t.Context(), crowfoot.Options{InMemory: true, Databases: []string{name}, DDLFile: file})
		if err == nil || !strings.Contains(err.Error(), filepath.Dir(file)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.text, err, c.want)
		}
	}
}

// TestProtoDescriptorsFile checks that DDL statements take the types of the proto bundle from a file of descriptors.
func TestProtoDescriptorsFile(t *testing.T) {
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("p.proto"), MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}}}}}
	data, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "p.pb")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	ddl := []string{"CREATE PROTO BUNDLE (M)", "CREATE TABLE A (K INT64, V M) PRIMARY KEY (K)"}
	s, err := crowfoot.Start(t.Context(), crowfoot.Options{InMemory: true, Databases: []string{name}, DDL: ddl, ProtoDescriptorsFile: file})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDDLNotRun checks that a start does not change the schema of an existing database. The log must say so, with a
// warning if the schema differs from the one in the options.
func TestDDLNotRun(t *testing.T) {
	var log bytes.Buffer
	o := crowfoot.Options{Data: t.TempDir(), Databases: []string{name}}
	a, i := "CREATE TABLE A (K INT64, V INT64) PRIMARY KEY (K)", "CREATE INDEX I ON A(V)"
	const other = "DDL is not run in " + name + ", which exists already with another schema: "
	for _, start := range []struct {
		ddl             []string
		logged, warning string
	}{
		{[]string{a, i}, "", ""},
		{[]string{a, i}, "DDL not run: the database exists already", ""},
		{[]string{a, "CREATE TABLE B (K INT64) PRIMARY KEY (K)", "DROP TABLE B", i}, "DDL not run: the database exists already", ""},
		{[]string{a}, other, other},
		{[]string{i}, "and could not be run", "DDL is not run in " + name + ", which exists already, and could not be run in an empty database: Table not found: A"},
	} {
		log.Reset()
		o.DDL, o.Log = start.ddl, slog.New(slog.NewTextHandler(&log, nil))
		s, err := crowfoot.Start(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Warnings, "\n"); !strings.HasPrefix(got, start.warning) || start.warning == "" && got != "" || !strings.Contains(log.String(), start.logged) {
			t.Errorf("%q: warnings %q, log %s", start.ddl, got, log.String())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
