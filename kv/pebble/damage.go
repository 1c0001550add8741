package pebble

import (
	"fmt"
	"log/slog"
	"path"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/crowfoot-db/crowfoot/kv"
)

// damage records the damaged places in table files that were found by reads since the store was opened. Requests that
// need a damaged block fail; all other requests work.
type damage struct {
	mu    sync.Mutex
	known map[string]bool
	reads int64
}

// maxKnownDamage is the maximum number of damaged places that are logged and remembered.
const maxKnownDamage = 1000

// found counts a read that found damage, and logs each damaged place once. Pebble calls it with i, which describes the
// damage: i.Path is the file, and i.Details gives the offset of the damaged block.
func (d *damage) found(i pebble.DataCorruptionInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	what := i.Details.Error()
	if d.known[i.Path+what] || len(d.known) >= maxKnownDamage {
		return
	}
	if d.known == nil {
		d.known = map[string]bool{}
	}
	d.known[i.Path+what] = true
	slog.Error("storage: a table file is damaged; requests that need the damaged block fail", "file", i.Path, "damage", what)
}

func (d *damage) count() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reads
}

// readError returns the error of a read. If the read found damage, the error wraps a *kv.DamagedError.
func readError(err error) error {
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	info := pebble.ExtractDataCorruptionInfo(err)
	if info == nil {
		return fmt.Errorf("%w: %w", &kv.DamagedError{File: "a table file"}, err)
	}
	return fmt.Errorf("%w: %w", &kv.DamagedError{File: path.Base(info.Path)}, info.Details)
}
