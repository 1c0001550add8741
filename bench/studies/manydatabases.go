package studies

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	instance "cloud.google.com/go/spanner/admin/instance/apiv1"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

const (
	manyInstances    = 10
	manyPerInstance  = 100 // Spanner's limit of databases in one instance
	tablesOfDatabase = 20
	// lastCreations is the number of databases whose creation times the run reports. They are the databases that the
	// run creates last.
	lastCreations = 50

	targetCreation = 15 * time.Millisecond
	targetIdle     = 200 << 10 // a target: at most this many bytes of memory for each idle database
)

// createDatabases creates a thousand databases, one after the other, on a server that it starts for this purpose. It
// reports how long the creation of the last ones took, and how much memory the server's process uses for each idle
// database. A short run creates fewer databases.
func createDatabases(ctx context.Context, r *harness.Runner) (err error) {
	t := &harness.Target{DatabaseName: r.Target.DatabaseName, Root: filepath.Join(r.Target.Root, "databases")}
	if err := t.StartServer(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Stop()) }()
	if err := t.Connect(ctx); err != nil {
		return err
	}
	defer t.Disconnect()
	instances, err := instance.NewInstanceAdminClient(ctx, harness.PlainTextOptions(t.Address)...)
	if err != nil {
		return err
	}
	defer instances.Close()
	each := manyPerInstance
	if r.Each < time.Second {
		each = 2
	}
	var took []time.Duration
	var before int64
	for i := range manyInstances {
		parent, err := makeInstance(ctx, instances, i)
		if err != nil {
			return err
		}
		for k := range each {
			// The first instance is full. The memory per database counts from here, because the first databases also
			// allocated memory that all databases share.
			if len(took) == each {
				if before, err = idleMemory(ctx, t, r.Each); err != nil {
					return err
				}
			}
			d, err := createTimed(ctx, t.Admin, parent, k)
			if err != nil {
				return err
			}
			took = append(took, d)
		}
		r.Screen.Note(fmt.Sprintf("created %d databases", len(took)))
	}
	after, err := idleMemory(ctx, t, r.Each)
	if err != nil {
		return err
	}
	last := took[max(0, len(took)-lastCreations):]
	slices.Sort(last)
	r.Fact("database %d of %d tables: created in %.1f ms, the median of the last %d; the longest took %.1f ms (target <= %d)", len(took), tablesOfDatabase,
		inMilliseconds(last[len(last)/2]), len(last), inMilliseconds(last[len(last)-1]), targetCreation.Milliseconds())
	r.Fact("an idle database takes %d kB of memory (target <= %d)", (after-before)/int64(len(took)-each)>>10, targetIdle>>10)
	return nil
}

func inMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func makeInstance(ctx context.Context, admin *instance.InstanceAdminClient, i int) (name string, err error) {
	id := fmt.Sprintf("many-%d", i)
	op, err := admin.CreateInstance(ctx, &instancepb.CreateInstanceRequest{
		Parent: "projects/bench", InstanceId: id,
		Instance: &instancepb.Instance{Config: "projects/bench/instanceConfigs/emulator-config", DisplayName: id, NodeCount: 1},
	})
	if err == nil {
		_, err = op.Wait(ctx)
	}
	return "projects/bench/instances/" + id, err
}

func createTimed(ctx context.Context, admin *database.DatabaseAdminClient, parent string, k int) (time.Duration, error) {
	var tables []string
	for i := range tablesOfDatabase {
		tables = append(tables, fmt.Sprintf("CREATE TABLE Table%d (Id INT64 NOT NULL, Name STRING(100), Amount NUMERIC, Paid BOOL, Created TIMESTAMP) PRIMARY KEY (Id)", i))
	}
	began := time.Now()
	op, err := admin.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{
		Parent: parent, CreateStatement: fmt.Sprintf("CREATE DATABASE `db-%d`", k), ExtraStatements: tables,
	})
	if err == nil {
		_, err = op.Wait(ctx)
	}
	return time.Since(began), err
}

// idleMemory lets the server idle for idleAfterLoad or, if it is shorter, for the duration in the parameter each. Then
// it returns the memory of the server's process in bytes.
func idleMemory(ctx context.Context, t *harness.Target, each time.Duration) (int64, error) {
	select {
	case <-time.After(min(idleAfterLoad, each)):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return t.Process.PID().Anonymous()
}
