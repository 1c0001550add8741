package admin

import (
	"context"
	"regexp"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/usererror"
)

func (s *databases) getDatabaseDDL(_ context.Context, req *databasepb.GetDatabaseDdlRequest) (*databasepb.GetDatabaseDdlResponse, error) {
	d, err := s.registry.Database(req.Database)
	if err != nil {
		return nil, err
	}
	return &databasepb.GetDatabaseDdlResponse{Statements: d.DDL(), ProtoDescriptors: d.ProtoDescriptors()}, nil
}

// operationID is the pattern of operation ids that a client may choose:
// https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.admin.database.v1#updatedatabaseddlrequest.
var operationID = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// updateDatabaseDDL starts a schema change as an operation. If a statement does not parse, the call fails at once. If a
// statement fails for another reason, the operation ends with its error; the statements before it have taken effect.
func (s *databases) updateDatabaseDDL(ctx context.Context, req *databasepb.UpdateDatabaseDdlRequest) (*longrunningpb.Operation, error) {
	d, err := s.registry.Database(req.Database)
	if err != nil {
		return nil, err
	}
	switch {
	case len(req.Statements) == 0:
		return nil, usererror.MissingField("statements")
	case req.OperationId != "" && !operationID.MatchString(req.OperationId):
		return nil, usererror.InvalidOperationID(req.OperationId)
	}
	if err := d.CheckSyntax(req.Statements); err != nil {
		return nil, err
	}
	return s.operations.start(ctx, task{
		resource: d.Name(), id: req.OperationId, metadata: ddlMetadata(req, s.clock()), request: req, work: changeSchema(d, req, 0),
	})
}

// changeSchema returns the work of UpdateDatabaseDdl. The parameter applied is the number of statements at the
// beginning of the request that have already taken effect. The work skips these. Schema changes of a database run in
// the order in which their operations began.
func changeSchema(d *database.Database, req *databasepb.UpdateDatabaseDdlRequest, applied int) work {
	return func(ctx context.Context, op *operation) (proto.Message, error) {
		if err := op.awaitEarlier(ctx); err != nil {
			return nil, err
		}
		note := func(p schemachange.Progress) {
			op.update(func(m proto.Message) { noteProgress(m.(*databasepb.UpdateDatabaseDdlMetadata), p) })
		}
		by := &schemachange.Operation{
			Name: op.name, Began: op.started, Applied: applied, ProtoDescriptors: req.ProtoDescriptors, Progress: note,
			Interrupted: func() bool { return op.server.Err() != nil },
		}
		return &emptypb.Empty{}, d.UpdateSchema(ctx, req.Statements, by)
	}
}

// ddlMetadata returns the metadata of an operation that begins at the given time.
func ddlMetadata(req *databasepb.UpdateDatabaseDdlRequest, began time.Time) *databasepb.UpdateDatabaseDdlMetadata {
	m := &databasepb.UpdateDatabaseDdlMetadata{Database: req.Database, Statements: req.Statements}
	for range req.Statements {
		m.Progress = append(m.Progress, &databasepb.OperationProgress{})
	}
	m.Progress[0].StartTime = timestamppb.New(began)
	return m
}

// noteProgress records a statement's progress in the operation's metadata m. At 100 percent it also sets the
// statement's end time, and the start time of the next statement.
func noteProgress(m *databasepb.UpdateDatabaseDdlMetadata, p schemachange.Progress) {
	i := p.Statement
	// p.Percent is an estimate and may fall, but clients must not see it fall.
	m.Progress[i].ProgressPercent = max(m.Progress[i].ProgressPercent, int32(p.Percent))
	if p.Percent < 100 {
		return
	}
	at := timestamppb.New(p.Commit)
	m.CommitTimestamps = append(m.CommitTimestamps, at)
	m.Progress[i].EndTime = at
	if i+1 < len(m.Progress) {
		m.Progress[i+1].StartTime = at
	}
}
