package server

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// manyTypes returns the names of the messages of a proto file, each followed by a comma, and the file's serialized
// descriptor. The file has the given number of messages, and a comment of the given number of bytes. The messages form
// groups of ten. Each message has a field for each earlier message of its group, with that message as its type.
func manyTypes(t testing.TB, messages, comment int) (names, descriptors []byte) {
	t.Helper()
	f := &descriptorpb.FileDescriptorProto{Name: proto.String("many.proto"), Package: proto.String("many"), Syntax: proto.String("proto3")}
	optional := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()
	for i := range messages {
		m := &descriptorpb.DescriptorProto{Name: proto.String(fmt.Sprint("Message", i))}
		for j := range 10 {
			field := &descriptorpb.FieldDescriptorProto{
				Name: proto.String(fmt.Sprint("some_field_", j)), Number: proto.Int32(int32(j + 1)), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: optional,
			}
			if before := i - j; j > 0 && j <= i%10 {
				field.Type, field.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(fmt.Sprint(".many.Message", before))
			}
			m.Field = append(m.Field, field)
		}
		f.MessageType = append(f.MessageType, m)
		names = fmt.Appendf(names, "many.Message%d,", i)
	}
	f.SourceCodeInfo = &descriptorpb.SourceCodeInfo{Location: []*descriptorpb.SourceCodeInfo_Location{{Span: []int32{0, 0, 0}, LeadingComments: proto.String(strings.Repeat("x", comment))}}}
	data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{f}})
	if err != nil {
		t.Fatal(err)
	}
	return names, data
}

// BenchmarkProtoBundle uses a proto bundle with 5,000 messages. It reports how many milliseconds these steps take:
// create the bundle, create a table with one of its types, add a column of such a type, run the first and then ten more
// queries that use such types, change a type, and create a table without such types. For each step it also reports the
// longest time that another user's query took meanwhile.
func BenchmarkProtoBundle(b *testing.B) {
	names, descriptors := manyTypes(b, 5000, 0)
	b.Logf("%d bytes", len(descriptors))
	for b.Loop() {
		h, ses := benchHarness(b)
		var slowest atomic.Int64
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				start := time.Now()
				h.ok(h.stream("ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Session: ses, Sql: fmt.Sprintf("SELECT %d + 1", i)}, new(discard).send))
				slowest.Store(max(slowest.Load(), int64(time.Since(start))))
				time.Sleep(5 * time.Millisecond)
			}
		}()
		report := func(what string, do func()) {
			slowest.Store(0)
			start := time.Now()
			do()
			b.ReportMetric(float64(time.Since(start).Milliseconds()), what+"-ms")
			b.ReportMetric(float64(slowest.Load())/1e6, what+"-stall-ms")
		}
		report("create", func() { h.ok(h.alterProtos(descriptors, "CREATE PROTO BUNDLE ("+string(names)+")")) })
		report("table", func() {
			h.ok(h.alterProtos(nil, "CREATE TABLE T (Id INT64 NOT NULL, A many.Message19, S STRING(MAX) DEFAULT ('x')) PRIMARY KEY (Id)"))
		})
		report("column", func() { h.ok(h.alterProtos(nil, "ALTER TABLE T ADD COLUMN B many.Message29")) })
		report("first", func() {
			h.ok(h.stream("ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT A.some_field_1.some_field_0 FROM T"}, new(discard).send))
		})
		report("text", func() {
			for i := range 10 {
				sql := fmt.Sprintf("SELECT A.some_field_1.some_field_0, NEW many.Message%d() FROM T WHERE Id = %d", i+3000, i)
				h.ok(h.stream("ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Session: ses, Sql: sql}, new(discard).send))
			}
		})
		report("alter", func() {
			changed := strings.Replace(string(descriptors), "some_field_9", "some_field_x", 1)
			h.ok(h.alterProtos([]byte(changed), "ALTER PROTO BUNDLE UPDATE (many.Message0)"))
		})
		report("plain", func() { h.ok(h.alterProtos(nil, "CREATE TABLE U (Id INT64 NOT NULL) PRIMARY KEY (Id)")) })
		close(stop)
		<-done
	}
}
