package pebble

import (
	"errors"
	"fmt"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2"
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
	if err := s.db.Checkpoint(to, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("copy the data directory to %s: %w", to, err)
	}
	if err := writeMark(to, s.fs, mark{format: s.format}); err != nil {
		return errors.Join(err, s.fs.RemoveAll(to))
	}
	return s.guard.failure()
}
