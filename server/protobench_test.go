package server

import (
	"cmp"
	"fmt"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// shopDescriptors returns the serialized proto files that define the types of the tests.
func shopDescriptors(t testing.TB) []byte { return descriptorsOf(t, shopFiles) }

// descriptorsOf serializes a FileDescriptorSet in text format.
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

const shopFiles = `
file {
	name: "shop.proto" package: "shop" syntax: "proto3"
	message_type {
		name: "Order"
		field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
		field { name: "customer" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "address" number: 3 type: TYPE_MESSAGE type_name: ".shop.Address" label: LABEL_OPTIONAL }
		field { name: "note" number: 4 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "state" number: 5 type: TYPE_ENUM type_name: ".shop.State" label: LABEL_OPTIONAL }
		field { name: "total" number: 6 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
	}
	message_type {
		name: "Address"
		field { name: "street" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "city" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
	}
	enum_type { name: "State" value { name: "NEW" number: 0 } value { name: "PAID" number: 1 } value { name: "SENT" number: 2 } }
}`

// alterProtos runs DDL statements with proto descriptors by UpdateDatabaseDdl.
func (h *harness) alterProtos(descriptors []byte, statements ...string) error {
	h.Helper()
	op, err := h.databases.UpdateDatabaseDdl(h.ctx, &databasepb.UpdateDatabaseDdlRequest{Database: testDatabase, Statements: statements, ProtoDescriptors: descriptors})
	return h.finished(op, err)
}

// finished waits for the end of an operation that a request has begun. It returns the error of the operation, or err if
// the request itself failed with err.
func (h *harness) finished(op *longrunningpb.Operation, err error) error {
	h.Helper()
	for err == nil && !op.Done {
		op, err = h.ops.WaitOperation(h.ctx, &longrunningpb.WaitOperationRequest{Name: op.Name, Timeout: durationpb.New(30 * time.Second)})
	}
	return cmp.Or(err, status.ErrorProto(op.GetError()))
}

// cpuTime returns the CPU time that the process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkProtoField compares a query of one field of a PROTO with a query of a STRING column that has the same
// values: for one row, for all rows, and for the rows with a given value. "ratio" is the CPU time of the query of the
// field divided by that of the query of the column.
func BenchmarkProtoField(b *testing.B) {
	const rows = 10_000
	h, ses := benchHarness(b)
	h.ok(h.alterProtos(shopDescriptors(b), "CREATE PROTO BUNDLE (shop.`Order`, shop.Address, shop.State)",
		"CREATE TABLE Orders (Id INT64 NOT NULL, S STRING(MAX), O shop.`Order`) PRIMARY KEY (Id)"))
	h.ok(h.stream("BeginTransaction", &spannerpb.BeginTransactionRequest{Session: ses, Options: readWrite()}, nil))
	for from := 0; from < rows; from += 1000 {
		h.ok(h.stream("ExecuteSql", &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: byID(h.newest(ses)), Seqno: int64(from + 1), Sql: fmt.Sprintf(
			`INSERT INTO Orders (Id, S, O) SELECT i, CONCAT('customer number ', CAST(i AS STRING)), NEW shop.`+"`Order`"+`(i AS id, CONCAT('customer number ', CAST(i AS STRING)) AS customer,
			NEW shop.Address('12 some street' AS street, 'a city' AS city) AS address, 'a note on the order' AS note, 'PAID' AS state, 12.5 AS total)
			FROM UNNEST(GENERATE_ARRAY(%d, %d)) AS i`, from, from+999)}, nil))
	}
	h.ok(h.stream("Commit", commitOf(ses, h.newest(ses)), nil))
	for _, name := range []string{"row", "scan", "filter"} {
		b.Run(name, func(b *testing.B) {
			query := func(column string) func() {
				req := &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT " + column + " AS v FROM Orders"}
				switch name {
				case "filter":
					req.Sql = "SELECT Id FROM Orders WHERE " + column + " = 'customer number 77'"
				case "row":
					req.Sql += " WHERE Id = @id"
					req.Params, req.ParamTypes = structOf("id", "77"), map[string]*spannerpb.Type{"id": {Code: spannerpb.TypeCode_INT64}}
				}
				return func() { h.ok(h.stream("ExecuteStreamingSql", req, new(discard).send)) }
			}
			text, field := query("S"), query("O.customer")
			text()
			field()
			var ofText, ofField time.Duration
			for b.Loop() {
				start := cpuTime()
				for range 20 {
					text()
				}
				middle := cpuTime()
				for range 20 {
					field()
				}
				ofText, ofField = ofText+middle-start, ofField+cpuTime()-middle
			}
			b.ReportMetric(float64(ofField)/float64(ofText), "ratio")
		})
	}
}
