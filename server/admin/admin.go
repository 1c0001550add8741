// Package admin serves the administrative requests: instances and their configurations (instance.go), databases and
// their schemas (database.go, ddl.go), split points (splitpoint.go), and the long-running operations that these
// requests start (operation.go, resume.go).
//
// Requests for backups, custom configurations and instance partitions get UNIMPLEMENTED, and so does SetIamPolicy.
//
// Imports of this module: database, database/schemachange, database/split, kv, schema, server/listing, server/rpc, server/status, stats/cpu, usererror, value.
package admin

import (
	"context"
	"log/slog"
	"time"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// An Admin holds the administrative services of a server.
type Admin struct {
	instances  instances
	databases  databases
	operations *operations
}

// New returns the administrative services for a registry, and resumes the operations that an earlier process did not
// finish. When ctx ends, the operations that still run are left to the next process.
func New(ctx context.Context, registry *database.Registry, clock func() time.Time, log *slog.Logger) (*Admin, error) {
	os := &operations{ctx: ctx, kept: registry, clock: clock, log: log, running: map[string]*operation{}, newest: map[string]*operation{}}
	a := &Admin{
		instances:  instances{registry: registry, operations: os},
		databases:  databases{registry: registry, operations: os, clock: clock},
		operations: os,
	}
	return a, a.resume(ctx)
}

// Services returns the services with their methods.
func (a *Admin) Services() []rpc.Service {
	return []rpc.Service{
		{Name: "google.spanner.admin.instance.v1.InstanceAdmin", Methods: a.instances.methods()},
		{Name: "google.spanner.admin.database.v1.DatabaseAdmin", Methods: a.databases.methods()},
		{Name: "google.longrunning.Operations", Methods: a.operations.methods()},
	}
}

// Wait waits until no operation runs. Call it after the context of New has ended.
func (a *Admin) Wait() { a.operations.tasks.Wait() }
