package server

import (
	"testing"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

func TestInstances(t *testing.T) {
	h := newHarness(t)
	const config = "projects/p/instanceConfigs/emulator-config"
	op, err := h.instances.CreateInstance(h.ctx, &instancepb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: "other",
		Instance: &instancepb.Instance{Config: config, DisplayName: "Other", ProcessingUnits: 500, Labels: map[string]string{"env": "dev"}},
	})
	h.ok(err)
	created := new(instancepb.Instance)
	h.ok(op.GetResponse().UnmarshalTo(created))
	if !op.Done || created.Name != "projects/p/instances/other" || created.State != instancepb.Instance_READY || created.ProcessingUnits != 500 {
		t.Errorf("bad instance %v", created)
	}
	_, err = h.instances.CreateInstance(h.ctx, &instancepb.CreateInstanceRequest{Parent: "projects/p", InstanceId: "other", Instance: &instancepb.Instance{Config: config}})
	h.fails(err, codes.AlreadyExists)
	for _, bad := range []*instancepb.CreateInstanceRequest{
		{Parent: "projects/p", InstanceId: "fine"},
		{Parent: "projects/p", InstanceId: "fine", Instance: &instancepb.Instance{NodeCount: 1}},
		{Parent: "projects/p", InstanceId: "Bad", Instance: &instancepb.Instance{Config: config}},
		{Parent: "p", InstanceId: "fine", Instance: &instancepb.Instance{Config: config}},
		{Parent: "projects/p", InstanceId: "fine", Instance: &instancepb.Instance{Config: config, ProcessingUnits: 150}},
		{Parent: "projects/p", InstanceId: "fine", Instance: &instancepb.Instance{Config: config, NodeCount: -1}},
		{Parent: "projects/p", InstanceId: "fine", Instance: &instancepb.Instance{Config: config, Name: "projects/p/instances/else"}},
	} {
		_, err = h.instances.CreateInstance(h.ctx, bad)
		h.fails(err, codes.InvalidArgument)
	}
	_, err = h.instances.CreateInstance(h.ctx, &instancepb.CreateInstanceRequest{Parent: "projects/p", InstanceId: "fine", Instance: &instancepb.Instance{Config: "projects/p/instanceConfigs/nowhere"}})
	h.fails(err, codes.NotFound)

	_, err = h.instances.UpdateInstance(h.ctx, &instancepb.UpdateInstanceRequest{
		Instance:  &instancepb.Instance{Name: created.Name, DisplayName: "Renamed", NodeCount: 2},
		FieldMask: &fieldmaskpb.FieldMask{Paths: []string{"display_name", "node_count"}},
	})
	h.ok(err)
	got, err := h.instances.GetInstance(h.ctx, &instancepb.GetInstanceRequest{Name: created.Name, FieldMask: &fieldmaskpb.FieldMask{Paths: []string{"display_name", "node_count"}}})
	h.ok(err)
	if got.DisplayName != "Renamed" || got.NodeCount != 2 || got.Name == "" || got.Config != "" {
		t.Errorf("bad instance %v", got)
	}
	page, err := h.instances.ListInstances(h.ctx, &instancepb.ListInstancesRequest{Parent: "projects/p", Filter: "labels.env:dev"})
	h.ok(err)
	if len(page.Instances) != 1 {
		t.Errorf("bad list %v", page.Instances)
	}
	_, err = h.instances.DeleteInstance(h.ctx, &instancepb.DeleteInstanceRequest{Name: created.Name})
	h.ok(err)
	_, err = h.instances.GetInstance(h.ctx, &instancepb.GetInstanceRequest{Name: created.Name})
	h.fails(err, codes.NotFound)
	wantResource(t, err, "type.googleapis.com/google.spanner.admin.instance.v1.Instance", "Instance not found: ")
	configs, err := h.instances.ListInstanceConfigs(h.ctx, &instancepb.ListInstanceConfigsRequest{Parent: "projects/p", PageSize: 2})
	h.ok(err)
	if len(configs.InstanceConfigs) != 2 || configs.NextPageToken == "" {
		t.Errorf("bad configs %v", configs)
	}
	_, err = h.instances.GetInstanceConfig(h.ctx, &instancepb.GetInstanceConfigRequest{Name: "projects/p/instanceConfigs/regional-us-east4"})
	h.ok(err)
	multi, err := h.instances.GetInstanceConfig(h.ctx, &instancepb.GetInstanceConfigRequest{Name: "projects/p/instanceConfigs/nam3"})
	h.ok(err)
	if len(multi.LeaderOptions) != 2 || !multi.Replicas[0].DefaultLeaderLocation || multi.Replicas[1].DefaultLeaderLocation {
		t.Errorf("bad configuration of several regions %v", multi)
	}
	_, err = h.instances.CreateInstancePartition(h.ctx, &instancepb.CreateInstancePartitionRequest{})
	h.fails(err, codes.Unimplemented)
}

func TestDatabases(t *testing.T) {
	h := newHarness(t)
	op, err := h.databases.CreateDatabase(h.ctx, &databasepb.CreateDatabaseRequest{
		Parent: testInstance, CreateStatement: "CREATE DATABASE `my-db`", ExtraStatements: []string{"CREATE TABLE T (K INT64) PRIMARY KEY (K)"},
	})
	h.ok(err)
	created := new(databasepb.Database)
	h.ok(op.GetResponse().UnmarshalTo(created))
	if created.Name != testInstance+"/databases/my-db" || created.State != databasepb.Database_READY {
		t.Errorf("bad database %v", created)
	}
	_, err = h.databases.CreateDatabase(h.ctx, &databasepb.CreateDatabaseRequest{Parent: testInstance, CreateStatement: "CREATE DATABASE `my-db`"})
	h.fails(err, codes.AlreadyExists)
	_, err = h.databases.CreateDatabase(h.ctx, &databasepb.CreateDatabaseRequest{Parent: testInstance, CreateStatement: "CREATE TABLE T"})
	h.fails(err, codes.InvalidArgument)
	_, err = h.databases.CreateDatabase(h.ctx, &databasepb.CreateDatabaseRequest{Parent: testInstance, CreateStatement: "CREATE DATABASE pg", DatabaseDialect: databasepb.DatabaseDialect_POSTGRESQL})
	h.fails(err, codes.Unimplemented)
	for wrong, code := range map[string]codes.Code{
		"CREATE INDEX I ON Missing (K)":                                      codes.NotFound,
		"ALTER DATABASE wrong SET OPTIONS (version_retention_period = '0d')": codes.InvalidArgument,
	} {
		_, err = h.databases.CreateDatabase(h.ctx, &databasepb.CreateDatabaseRequest{
			Parent: testInstance, CreateStatement: "CREATE DATABASE wrong", ExtraStatements: []string{"CREATE TABLE T (K INT64) PRIMARY KEY (K)", wrong},
		})
		h.fails(err, code) // the call itself must fail, instead of returning an operation that fails
	}
	_, err = h.databases.UpdateDatabaseDdl(h.ctx, &databasepb.UpdateDatabaseDdlRequest{Database: created.Name, Statements: []string{
		"CREATE TABLE U (K INT64) PRIMARY KEY (K)", "ALTER DATABASE wrong SET OPTIONS (version_retention_period = '0d')",
	}})
	h.fails(err, codes.InvalidArgument)

	update := func(on bool) {
		t.Helper()
		_, err := h.databases.UpdateDatabase(h.ctx, &databasepb.UpdateDatabaseRequest{
			Database: &databasepb.Database{Name: created.Name, EnableDropProtection: on}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"enable_drop_protection"}},
		})
		h.ok(err)
	}
	update(true)
	_, err = h.databases.DropDatabase(h.ctx, &databasepb.DropDatabaseRequest{Database: created.Name})
	h.fails(err, codes.FailedPrecondition)
	update(false)
	_, err = h.databases.DropDatabase(h.ctx, &databasepb.DropDatabaseRequest{Database: created.Name})
	h.ok(err)
	list, err := h.databases.ListDatabases(h.ctx, &databasepb.ListDatabasesRequest{Parent: testInstance})
	h.ok(err)
	if len(list.Databases) != 1 {
		t.Errorf("bad list %v", list)
	}
	roles, err := h.databases.ListDatabaseRoles(h.ctx, &databasepb.ListDatabaseRolesRequest{Parent: testDatabase})
	h.ok(err)
	if len(roles.DatabaseRoles) != 3 {
		t.Errorf("bad roles %v", roles)
	}
	_, err = h.databases.CreateBackup(h.ctx, &databasepb.CreateBackupRequest{})
	h.fails(err, codes.Unimplemented)
}

func TestSchemaChange(t *testing.T) {
	h := newHarness(t)
	req := &databasepb.UpdateDatabaseDdlRequest{
		Database: testDatabase, OperationId: "my_change",
		Statements: []string{"CREATE TABLE A (K INT64) PRIMARY KEY (K)", "CREATE TABLE Singers (K INT64) PRIMARY KEY (K)", "CREATE TABLE C (K INT64) PRIMARY KEY (K)"},
	}
	op, err := h.databases.UpdateDatabaseDdl(h.ctx, req)
	h.ok(err)
	op, err = h.ops.WaitOperation(h.ctx, &longrunningpb.WaitOperationRequest{Name: op.Name, Timeout: durationpb.New(30e9)})
	h.ok(err)
	metadata := new(databasepb.UpdateDatabaseDdlMetadata)
	h.ok(op.Metadata.UnmarshalTo(metadata))
	if op.Name != testDatabase+"/operations/my_change" || !op.Done || codes.Code(op.GetError().GetCode()) != codes.FailedPrecondition {
		t.Errorf("bad operation %v", op)
	}
	if len(metadata.CommitTimestamps) != 1 || len(metadata.Progress) != 3 || metadata.Progress[0].ProgressPercent != 100 || metadata.Progress[1].ProgressPercent != 0 {
		t.Errorf("bad metadata %v", metadata)
	}
	_, err = h.databases.UpdateDatabaseDdl(h.ctx, req)
	h.fails(err, codes.AlreadyExists)
	ddl, err := h.databases.GetDatabaseDdl(h.ctx, &databasepb.GetDatabaseDdlRequest{Database: testDatabase})
	h.ok(err)
	if len(ddl.Statements) != len(testSchema)+1 {
		t.Errorf("bad schema %q", ddl.Statements)
	}
	for _, bad := range [][]string{nil, {"CREATE TABEL A"}, {""}} {
		_, err = h.databases.UpdateDatabaseDdl(h.ctx, &databasepb.UpdateDatabaseDdlRequest{Database: testDatabase, Statements: bad})
		h.fails(err, codes.InvalidArgument)
	}
}

// TestDatabaseOptions checks that the Database message and DATABASE_OPTIONS show the options that ALTER DATABASE sets,
// until they are set to NULL.
func TestDatabaseOptions(t *testing.T) {
	h := newHarness(t)
	ses := h.session(false)
	check := func(retention, leader, options string) {
		t.Helper()
		d, err := h.databases.GetDatabase(h.ctx, &databasepb.GetDatabaseRequest{Name: testDatabase})
		h.ok(err)
		if d.VersionRetentionPeriod != retention || d.DefaultLeader != leader || d.EarliestVersionTime == nil {
			t.Errorf("bad database %v", d)
		}
		rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{
			Session: ses, Sql: "SELECT STRING_AGG(OPTION_NAME || ' ' || OPTION_VALUE, '; ' ORDER BY OPTION_NAME) FROM INFORMATION_SCHEMA.DATABASE_OPTIONS",
		})
		h.ok(err)
		if got := rs.Rows[0].Values[0].GetStringValue(); got != options {
			t.Errorf("options %s, want %s", got, options)
		}
	}
	const dialect = "database_dialect GOOGLE_STANDARD_SQL"
	check("1h", "", dialect)
	h.alter(`ALTER DATABASE db SET OPTIONS (version_retention_period = '36h', default_leader = 'us-east1', read_lease_regions = 'us-east1,us-west1',
		optimizer_version = 5, optimizer_statistics_package = 'auto_1', use_unenforced_foreign_key_for_query_optimization = false)`)
	check("36h", "us-east1", dialect+"; default_leader us-east1; optimizer_statistics_package auto_1; optimizer_version 5; "+
		"read_lease_regions us-east1,us-west1; use_unenforced_foreign_key_for_query_optimization FALSE; version_retention_period 36h")
	h.alter(`ALTER DATABASE db SET OPTIONS (version_retention_period = NULL, default_leader = NULL, read_lease_regions = NULL,
		optimizer_version = NULL, optimizer_statistics_package = NULL, use_unenforced_foreign_key_for_query_optimization = NULL)`)
	check("1h", "", dialect)
}

func TestOperations(t *testing.T) {
	h := newHarness(t)
	for _, id := range []string{"one", "two"} {
		_, err := h.databases.UpdateDatabaseDdl(h.ctx, &databasepb.UpdateDatabaseDdlRequest{
			Database: testDatabase, OperationId: id, Statements: []string{"CREATE TABLE " + id + " (K INT64) PRIMARY KEY (K)"},
		})
		h.ok(err)
	}
	list, err := h.ops.ListOperations(h.ctx, &longrunningpb.ListOperationsRequest{Name: testDatabase + "/operations", Filter: `(done:true) AND (name:two)`})
	h.ok(err)
	if len(list.Operations) != 1 {
		t.Errorf("bad list %v", list)
	}
	ofInstance, err := h.databases.ListDatabaseOperations(h.ctx, &databasepb.ListDatabaseOperationsRequest{Parent: testInstance, Filter: "metadata.@type:UpdateDatabaseDdlMetadata"})
	h.ok(err)
	if len(ofInstance.Operations) != 2 {
		t.Errorf("bad list %v", ofInstance)
	}
	_, err = h.ops.CancelOperation(h.ctx, &longrunningpb.CancelOperationRequest{Name: testDatabase + "/operations/one"})
	h.ok(err)
	_, err = h.ops.DeleteOperation(h.ctx, &longrunningpb.DeleteOperationRequest{Name: testDatabase + "/operations/one"})
	h.ok(err)
	_, err = h.ops.GetOperation(h.ctx, &longrunningpb.GetOperationRequest{Name: testDatabase + "/operations/one"})
	h.fails(err, codes.NotFound)
	_, err = h.ops.ListOperations(h.ctx, &longrunningpb.ListOperationsRequest{Name: testDatabase, Filter: "shape:round"})
	h.fails(err, codes.InvalidArgument)
}
