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

// TestDDLFileErrors: the error of a DDL file names file, line and column.
func TestDDLFileErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"CREATE TABLE A (K INT64) PRIMARY KEY (K);\n\nCREATE TABLE B (\n  K INT64\n  V INT64) PRIMARY KEY (K)", "schema.sql:5:3: syntax error: "},
		{"-- one line\n /* two */ CREATE TABLE A (K INT64 V INT64) PRIMARY KEY (K)", "schema.sql:2:36: syntax error: "},
		{"CREATE TABLE A (K INT64) PRIMARY KEY (K);\n-- again\n  CREATE TABLE A (K INT64) PRIMARY KEY (K);", "schema.sql:3:3: Duplicate name in schema: A."},
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

// TestProtoDescriptorsFile: statements of DDL take the types of the proto bundle from a file of descriptors.
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

// TestDDLNotRun: a database that exists keeps its schema, and the log says so.
func TestDDLNotRun(t *testing.T) {
	var log bytes.Buffer
	o := crowfoot.Options{Data: t.TempDir(), Databases: []string{name}, DDL: []string{"CREATE TABLE A (K INT64) PRIMARY KEY (K)"}}
	for range 2 {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		s, err := crowfoot.Start(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(log.String(), "DDL not run: the database exists already"); got != 1 {
		t.Errorf("%d times of two starts the log says so: %s", got, log.String())
	}
}
