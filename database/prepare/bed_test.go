package prepare_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// bed is a database for whose schema a test prepares statements.
type bed struct {
	t  testing.TB
	db *database.Database
}

func create(t testing.TB, statements ...string) *bed {
	t.Helper()
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	r, err := database.Open(store, database.Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	db, err := r.CreateDatabase(context.Background(), database.DefaultInstance+"/databases/test", statements)
	if err != nil {
		t.Fatal(err)
	}
	return &bed{t, db}
}

// alter runs DDL that must succeed.
func (b *bed) alter(statements ...string) {
	b.t.Helper()
	if err := b.db.UpdateSchema(context.Background(), statements, nil); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) prepare(sql string, params map[string]*value.Type, opts prepare.Options) (*prepare.Statement, error) {
	return b.db.Prepare(context.Background(), b.db.Catalog(), sql, params, opts)
}

func (b *bed) mustPrepare(sql string) *prepare.Statement {
	b.t.Helper()
	s, err := b.prepare(sql, nil, prepare.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// preparer returns the Preparer of the newest schema version.
func (b *bed) preparer() *prepare.Preparer {
	b.t.Helper()
	return b.mustPrepare("SELECT 1").Preparer()
}

func wantCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if usererror.CodeOf(err) != code {
		t.Fatalf("got %v (%v), want %v", usererror.CodeOf(err), err, code)
	}
}
