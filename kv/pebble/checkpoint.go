package pebble

import (
	"errors"
	"fmt"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Checkpoint makes the directory to, which must not exist, and copies the store into it as it is at one moment, synced. Files that do not change
// any more are hard links where the file system can make them. It stops neither reads nor writes. The copy is marked as a data directory when all
// of it is durable, so one that was cut short is refused.
func (s *Store) Checkpoint(to string) error {
	if err := s.guard.failure(); err != nil {
		return err
	}
	switch _, err := s.fs.Stat(to); {
	case err == nil:
		return fmt.Errorf("%s: %w; a copy needs a directory of its own", to, iofs.ErrExist)
	case !errors.Is(err, iofs.ErrNotExist):
		return err
	}
	synced, err := readNotes(s.dir, s.fs)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) { // an operator has deleted it
		return fmt.Errorf("copy the data directory to %s: %w", to, err)
	}
	if err := s.db.Checkpoint(to, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("copy the data directory to %s: %w", to, err)
	}
	if err := noteCopy(to, s.fs, &synced); err != nil {
		return errors.Join(fmt.Errorf("copy the data directory to %s: %w", to, err), s.fs.RemoveAll(to))
	}
	if err := writeMark(to, s.fs, mark{format: s.format}); err != nil {
		return errors.Join(err, s.fs.RemoveAll(to))
	}
	return s.guard.failure()
}

// noteCopy stores in a copy how long its manifest and logs are, so that it is refused if they are damaged or lost where it is copied next. It refuses a
// copy of less than was synced when it was begun.
func noteCopy(to string, fs vfs.FS, synced *notes) error {
	found, err := checkFiles(to, fs, synced)
	if err != nil {
		return err
	}
	return found.store(to, fs)
}
