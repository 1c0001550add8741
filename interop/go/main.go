// Command go is a small application that uses the official Go client. It makes schema changes, writes, reads,
// transactions, partitioned reads and stale reads, and checks the results. It connects to the server that
// SPANNER_EMULATOR_HOST names.
//
// Imports of this module: nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"reflect"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	instance "cloud.google.com/go/spanner/admin/instance/apiv1"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
)

type app struct {
	instances *instance.InstanceAdminClient
	databases *database.DatabaseAdminClient
	parent    string
	name      string
	client    *spanner.Client
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	a := new(app)
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{"schema", a.schema}, {"mutations", a.mutations}, {"mutation groups", a.mutationGroups}, {"dml", a.dml}, {"batch dml", a.batchDML},
		{"read", a.read}, {"query", a.query}, {"errors", a.errors}, {"contention", a.contention},
		{"partitioned query", a.partitionedQuery}, {"partitioned dml", a.partitionedDML}, {"staleness", a.staleness}, {"change stream", a.changeStream}, {"drop", a.drop},
	}
	passed, failed := 0, 0
	for _, s := range steps {
		if err := s.run(ctx); err != nil {
			failed++
			fmt.Printf("FAIL go %s: %v\n", s.name, err)
			continue
		}
		passed++
		fmt.Printf("ok   go %s\n", s.name)
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// same returns an error if got differs from want.
func same(got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

func (a *app) schema(ctx context.Context) (err error) {
	if a.instances, err = instance.NewInstanceAdminClient(ctx); err != nil {
		return err
	}
	if a.databases, err = database.NewDatabaseAdminClient(ctx); err != nil {
		return err
	}
	config, err := a.instances.ListInstanceConfigs(ctx, &instancepb.ListInstanceConfigsRequest{Parent: "projects/interop"}).Next()
	if err != nil {
		return err
	}
	id := fmt.Sprintf("go-%d", time.Now().UnixNano())
	made, err := a.instances.CreateInstance(ctx, &instancepb.CreateInstanceRequest{
		Parent: "projects/interop", InstanceId: id,
		Instance: &instancepb.Instance{Config: config.Name, DisplayName: "interop", NodeCount: 1},
	})
	if err != nil {
		return err
	}
	if _, err := made.Wait(ctx); err != nil {
		return err
	}
	a.parent = "projects/interop/instances/" + id
	a.name = a.parent + "/databases/app"
	op, err := a.databases.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{
		Parent: a.parent, CreateStatement: "CREATE DATABASE app",
		ExtraStatements: []string{
			`CREATE TABLE Singers (SingerId INT64 NOT NULL, Name STRING(100), Updated TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (SingerId)`,
			`CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Title STRING(MAX), Budget NUMERIC, Tags ARRAY<STRING(MAX)>)
			 PRIMARY KEY (SingerId, AlbumId), INTERLEAVE IN PARENT Singers ON DELETE CASCADE`,
		},
	})
	if err != nil {
		return err
	}
	if _, err := op.Wait(ctx); err != nil {
		return err
	}
	err = a.ddl(ctx, "CREATE INDEX SingersByName ON Singers(Name) STORING (Updated)",
		"CREATE TABLE Counters (Name STRING(20) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Name)")
	if err != nil {
		return err
	}
	ddl, err := a.databases.GetDatabaseDdl(ctx, &databasepb.GetDatabaseDdlRequest{Database: a.name})
	if err != nil {
		return err
	}
	if err := same(len(ddl.Statements), 4); err != nil {
		return err
	}
	a.client, err = spanner.NewClient(ctx, a.name)
	return err
}

func (a *app) mutations(ctx context.Context) error {
	var rows []*spanner.Mutation
	for i := int64(1); i <= 20; i++ {
		rows = append(rows,
			spanner.Insert("Singers", []string{"SingerId", "Name", "Updated"}, []any{i, fmt.Sprint("singer ", i), spanner.CommitTimestamp}),
			spanner.Insert("Albums", []string{"SingerId", "AlbumId", "Title", "Budget", "Tags"},
				[]any{i, 1, fmt.Sprint("album ", i), big.NewRat(25, 2), []spanner.NullString{{StringVal: "a", Valid: true}, {}, {StringVal: "c", Valid: true}}}))
	}
	at, err := a.client.Apply(ctx, rows)
	if err != nil {
		return err
	}
	row, err := a.client.Single().ReadRow(ctx, "Singers", spanner.Key{7}, []string{"Name", "Updated"})
	if err != nil {
		return err
	}
	var name string
	var updated time.Time
	if err := row.Columns(&name, &updated); err != nil {
		return err
	}
	if err := errors.Join(same(name, "singer 7"), same(updated.UTC(), at.UTC())); err != nil {
		return err
	}
	_, err = a.client.Apply(ctx, []*spanner.Mutation{spanner.InsertOrUpdate("Counters", []string{"Name", "N"}, []any{"c", 0})}, spanner.ApplyAtLeastOnce())
	return err
}

func (a *app) mutationGroups(ctx context.Context) error {
	var groups []*spanner.MutationGroup
	for i := 201; i <= 202; i++ {
		groups = append(groups, &spanner.MutationGroup{Mutations: []*spanner.Mutation{spanner.Insert("Singers", []string{"SingerId", "Name"}, []any{i, "group"})}})
	}
	n := 0
	err := a.client.BatchWrite(ctx, groups).Do(func(r *spannerpb.BatchWriteResponse) error {
		if r.Status.Code != 0 {
			return fmt.Errorf("group %v: %v", r.Indexes, r.Status)
		}
		n += len(r.Indexes)
		return nil
	})
	if err != nil {
		return err
	}
	_, err = a.client.Apply(ctx, []*spanner.Mutation{spanner.Delete("Singers", spanner.KeyRange{Start: spanner.Key{201}, End: spanner.Key{202}, Kind: spanner.ClosedClosed})})
	return errors.Join(err, same(n, 2))
}

func (a *app) dml(ctx context.Context) error {
	_, err := a.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		n, err := tx.Update(ctx, spanner.Statement{SQL: "INSERT INTO Singers (SingerId, Name) VALUES (@id, @name)", Params: map[string]any{"id": 100, "name": "by dml"}})
		if err != nil {
			return err
		}
		names, err := stringsOf(tx.Query(ctx, spanner.NewStatement("SELECT Name FROM Singers WHERE SingerId = 100")))
		return errors.Join(err, same(n, int64(1)), same(names, []string{"by dml"}))
	})
	if err != nil {
		return err
	}
	var names []string
	_, err = a.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (err error) {
		names, err = stringsOf(tx.Query(ctx, spanner.NewStatement("UPDATE Singers SET Name = 'changed' WHERE SingerId = 100 THEN RETURN Name")))
		return err
	})
	return errors.Join(err, same(names, []string{"changed"}))
}

// stringsOf reads a result that has one STRING column.
func stringsOf(it *spanner.RowIterator) ([]string, error) {
	var list []string
	err := it.Do(func(r *spanner.Row) error {
		var s string
		err := r.Column(0, &s)
		list = append(list, s)
		return err
	})
	return list, err
}

// intsOf reads a result whose first column is INT64.
func intsOf(it *spanner.RowIterator) ([]int64, error) {
	var list []int64
	err := it.Do(func(r *spanner.Row) error {
		var n int64
		err := r.Column(0, &n)
		list = append(list, n)
		return err
	})
	return list, err
}

func (a *app) batchDML(ctx context.Context) error {
	_, err := a.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		counts, err := tx.BatchUpdate(ctx, []spanner.Statement{
			spanner.NewStatement("INSERT INTO Singers (SingerId, Name) VALUES (101, 'x')"),
			spanner.NewStatement("UPDATE Singers SET Name = 'y' WHERE SingerId IN (100, 101)"),
			spanner.NewStatement("DELETE FROM Singers WHERE SingerId = 101"),
		})
		if err != nil {
			return err
		}
		if err := same(counts, []int64{1, 2, 1}); err != nil {
			return err
		}
		counts, err = tx.BatchUpdate(ctx, []spanner.Statement{
			spanner.NewStatement("UPDATE Singers SET Name = 'z' WHERE SingerId = 100"),
			spanner.NewStatement("UPDATE Nowhere SET x = 1 WHERE true"),
		})
		return errors.Join(same(spanner.ErrCode(err), codes.InvalidArgument), same(counts, []int64{1}))
	})
	return err
}

func (a *app) read(ctx context.Context) error {
	it := a.client.Single().Read(ctx, "Albums", spanner.KeyRange{Start: spanner.Key{3}, End: spanner.Key{6}, Kind: spanner.ClosedOpen}, []string{"SingerId", "Title"})
	ids, err := intsOf(it)
	if err != nil {
		return err
	}
	row, err := a.client.Single().ReadRowUsingIndex(ctx, "Singers", "SingersByName", spanner.Key{"singer 9"}, []string{"SingerId"})
	if err != nil {
		return err
	}
	var id int64
	err = row.Column(0, &id)
	return errors.Join(err, same(ids, []int64{3, 4, 5}), same(id, int64(9)))
}

func (a *app) query(ctx context.Context) error {
	tx := a.client.ReadOnlyTransaction()
	defer tx.Close()
	ids, err := intsOf(tx.Query(ctx, spanner.Statement{
		SQL:    "SELECT s.SingerId, a.Title FROM Singers s JOIN Albums a USING (SingerId) WHERE s.SingerId IN UNNEST(@ids) ORDER BY s.SingerId",
		Params: map[string]any{"ids": []int64{2, 4, 999}},
	}))
	return errors.Join(err, same(ids, []int64{2, 4}))
}

func (a *app) errors(ctx context.Context) error {
	_, exists := a.client.Apply(ctx, []*spanner.Mutation{spanner.Insert("Singers", []string{"SingerId"}, []any{1})})
	_, missing := a.client.Single().ReadRow(ctx, "Nowhere", spanner.Key{1}, []string{"x"})
	_, bad := stringsOf(a.client.Single().Query(ctx, spanner.NewStatement("SELECT nothing FROM Singers")))
	return errors.Join(
		same(spanner.ErrCode(exists), codes.AlreadyExists),
		same(spanner.ErrCode(missing), codes.NotFound),
		same(spanner.ErrCode(bad), codes.InvalidArgument))
}

func (a *app) contention(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(8)
	for range 40 {
		g.Go(func() error {
			_, err := a.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				row, err := tx.ReadRow(ctx, "Counters", spanner.Key{"c"}, []string{"N"})
				if err != nil {
					return err
				}
				var n int64
				if err := row.Column(0, &n); err != nil {
					return err
				}
				return tx.BufferWrite([]*spanner.Mutation{spanner.Update("Counters", []string{"Name", "N"}, []any{"c", n + 1})})
			})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return a.counter(ctx, spanner.StrongRead(), []int64{40})
}

// counter checks which value of the counter a read with a timestamp bound returns.
func (a *app) counter(ctx context.Context, bound spanner.TimestampBound, want []int64) error {
	got, err := intsOf(a.client.Single().WithTimestampBound(bound).Read(ctx, "Counters", spanner.Key{"c"}, []string{"N"}))
	if err != nil {
		return fmt.Errorf("%v: %w", bound, err)
	}
	if err := same(got, want); err != nil {
		return fmt.Errorf("%v: %w", bound, err)
	}
	return nil
}

func (a *app) partitionedQuery(ctx context.Context) error {
	tx, err := a.client.BatchReadOnlyTransaction(ctx, spanner.StrongRead())
	if err != nil {
		return err
	}
	defer tx.Close()
	queries, err := tx.PartitionQuery(ctx, spanner.NewStatement("SELECT SingerId FROM Albums"), spanner.PartitionOptions{})
	if err != nil {
		return err
	}
	reads, err := tx.PartitionRead(ctx, "Singers", spanner.AllKeys(), []string{"SingerId"}, spanner.PartitionOptions{})
	if err != nil {
		return err
	}
	counts := map[int64]int{}
	total := 0
	for _, p := range queries {
		ids, err := intsOf(tx.Execute(ctx, p))
		if err != nil {
			return err
		}
		for _, id := range ids {
			counts[id]++
			total++
		}
	}
	rows := 0
	for _, p := range reads {
		ids, err := intsOf(tx.Execute(ctx, p))
		if err != nil {
			return err
		}
		rows += len(ids)
	}
	return errors.Join(same(len(counts), 20), same(total, 20), same(rows, 21))
}

func (a *app) partitionedDML(ctx context.Context) error {
	n, err := a.client.PartitionedUpdate(ctx, spanner.NewStatement("UPDATE Albums SET Title = 'same' WHERE AlbumId = 1"))
	if err != nil {
		return err
	}
	if n < 20 {
		return fmt.Errorf("updated %d rows, want at least 20", n)
	}
	return nil
}

func (a *app) staleness(ctx context.Context) error {
	tx := a.client.ReadOnlyTransaction()
	if _, err := intsOf(tx.Read(ctx, "Counters", spanner.Key{"c"}, []string{"N"})); err != nil {
		return err
	}
	before, err := tx.Timestamp()
	if err != nil {
		return err
	}
	tx.Close()
	at, err := a.client.Apply(ctx, []*spanner.Mutation{spanner.Update("Counters", []string{"Name", "N"}, []any{"c", 1000})})
	if err != nil {
		return err
	}
	// Half an hour ago, the database did not exist. For such a time, a read uses the database's first schema. Singers
	// is in this schema, so reading it gives no rows. Counters was added later, so reading it gives NotFound.
	long := spanner.ExactStaleness(30 * time.Minute)
	singers, err := intsOf(a.client.Single().WithTimestampBound(long).Read(ctx, "Singers", spanner.AllKeys(), []string{"SingerId"}))
	return errors.Join(
		a.counter(ctx, spanner.ReadTimestamp(before), []int64{40}),
		a.counter(ctx, spanner.StrongRead(), []int64{1000}),
		a.counter(ctx, spanner.MinReadTimestamp(at), []int64{1000}),
		same(spanner.ErrCode(a.counter(ctx, long, nil)), codes.NotFound),
		err, same(len(singers), 0))
}

func (a *app) drop(ctx context.Context) error {
	a.client.Close()
	if err := a.databases.DropDatabase(ctx, &databasepb.DropDatabaseRequest{Database: a.name}); err != nil {
		return err
	}
	_, err := a.databases.ListDatabases(ctx, &databasepb.ListDatabasesRequest{Parent: a.parent}).Next()
	return same(err, iterator.Done)
}
