package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// Rejects writes bad rows to a file, as JSON lines with the file, the line or row number, the reason and the row's
// text. It appends to an existing file. Its methods may be called from several goroutines.
type Rejects struct {
	mu     sync.Mutex
	name   string
	file   *os.File
	limit  int64
	places map[bulk.Place]bool
	// complete is the number of bytes in complete lines of the file when r was created. size is the number of all its
	// bytes at that time. The bytes after the complete lines are a part of a line, which a killed run has left.
	complete, size int64
	unsynced       bool
}

// OpenRejects opens a reject file. The file is created when the first bad row is added. If there are more than limit
// bad rows, Add returns an error.
func OpenRejects(name string, limit int64) (*Rejects, error) {
	r := &Rejects{name: name, limit: limit, places: map[bulk.Place]bool{}}
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	lines := completeLines(text)
	r.complete, r.size = int64(len(lines)), int64(len(text))
	for line := range bytes.Lines(lines) {
		var bad bulk.BadRow
		if json.Unmarshal(line, &bad) == nil {
			r.places[bad.Place] = true
		}
	}
	return r, nil
}

// Forget removes all rows from r. It renames an existing reject file by adding .old to the file's name.
func (r *Rejects) Forget() error {
	clear(r.places)
	r.complete, r.size = 0, 0
	err := os.Rename(r.name, r.name+".old")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Add writes a bad row to the file, unless the row was written before. It returns an error if there are too many bad
// rows.
func (r *Rejects) Add(bad bulk.BadRow) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.places[bad.Place] {
		return nil
	}
	if int64(len(r.places)) >= r.limit {
		if r.limit == 0 {
			return bad
		}
		return fmt.Errorf("more than %d rows are bad (%s lists them); the next is %w", r.limit, r.name, bad)
	}
	if r.file == nil {
		if err := r.open(); err != nil {
			return err
		}
	}
	line, err := json.Marshal(bad)
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return err
	}
	r.places[bad.Place], r.unsynced = true, true
	return nil
}

// sync syncs the file, so that the rows survive a loss of power.
func (r *Rejects) sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.unsynced {
		return nil
	}
	r.unsynced = false
	return r.file.Sync()
}

// open opens the file for writing and removes an incomplete last line.
func (r *Rejects) open() (err error) {
	if r.file, err = os.OpenFile(r.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	if err := lockFile(r.file); err != nil || info.Size() != r.size {
		return fmt.Errorf("%s is written by another import, too", r.name)
	}
	return errors.Join(r.file.Truncate(r.complete), syncDir(filepath.Dir(r.name)))
}

// Count returns the number of bad rows, including those of earlier runs.
func (r *Rejects) Count() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.places))
}

// Close closes the file.
func (r *Rejects) Close() error {
	if r.file == nil {
		return nil
	}
	return errors.Join(r.sync(), r.file.Close())
}
