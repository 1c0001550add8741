package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cockroachdb/datadriven"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// TestErrors runs the scripts in testdata/errors against a server, over gRPC, and checks that each answer has the code
// and the text that its script says. The directives of a script are:
//
//	ddl      UpdateDatabaseDdl, once for each statement; a semicolon at the end of a line ends a statement
//	commit   Commit: each line is a mutation in JSON, or a list of mutations
//	read     StreamingRead: each line is a ReadRequest in JSON, without its session
//	sql      ExecuteSql: each line is a statement, or an ExecuteSqlRequest in JSON
//	call     any method that is not streamed: each line is its name and its request in JSON
//
// The directive sql runs DML in a transaction, and then commits the transaction. In the request of the directive call,
// $session stands for the name of a session. Every script begins with an empty database.
func TestErrors(t *testing.T) {
	datadriven.Walk(t, "testdata/errors", func(t *testing.T, path string) {
		h := newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, nil)
		s := &scripted{h, h.session(true)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			run, split := map[string]func(string) string{"ddl": s.ddl, "commit": s.commit, "read": s.read, "sql": s.sql, "call": s.call}[d.Cmd], "\n"
			if run == nil {
				t.Fatalf("%s: unknown directive %s", d.Pos, d.Cmd)
			}
			if d.Cmd == "ddl" {
				split = ";\n"
			}
			var out strings.Builder
			for _, item := range strings.Split(strings.TrimSuffix(d.Input, ";"), split) {
				fmt.Fprintln(&out, run(item))
			}
			return out.String()
		})
	})
}

// scripted runs the directives of a script in one session.
type scripted struct {
	*harness
	session string
}

// answer returns the code and the text of an error as one string. If err is nil, it returns its second argument.
func answer(err error, without string) string {
	if err == nil {
		return without
	}
	st := status.Convert(err)
	return fmt.Sprintf("%s: %s", st.Code(), st.Message())
}

func (s *scripted) ddl(statement string) string {
	return s.ended(s.databases.UpdateDatabaseDdl(s.ctx, &databasepb.UpdateDatabaseDdlRequest{Database: testDatabase, Statements: []string{statement}}))
}

// ended waits until an operation has ended, and returns its result as text. If err is not nil, it returns that error as
// text.
func (s *scripted) ended(op *longrunningpb.Operation, err error) string {
	for err == nil && !op.Done {
		op, err = s.ops.WaitOperation(s.ctx, &longrunningpb.WaitOperationRequest{Name: op.Name})
	}
	if err == nil {
		err = status.FromProto(op.GetError()).Err()
	}
	return answer(err, "ok")
}

func (s *scripted) decode(text string, m proto.Message) {
	s.Helper()
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		s.Fatalf("%s: %v", text, err)
	}
}

func (s *scripted) commit(text string) string {
	var list []json.RawMessage
	if json.Unmarshal([]byte(text), &list) != nil {
		list = []json.RawMessage{json.RawMessage(text)}
	}
	mutations := make([]*spannerpb.Mutation, len(list))
	for i, raw := range list {
		mutations[i] = new(spannerpb.Mutation)
		s.decode(string(raw), mutations[i])
	}
	_, err := s.data.Commit(s.ctx, singleUse(s.session, mutations...))
	return answer(err, "ok")
}

func (s *scripted) read(text string) string {
	req := &spannerpb.ReadRequest{}
	s.decode(text, req)
	req.Session = s.session
	set, err := s.data.Read(s.ctx, req)
	return answer(err, rowsJSON(set))
}

func (s *scripted) sql(text string) string {
	req := &spannerpb.ExecuteSqlRequest{Sql: text}
	if strings.HasPrefix(text, "{") {
		req.Sql = ""
		s.decode(text, req)
	}
	req.Session = s.session
	verb, _, _ := strings.Cut(strings.ToUpper(req.Sql), " ")
	isDML := verb == "INSERT" || verb == "UPDATE" || verb == "DELETE"
	if isDML && req.Transaction == nil {
		req.Transaction = begins(readWrite())
	}
	set, err := s.data.ExecuteSql(s.ctx, req)
	if id := set.GetMetadata().GetTransaction().GetId(); err == nil && isDML && id != nil {
		_, err = s.data.Commit(s.ctx, &spannerpb.CommitRequest{Session: s.session, Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: id}})
	}
	if isDML {
		return answer(err, fmt.Sprintf("%d rows", set.GetStats().GetRowCountExact()))
	}
	return answer(err, rowsJSON(set))
}

// rowsJSON formats the rows of a result, each row as a JSON list.
func rowsJSON(set *spannerpb.ResultSet) string {
	var list []string
	for _, row := range set.GetRows() {
		text, err := json.Marshal(row.AsSlice())
		if err != nil {
			return codes.Internal.String()
		}
		list = append(list, string(text))
	}
	if list == nil {
		return "no rows"
	}
	return strings.Join(list, " ")
}

// call calls a method of any service. If the method starts an operation, call waits for the operation's end.
func (s *scripted) call(text string) string {
	name, request, _ := strings.Cut(text, " ")
	reply, err := s.invoke(name, strings.ReplaceAll(request, "$session", s.session))
	if op, ok := reply.(*longrunningpb.Operation); ok && err == nil {
		return s.ended(op, err)
	}
	return answer(err, "ok")
}

// invoke calls the method with the given name. It searches all services of the API for the method.
func (h *harness) invoke(name, request string) (reply proto.Message, err error) {
	for _, service := range apiServices {
		method := service.Methods().ByName(protoreflect.Name(name))
		if method == nil {
			continue
		}
		in, out := newMessage(h, method.Input()), newMessage(h, method.Output())
		if err := protojson.Unmarshal([]byte(request), in); err != nil {
			h.Fatalf("%s: %v", request, err)
		}
		return out, h.conn.Invoke(h.ctx, fmt.Sprintf("/%s/%s", service.FullName(), name), in, out)
	}
	h.Fatalf("no method %s", name)
	return nil, nil
}

var apiServices = []protoreflect.ServiceDescriptor{
	spannerpb.File_google_spanner_v1_spanner_proto.Services().Get(0),
	databasepb.File_google_spanner_admin_database_v1_spanner_database_admin_proto.Services().Get(0),
	instancepb.File_google_spanner_admin_instance_v1_spanner_instance_admin_proto.Services().Get(0),
	longrunningpb.File_google_longrunning_operations_proto.Services().Get(0),
}

func newMessage(h *harness, d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	h.ok(err)
	return t.New().Interface()
}
