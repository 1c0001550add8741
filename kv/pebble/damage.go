package pebble

import (
	"fmt"
	"log/slog"
	"path"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// damage is what was found damaged in table files since the store was opened. What needs the damaged block fails; everything else goes on.
type damage struct {
	mu    sync.Mutex
	known map[string]bool
	reads int64
}

// maxKnownDamage bounds how many places are remembered as logged.
const maxKnownDamage = 1000

// found counts a read that met damage, and logs each place once. Pebble names the file, and the block's offset in the details.
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

// readError is the error of a read, with what clients are told if it met damage.
func readError(err error) error {
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	info := pebble.ExtractDataCorruptionInfo(err)
	if info == nil {
		return fmt.Errorf("%w: %w", usererror.DataDamaged("a table file"), err)
	}
	return fmt.Errorf("%w: %w", usererror.DataDamaged(path.Base(info.Path)), info.Details)
}
