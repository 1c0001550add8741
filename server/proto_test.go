package server

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestProtoColumns checks that a database can have a proto bundle and columns of its types. Requests and replies must
// carry values of these types, and indexes and change streams must be able to use them. The test checks all this after
// a restart, too.
func TestProtoColumns(t *testing.T) {
	forRestarts(t, func(h *harness, _ *testClock, restart func()) {
		ses := h.session(true)
		h.ok(h.alterProtos(shopDescriptors(h), "CREATE PROTO BUNDLE (shop.`Order`, shop.State)",
			"CREATE TABLE Orders (Id INT64 NOT NULL, O shop.`Order`, S shop.State DEFAULT ('PAID'), L ARRAY<shop.State>, City STRING(MAX) AS (O.address.city) STORED, "+
				"CHECK (O.total >= 0)) PRIMARY KEY (Id)",
			"CREATE UNIQUE INDEX ByState ON Orders(S, City)", "CREATE CHANGE STREAM Changes FOR Orders"))
		order := base64.StdEncoding.EncodeToString([]byte("\x08\x07\x1a\x06\x12\x04Oslo"))
		write := func(values ...any) error {
			_, err := h.data.Commit(h.ctx, singleUse(ses, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{
				Table: "Orders", Columns: []string{"Id", "O", "S"}, Values: []*structpb.ListValue{list(values...)},
			}}}))
			return err
		}
		h.ok(write("1", order, "2"))
		h.fails(write("2", order, "2"), codes.AlreadyExists)
		h.fails(write("3", order, "9"), codes.FailedPrecondition)
		h.fails(write("4", "not base64!", "1"), codes.FailedPrecondition)
		for range 2 {
			rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT O, S, City FROM Orders WHERE S = @s AND O.id = 7",
				Params: structOf("s", "2"), ParamTypes: map[string]*spannerpb.Type{"s": {Code: spannerpb.TypeCode_ENUM, ProtoTypeFqn: "shop.State"}}})
			h.ok(err)
			types := fmt.Sprint(rs.Metadata.RowType.Fields[0].Type.ProtoTypeFqn, " ", rs.Metadata.RowType.Fields[1].Type.Code)
			if got := valuesOf(rs); types != "shop.Order ENUM" || !strings.Contains(got, order) || !strings.Contains(got, "Oslo") {
				h.Fatalf("got %s %s", types, got)
			}
			_, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT @s", Params: structOf("s", "2"),
				ParamTypes: map[string]*spannerpb.Type{"s": {Code: spannerpb.TypeCode_ENUM, ProtoTypeFqn: "shop.Missing"}}})
			h.fails(err, codes.NotFound)
			restart()
		}
		h.ok(h.alterProtos(nil, "ALTER TABLE Orders ALTER COLUMN L ARRAY<INT64>"))
		without := []byte(strings.Replace(shopFiles, `value { name: "SENT" number: 2 }`, "", 1))
		h.fails(h.alterProtos(descriptorsOf(h, string(without)), "ALTER PROTO BUNDLE UPDATE (shop.State)"), codes.FailedPrecondition)
		ddl, err := h.databases.GetDatabaseDdl(h.ctx, &databasepb.GetDatabaseDdlRequest{Database: testDatabase})
		h.ok(err)
		op, err := h.databases.CreateDatabase(h.ctx, &databasepb.CreateDatabaseRequest{
			Parent: strings.TrimSuffix(testDatabase, "/databases/"+testDatabase[strings.LastIndex(testDatabase, "/")+1:]), CreateStatement: "CREATE DATABASE copied",
			ExtraStatements: ddl.Statements, ProtoDescriptors: ddl.ProtoDescriptors,
		})
		h.ok(h.finished(op, err))
		copied, err := h.databases.GetDatabaseDdl(h.ctx, &databasepb.GetDatabaseDdlRequest{Database: testDatabase[:strings.LastIndex(testDatabase, "/")+1] + "copied"})
		h.ok(err)
		if !slices.Equal(copied.Statements, ddl.Statements) || string(copied.ProtoDescriptors) != string(ddl.ProtoDescriptors) {
			h.Errorf("got %s, want %s", copied.Statements, ddl.Statements)
		}
	})
}
