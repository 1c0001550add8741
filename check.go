package crowfoot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/table"
)

// Finding is one fault that Check has found in stored data.
type Finding struct {
	Kind   string // kind of damage
	Where  string // name of the damaged file, or names of the database and of its damaged table or index
	Detail string
}

// Check reads everything in a data directory that no server has open: every block, with its checksum, and every version
// of every row. It compares the rows of each table with the table's schema, indexes, parents, foreign keys, CHECK
// constraints and generated columns. It writes nothing. Check calls the function begin before it reads a file, a table,
// an index or another object, and passes the object's name. It calls the function found with each fault. It returns an
// error if it could not read everything, for example because a server has the directory open.
func Check(ctx context.Context, data string, begin func(what string), found func(Finding)) error {
	store, err := pebble.OpenToRead(data, vfs.Default)
	if pebble.IsDamaged(err) {
		found(Finding{Kind: "damaged log or manifest", Where: data, Detail: err.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	err = store.VerifyTables(ctx, func(file string, size uint64) { begin(fmt.Sprintf("%s, %d bytes", file, size)) },
		func(file string, err error) { found(Finding{Kind: "damaged file", Where: file, Detail: err.Error()}) })
	if err == nil {
		cfg := database.Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler), NoStatistics: true}
		err = database.Verify(ctx, store, cfg, database.Verification{
			Begin: func(database, object string) { begin(database + " " + object) },
			Found: func(database string, f table.Finding) {
				found(Finding{Kind: string(f.Kind), Where: database + " " + f.Object, Detail: f.Detail})
			},
		})
	}
	return errors.Join(err, store.Close())
}
