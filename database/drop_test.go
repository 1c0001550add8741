package database

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// filled returns a database whose table T has the given number of chunks of rows, and one deleted row whose old
// versions the next collection deletes.
func filled(t *testing.T, chunks int) *aged {
	a := newAged(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	a.fill("T", chunks*table.ChunkRows, func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i)), value.OfInt64(1)} })
	if err := a.db.jobs.Transact(context.Background(), func(w table.Writer) error { return a.execute(w, "DELETE FROM T WHERE K = 0") }); err != nil {
		t.Fatal(err)
	}
	a.now.Add((2 * time.Hour).Microseconds())
	return a
}

// ends returns a channel that is closed when the background work of a database is told to end.
func ends(d *Database) chan struct{} {
	ending := make(chan struct{})
	d.background.Go(func(ctx context.Context) {
		<-ctx.Done()
		close(ending)
	})
	return ending
}

// TestDropEndsSchemaChange drops a database while an index is filled. The drop must cancel the schema change, wait for
// its end, and leave nothing in the store.
func TestDropEndsSchemaChange(t *testing.T) {
	a := filled(t, 3)
	if err := a.db.collect(context.Background()); err != nil { // stores a horizon, which the drop must delete, too
		t.Fatal(err)
	}
	dropped := make(chan error, 1)
	ending := ends(a.db)
	err := a.db.UpdateSchema(context.Background(), []string{"CREATE INDEX ByV ON T(V)"}, &schemachange.Operation{Progress: func(schemachange.Progress) {
		if a.db.Dropped() {
			return
		}
		go func() { dropped <- dropDatabase(a.Registry) }()
		<-ending
	}})
	wantCode(t, err, codes.NotFound)
	if err := <-dropped; err != nil {
		t.Fatal(err)
	}
	a.nothingLeft()
	wantCode(t, a.db.UpdateSchema(context.Background(), []string{"DROP TABLE T"}, nil), codes.NotFound)
}

// TestDropHoldsNothingUp checks that instances and other databases can be found, made and deleted while a drop waits
// for background work. A database of the same name can be made once the dropped one is erased.
func TestDropHoldsNothingUp(t *testing.T) {
	instance, _, _ := strings.Cut(testName, "/databases/")
	for name, drop := range map[string]func(*Registry) (*Dropped, error){
		"database": func(r *Registry) (*Dropped, error) { return r.DropDatabase(testName) },
		"instance": func(r *Registry) (*Dropped, error) { return r.DeleteInstance(instance) },
	} {
		t.Run(name, func(t *testing.T) {
			a := filled(t, 2)
			idle, err := a.CreateDatabase(t.Context(), instance+"/databases/idle", nil)
			if err != nil {
				t.Fatal(err)
			}
			dropped, made := make(chan error, 1), make(chan error, 1)
			ending := ends(a.db)
			err = a.db.UpdateSchema(t.Context(), []string{"CREATE INDEX ByV ON T(V)"}, &schemachange.Operation{Progress: func(schemachange.Progress) {
				if a.db.Dropped() {
					return
				}
				go func() {
					d, err := drop(a.Registry)
					if err == nil {
						d.Erase()
					}
					dropped <- err
				}()
				<-ending // from now on the drop waits for this schema change to end
				if _, err := a.Database(testName); usererror.CodeOf(err) != codes.NotFound {
					t.Error(err)
				}
				if got := idle.Dropped(); got != (name == "instance") {
					t.Errorf("the idle database is dropped: %v", got)
				}
				other := Instance{Name: "projects/p/instances/other"}
				if _, err := a.CreateInstance(other); err != nil {
					t.Error(err)
				}
				if _, err := a.CreateDatabase(t.Context(), other.Name+"/databases/beside", nil); err != nil {
					t.Error(err)
				}
				d, err := a.DeleteInstance(other.Name)
				if err != nil {
					t.Error(err)
				}
				d.Erase()
				if name == "instance" {
					if _, err := a.CreateInstance(Instance{Name: instance}); err != nil {
						t.Error(err)
					}
				}
				impatient, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := a.CreateDatabase(impatient, testName, nil); !errors.Is(err, context.Canceled) {
					t.Errorf("a database of the same name: %v", err)
				}
				go func() {
					_, err := a.CreateDatabase(context.Background(), testName, nil)
					made <- err
				}()
			}})
			wantCode(t, err, codes.NotFound)
			if err := errors.Join(<-dropped, <-made); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Database(testName); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDeleteInstanceAtOnce deletes an instance that has a protected database. The deletion must fail, and delete no
// database.
func TestDeleteInstanceAtOnce(t *testing.T) {
	b := create(t)
	instance, _, _ := strings.Cut(testName, "/databases/")
	kept, err := b.CreateDatabase(t.Context(), instance+"/databases/zz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.SetDropProtection(true); err != nil {
		t.Fatal(err)
	}
	_, err = b.DeleteInstance(instance)
	wantCode(t, err, codes.FailedPrecondition)
	if list, err := b.Databases(instance); len(list) != 2 || err != nil {
		t.Errorf("%d databases, %v", len(list), err)
	}
}

// TestCollectionBesideSchemaChange checks that row versions are collected while an index is filled, because filling an
// index may take hours.
func TestCollectionBesideSchemaChange(t *testing.T) {
	a := filled(t, 1)
	collected := false
	err := a.db.UpdateSchema(context.Background(), []string{"CREATE INDEX ByV ON T(V)"}, &schemachange.Operation{Progress: func(p schemachange.Progress) {
		if p.Percent == 100 || collected {
			return
		}
		before := a.db.rows.Horizon()
		if err := a.db.collect(context.Background()); err != nil {
			t.Error(err)
		}
		collected = a.db.rows.Horizon() > before
	}})
	if err != nil || !collected {
		t.Errorf("collected: %v, %v", collected, err)
	}
}
