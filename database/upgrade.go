package database

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/kv"
)

// upgrades are the functions that rewrite the records of one format into those of the next, in this order. Each runs on
// the open store before anything else reads it. It may be interrupted at any write and run again from its beginning, so
// it must not rewrite records that it has rewritten already. A new kind of record needs no upgrade, since the older
// format has no such records.
var upgrades = []struct {
	to  kv.Format
	run func(kv.Store) error
}{
	{2, splitCatalogs},
}

// upgrade upgrades a store to the latest format.
func upgrade(store kv.Store, log *slog.Logger) error {
	for store.Format() < kv.LastFormat {
		from := store.Format()
		log.Info("the data directory is upgraded; older releases refuse it from now on", "from_format", int(from), "to_format", int(from+1))
		if err := store.Upgrade(from+1, func() error { return runUpgrades(store, from+1) }); err != nil {
			return err
		}
	}
	return nil
}

func runUpgrades(store kv.Store, to kv.Format) error {
	for _, u := range upgrades {
		if u.to != to {
			continue
		}
		if err := u.run(store); err != nil {
			return err
		}
	}
	return nil
}

// splitCatalogs rewrites the schema versions of all databases from format 1 to format 2, one database after the other.
func splitCatalogs(store kv.Store) error {
	return meta.Each(store, meta.Database, func(_ string, data []byte) error {
		var r databaseRecord
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("read database: %w", err)
		}
		if err := schemachange.SplitCatalogs(store, r.Space); err != nil {
			return fmt.Errorf("rewrite the schema of %s: %w", r.Name, err)
		}
		return nil
	})
}
