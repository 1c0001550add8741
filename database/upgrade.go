package database

import (
	"log/slog"

	"github.com/crowfoot-db/crowfoot/kv"
)

// upgrades rewrite the records of one format into those of the next, in this order. Each runs on the open store before
// anything else reads it. It may be cut short at any write and run again from its beginning: it must leave alone what it finds done.
// Records of a new kind, which the older format simply has none of, need no step.
var upgrades = []struct {
	to  kv.Format
	run func(kv.Store) error
}{
	{2, splitCatalogs},
}

// upgrade takes a store to the last format.
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
