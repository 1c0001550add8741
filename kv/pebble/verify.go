package pebble

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
)

// OpenToRead opens a store only for reading. No other process may have the store open. OpenToRead writes nothing to
// the directory, and reads the logs into memory. It returns an error if a log is damaged.
func OpenToRead(dir string, fs vfs.FS) (*Store, error) {
	f, err := judge(dir, fs)
	if err == nil && !f.store {
		err = fmt.Errorf("%s holds no data of Crowfoot", dir)
	}
	if err != nil {
		return nil, err
	}
	if f.format != kv.LastFormat {
		return nil, fmt.Errorf("data directory %s has format %d: crowfoot start upgrades it to format %d", dir, f.format, kv.LastFormat)
	}
	fs = readFS{fs}
	lock, err := lockDirectory(dir, fs)
	if err != nil {
		return nil, err
	}
	s := &Store{lock: lock, dir: dir, fs: fs, format: f.format, readOnly: true, freeing: newFreeing()}
	s.disk = &disk{fs: fs, dir: dir, memTable: memTableBytes, closed: make(chan struct{})}
	s.disk.limit.Store(math.MaxInt64)
	s.guard = guard(dir, fs, s.disk)
	if _, err = checkSynced(dir, fs, f.format); err == nil {
		err = s.openEngine(true, verifyCacheBytes)
	}
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("data directory %s cannot be read: %w", dir, err)
	}
	return s, nil
}

// verifyCacheBytes is the size in bytes of the block cache that OpenToRead uses. The cache serves look-ups of single
// rows.
const verifyCacheBytes = 64 << 20

// VerifyTables reads every block of every table file and compares the checksums. Before it reads a file, it calls the
// function begin with the name of the file and its size in bytes. If the file is damaged, it calls the function report.
func (s *Store) VerifyTables(ctx context.Context, begin func(file string, size uint64), report func(file string, err error)) error {
	levels, err := s.db.SSTables()
	if err != nil {
		return err
	}
	opts := options(s.fs, 0, 0, &s.work, s.guard)
	defer opts.Cache.Unref()
	opts.EnsureDefaults()
	how := opts.MakeReaderOptions()
	for _, tables := range levels {
		for _, t := range tables {
			if err := ctx.Err(); err != nil {
				return err
			}
			name := fmt.Sprintf("%s.sst", t.BackingSSTNum)
			begin(name, t.Size)
			if err := s.verifyTable(ctx, name, how); err != nil {
				report(name, err)
			}
		}
	}
	return nil
}

func (s *Store) verifyTable(ctx context.Context, name string, how sstable.ReaderOptions) error {
	f, err := s.fs.Open(s.fs.PathJoin(s.dir, name))
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.CombineErrors(err, f.Close())
	}
	r, err := sstable.NewReader(ctx, readable, how)
	if err != nil {
		return errors.CombineErrors(err, readable.Close())
	}
	err = r.ValidateBlockChecksums()
	if err != nil { // the error begins with a file number of 0, because the reader does not know the file's number
		err = errors.New(strings.Replace(err.Error(), "pebble: file 000000: ", "", 1))
	}
	return errors.CombineErrors(err, r.Close())
}
