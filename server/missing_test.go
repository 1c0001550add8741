package server

import (
	"testing"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestMissingResources checks the errors of requests that name an instance, a database or a session that does not
// exist. If neither the instance nor the database exists, the error must say that the instance was not found. The text
// of the error, the status details, and the trailer must all name the same resource. Versions of Spanner's Java client
// up to 6.87 read the trailer.
func TestMissingResources(t *testing.T) {
	h := newHarness(t)
	const noInstance = "projects/p/instances/none"
	const inNoInstance, noDatabase = noInstance + "/databases/db", testInstance + "/databases/none"
	for _, calls := range []map[string]askOf{h.dataCalls(), h.databaseCalls()} {
		for name, ask := range calls {
			h.missing(name, ask, inNoInstance, usererror.InstanceResource, "Instance not found: ", noInstance)
			h.missing(name, ask, noDatabase, usererror.DatabaseResource, "Database not found: ", noDatabase)
		}
	}
	for name, ask := range h.instanceCalls() {
		h.missing(name, ask, noInstance, usererror.InstanceResource, "Instance not found: ", noInstance)
	}
	noSession := h.session(true) + "0"
	h.missing("GetSession", func(name string, o ...grpc.CallOption) error {
		_, err := h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: name}, o...)
		return err
	}, noSession, usererror.SessionResource, "Session not found: ", noSession)
}

// askOf sends a request that names the given resource.
type askOf func(name string, o ...grpc.CallOption) error

// dataCalls returns requests of the data API that name a database, by method.
func (h *harness) dataCalls() map[string]askOf {
	session := func(db string) string { return db + "/sessions/s" }
	return map[string]askOf{
		"CreateSession": func(db string, o ...grpc.CallOption) error {
			_, err := h.data.CreateSession(h.ctx, &spannerpb.CreateSessionRequest{Database: db}, o...)
			return err
		},
		"BatchCreateSessions": func(db string, o ...grpc.CallOption) error {
			_, err := h.data.BatchCreateSessions(h.ctx, &spannerpb.BatchCreateSessionsRequest{Database: db, SessionCount: 1}, o...)
			return err
		},
		"ListSessions": func(db string, o ...grpc.CallOption) error {
			_, err := h.data.ListSessions(h.ctx, &spannerpb.ListSessionsRequest{Database: db}, o...)
			return err
		},
		"GetSession": func(db string, o ...grpc.CallOption) error {
			_, err := h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: session(db)}, o...)
			return err
		},
		"ExecuteSql": func(db string, o ...grpc.CallOption) error {
			_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: session(db), Sql: "SELECT 1"}, o...)
			return err
		},
		"StreamingRead": func(db string, o ...grpc.CallOption) error {
			stream, err := h.data.StreamingRead(h.ctx, &spannerpb.ReadRequest{Session: session(db)}, o...)
			h.ok(err)
			_, err = stream.Recv()
			return err
		},
	}
}

// databaseCalls returns requests of the database administration API that name a database, by method.
func (h *harness) databaseCalls() map[string]askOf {
	return map[string]askOf{
		"GetDatabase": func(db string, o ...grpc.CallOption) error {
			_, err := h.databases.GetDatabase(h.ctx, &databasepb.GetDatabaseRequest{Name: db}, o...)
			return err
		},
		"UpdateDatabase": func(db string, o ...grpc.CallOption) error {
			_, err := h.databases.UpdateDatabase(h.ctx, &databasepb.UpdateDatabaseRequest{Database: &databasepb.Database{Name: db}}, o...)
			return err
		},
		"DropDatabase": func(db string, o ...grpc.CallOption) error {
			_, err := h.databases.DropDatabase(h.ctx, &databasepb.DropDatabaseRequest{Database: db}, o...)
			return err
		},
		"GetDatabaseDdl": func(db string, o ...grpc.CallOption) error {
			_, err := h.databases.GetDatabaseDdl(h.ctx, &databasepb.GetDatabaseDdlRequest{Database: db}, o...)
			return err
		},
		"UpdateDatabaseDdl": func(db string, o ...grpc.CallOption) error {
			_, err := h.databases.UpdateDatabaseDdl(h.ctx, &databasepb.UpdateDatabaseDdlRequest{Database: db, Statements: []string{"ANALYZE"}}, o...)
			return err
		},
		"ListDatabaseRoles": func(db string, o ...grpc.CallOption) error {
			_, err := h.databases.ListDatabaseRoles(h.ctx, &databasepb.ListDatabaseRolesRequest{Parent: db}, o...)
			return err
		},
		"AddSplitPoints": func(db string, o ...grpc.CallOption) error {
			_, err := h.databases.AddSplitPoints(h.ctx, &databasepb.AddSplitPointsRequest{Database: db}, o...)
			return err
		},
	}
}

// instanceCalls returns requests that name an instance, by method.
func (h *harness) instanceCalls() map[string]askOf {
	return map[string]askOf{
		"CreateDatabase": func(name string, o ...grpc.CallOption) error {
			_, err := h.databases.CreateDatabase(h.ctx, &databasepb.CreateDatabaseRequest{Parent: name, CreateStatement: "CREATE DATABASE db"}, o...)
			return err
		},
		"ListDatabases": func(name string, o ...grpc.CallOption) error {
			_, err := h.databases.ListDatabases(h.ctx, &databasepb.ListDatabasesRequest{Parent: name}, o...)
			return err
		},
		"ListDatabaseOperations": func(name string, o ...grpc.CallOption) error {
			_, err := h.databases.ListDatabaseOperations(h.ctx, &databasepb.ListDatabaseOperationsRequest{Parent: name}, o...)
			return err
		},
		"GetInstance": func(name string, o ...grpc.CallOption) error {
			_, err := h.instances.GetInstance(h.ctx, &instancepb.GetInstanceRequest{Name: name}, o...)
			return err
		},
	}
}

// missing checks that the request that ask sends for the given name fails with NOT_FOUND. The parameters text and
// resource, concatenated, are the expected message of the error. The status details and the trailer must contain the
// parameters resource and kind. The parameter what describes the request in the test's errors.
func (h *harness) missing(what string, ask askOf, name, kind, text, resource string) {
	h.Helper()
	var trailer metadata.MD
	err := ask(name, grpc.Trailer(&trailer))
	st := status.Convert(err)
	if st.Code() != codes.NotFound || st.Message() != text+resource {
		h.Errorf("%s: got %v, want %s%s", what, err, text, resource)
		return
	}
	want := &errdetails.ResourceInfo{ResourceType: kind, ResourceName: resource, Description: st.Message()}
	if list := st.Details(); len(list) != 1 || !proto.Equal(list[0].(proto.Message), want) {
		h.Errorf("%s: the details are %v", what, list)
	}
	got := new(errdetails.ResourceInfo)
	if values := trailer.Get("google.rpc.resourceinfo-bin"); len(values) != 1 || proto.Unmarshal([]byte(values[0]), got) != nil || !proto.Equal(got, want) {
		h.Errorf("%s: the trailer is %v", what, trailer)
	}
}
