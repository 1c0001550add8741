package admin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
)

// resume continues the operations that were running when the last process ended, in the order in which they began. A
// schema change continues where it was; the creation of a database starts again. An operation that cannot continue ends
// with an error.
func (a *Admin) resume(ctx context.Context) error {
	var running []*database.Operation
	for o, err := range a.databases.registry.Operations("", "") {
		if err != nil {
			return err
		}
		if o.Ended.IsZero() {
			running = append(running, o)
		}
	}
	slices.SortFunc(running, func(x, y *database.Operation) int {
		return cmp.Or(x.Started.Compare(y.Started), cmp.Compare(x.Name, y.Name))
	})
	for _, o := range running {
		t, err := a.again(ctx, o)
		if err != nil {
			return fmt.Errorf("resume %s: %w", o.Name, err)
		}
		a.operations.log.Info("operation resumed", slog.String("operation", o.Name))
		a.operations.resume(o, t)
	}
	return nil
}

// again returns the task to resume an operation that another process began.
func (a *Admin) again(ctx context.Context, o *database.Operation) (task, error) {
	begun, err := unpack(o)
	if err != nil {
		return task{}, err
	}
	metadata, err := begun.Metadata.UnmarshalNew()
	if err != nil {
		return task{}, err
	}
	packed := new(anypb.Any)
	if err := proto.Unmarshal(o.Request, packed); err != nil {
		return task{}, err
	}
	request, err := packed.UnmarshalNew()
	if err != nil {
		return task{}, err
	}
	t := task{request: request, metadata: metadata}
	switch req := request.(type) {
	case *databasepb.CreateDatabaseRequest:
		t.resource = metadata.(*databasepb.CreateDatabaseMetadata).Database
		t.work = a.databases.createAgain(ctx, t.resource, o.Name, req)
	case *databasepb.UpdateDatabaseDdlRequest:
		t.resource = req.Database
		t.work, err = a.databases.changeAgain(ctx, o, req, metadata.(*databasepb.UpdateDatabaseDdlMetadata))
		return t, err
	default:
		return task{}, fmt.Errorf("a %T cannot be resumed", req)
	}
	return t, nil
}

// createAgain returns the work that resumes CreateDatabase. If the operation had already created the database, the work
// only returns it.
func (s *databases) createAgain(ctx context.Context, name, by string, req *databasepb.CreateDatabaseRequest) work {
	if d, err := s.registry.Database(name); err == nil && d.MadeBy(by) {
		return func(context.Context, *operation) (proto.Message, error) { return databaseProto(d), nil }
	}
	c, err := s.registry.BeginDatabase(ctx, name)
	if err != nil {
		return failing(err)
	}
	return func(ctx context.Context, op *operation) (proto.Message, error) {
		if err := c.Plan(ctx, req.ExtraStatements, req.ProtoDescriptors); err != nil {
			c.End()
			return nil, err
		}
		return create(c)(ctx, op)
	}
}

// changeAgain returns the work that resumes UpdateDatabaseDdl. It adds the statements that have taken effect to the
// metadata m.
func (s *databases) changeAgain(ctx context.Context, o *database.Operation, req *databasepb.UpdateDatabaseDdlRequest, m *databasepb.UpdateDatabaseDdlMetadata) (work, error) {
	applied, err := s.registry.Applied(o)
	if err != nil {
		return nil, err
	}
	if len(applied) > len(req.Statements) {
		return nil, fmt.Errorf("%d of its %d statements have taken effect", len(applied), len(req.Statements))
	}
	for i, at := range applied {
		noteProgress(m, schemachange.Progress{Statement: i, Percent: 100, Commit: at})
	}
	d, err := s.registry.Database(req.Database)
	if err != nil {
		return failing(err), nil
	}
	underWay, ok, err := d.Interrupted(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	if ok && underWay.Statement == len(applied) {
		noteProgress(m, underWay)
	}
	return changeSchema(d, req, len(applied)), nil
}

// failing returns work that fails with err.
func failing(err error) work {
	return func(context.Context, *operation) (proto.Message, error) { return nil, err }
}

// resume runs the task t of the operation o, which another process began. The caller resumes operations in the order in
// which they began.
func (os *operations) resume(o *database.Operation, t task) {
	op := &operation{name: o.Name, started: o.Started, metadata: t.metadata}
	os.records.Lock()
	os.latest = o.Started
	os.records.Unlock()
	os.mu.Lock()
	os.enlist(op, t.resource)
	os.mu.Unlock()
	if o.Cancelled {
		op.cancel()
	}
	os.launch(op, t)
}
