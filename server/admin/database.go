package admin

import (
	"context"
	"strings"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/server/listing"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// databases implements google.spanner.admin.database.v1.DatabaseAdmin.
type databases struct {
	registry   *database.Registry
	operations *operations
	clock      func() time.Time
}

// methods returns the RPCs about databases and their schemas. Other methods of DatabaseAdmin (backups, SetIamPolicy)
// get UNIMPLEMENTED; docs/limits.md lists them.
func (s *databases) methods() []rpc.Method {
	return []rpc.Method{
		rpc.Unary("ListDatabases", s.listDatabases),
		rpc.Unary("CreateDatabase", s.createDatabase),
		rpc.Unary("GetDatabase", s.getDatabase),
		rpc.Unary("UpdateDatabase", s.updateDatabase),
		rpc.Unary("DropDatabase", s.dropDatabase),
		rpc.Unary("UpdateDatabaseDdl", s.updateDatabaseDDL),
		rpc.Unary("GetDatabaseDdl", s.getDatabaseDDL),
		rpc.Unary("ListDatabaseOperations", s.listDatabaseOperations),
		rpc.Unary("ListDatabaseRoles", s.listDatabaseRoles),
		rpc.Unary("TestIamPermissions", s.testIAMPermissions),
		rpc.Unary("GetIamPolicy", s.getIAMPolicy),
		rpc.Unary("AddSplitPoints", s.addSplitPoints),
	}
}

func databaseProto(d *database.Database) *databasepb.Database {
	return &databasepb.Database{
		Name:                   d.Name(),
		State:                  databasepb.Database_READY,
		CreateTime:             timestamppb.New(d.Created()),
		VersionRetentionPeriod: retentionText(d),
		DefaultLeader:          d.Catalog().Options["default_leader"],
		EarliestVersionTime:    timestamppb.New(d.EarliestVersion()),
		DatabaseDialect:        databasepb.DatabaseDialect_GOOGLE_STANDARD_SQL,
		EnableDropProtection:   d.DropProtection(),
	}
}

// retentionText returns the version retention period as the user wrote it, or the default.
func retentionText(d *database.Database) string {
	if text := d.Catalog().Options["version_retention_period"]; text != "" {
		return text
	}
	return "1h"
}

func (s *databases) listDatabases(_ context.Context, req *databasepb.ListDatabasesRequest) (*databasepb.ListDatabasesResponse, error) {
	if _, err := s.registry.Instance(req.Parent); err != nil {
		return nil, err
	}
	list, err := s.registry.Databases(req.Parent)
	if err != nil {
		return nil, err
	}
	list, next, err := listing.Page(req, list, (*database.Database).Name)
	if err != nil {
		return nil, err
	}
	reply := &databasepb.ListDatabasesResponse{NextPageToken: next}
	for _, d := range list {
		reply.Databases = append(reply.Databases, databaseProto(d))
	}
	return reply, nil
}

// createDatabase starts the creation of a database as an operation. If one of its DDL statements is wrong, the call
// fails and no operation begins, as in Cloud Spanner.
func (s *databases) createDatabase(ctx context.Context, req *databasepb.CreateDatabaseRequest) (*longrunningpb.Operation, error) {
	if _, err := s.registry.Instance(req.Parent); err != nil {
		return nil, err
	}
	if req.DatabaseDialect == databasepb.DatabaseDialect_POSTGRESQL {
		return nil, usererror.Unsupported("The PostgreSQL dialect")
	}
	id, err := schema.DatabaseName(req.CreateStatement)
	if err != nil {
		return nil, err
	}
	name := req.Parent + "/databases/" + id
	if err := database.CheckDatabaseName(name); err != nil {
		return nil, err
	}
	creation, err := s.registry.BeginDatabase(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := creation.Plan(ctx, req.ExtraStatements, req.ProtoDescriptors); err != nil {
		creation.End()
		return nil, err
	}
	op, err := s.operations.start(ctx, task{
		resource: name, metadata: &databasepb.CreateDatabaseMetadata{Database: name}, request: req, work: create(creation),
	})
	if op == nil {
		creation.End()
	}
	return op, err
}

// create returns the function that an operation of CreateDatabase runs. It creates the database that c.Plan has
// planned.
func create(c *database.Creation) work {
	return func(ctx context.Context, op *operation) (proto.Message, error) {
		defer c.End()
		d, err := c.Run(ctx, op.name)
		if err != nil {
			return nil, err
		}
		return databaseProto(d), nil
	}
}

func (s *databases) getDatabase(_ context.Context, req *databasepb.GetDatabaseRequest) (*databasepb.Database, error) {
	d, err := s.registry.Database(req.Name)
	if err != nil {
		return nil, err
	}
	return databaseProto(d), nil
}

func (s *databases) updateDatabase(ctx context.Context, req *databasepb.UpdateDatabaseRequest) (*longrunningpb.Operation, error) {
	d, err := s.registry.Database(req.GetDatabase().GetName())
	if err != nil {
		return nil, err
	}
	paths := req.GetUpdateMask().GetPaths()
	if len(paths) == 0 {
		return nil, usererror.MissingField("update_mask")
	}
	for _, path := range paths {
		if path != "enable_drop_protection" {
			return nil, usererror.InvalidFieldMask(path)
		}
	}
	metadata := &databasepb.UpdateDatabaseMetadata{
		Request:  req,
		Progress: &databasepb.OperationProgress{StartTime: timestamppb.New(s.clock())},
	}
	return s.operations.start(ctx, task{resource: d.Name(), metadata: metadata, work: func(_ context.Context, op *operation) (proto.Message, error) {
		if err := d.SetDropProtection(req.Database.EnableDropProtection); err != nil {
			return nil, err
		}
		op.update(func(m proto.Message) {
			p := m.(*databasepb.UpdateDatabaseMetadata).Progress
			p.ProgressPercent, p.EndTime = 100, timestamppb.New(s.clock())
		})
		return databaseProto(d), nil
	}})
}

func (s *databases) dropDatabase(_ context.Context, req *databasepb.DropDatabaseRequest) (*emptypb.Empty, error) {
	if _, err := s.registry.Database(req.Database); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, s.operations.dropping(req.Database, func() (*database.Dropped, error) { return s.registry.DropDatabase(req.Database) })
}

func (s *databases) listDatabaseRoles(_ context.Context, req *databasepb.ListDatabaseRolesRequest) (*databasepb.ListDatabaseRolesResponse, error) {
	d, err := s.registry.Database(req.Parent)
	if err != nil {
		return nil, err
	}
	var list []*databasepb.DatabaseRole
	for _, name := range d.Catalog().RoleNames() {
		list = append(list, &databasepb.DatabaseRole{Name: req.Parent + "/databaseRoles/" + name})
	}
	list, next, err := listing.Page(req, list, (*databasepb.DatabaseRole).GetName)
	if err != nil {
		return nil, err
	}
	return &databasepb.ListDatabaseRolesResponse{DatabaseRoles: list, NextPageToken: next}, nil
}

func (s *databases) listDatabaseOperations(_ context.Context, req *databasepb.ListDatabaseOperationsRequest) (*databasepb.ListDatabaseOperationsResponse, error) {
	if _, err := s.registry.Instance(req.Parent); err != nil {
		return nil, err
	}
	ofDatabase := func(name string) bool { return strings.Contains(name, "/databases/") }
	list, next, err := s.operations.listed(req, req.Parent+"/databases/", ofDatabase)
	if err != nil {
		return nil, err
	}
	return &databasepb.ListDatabaseOperationsResponse{Operations: list, NextPageToken: next}, nil
}
