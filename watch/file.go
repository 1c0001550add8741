package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// File keeps checkpoints in a JSON file. Several watchers with different feeds may share the file, even in several
// processes of one machine. Its format is:
//
//	[{"database": "projects/p/instances/i/databases/d", "table": "Singers", "timestamp": "2026-01-02T03:04:05.678901Z"}, …]
type File struct {
	name string
	mu   sync.Mutex
}

// NewFile returns a repository that keeps checkpoints in the named file. The first checkpoint creates the file.
func NewFile(name string) *File { return &File{name: name} }

// fileEntry is one checkpoint.
type fileEntry struct {
	Database  string    `json:"database"`
	Catalog   string    `json:"catalog,omitempty"`
	Schema    string    `json:"schema,omitempty"`
	Table     string    `json:"table"`
	ShardType string    `json:"shardType,omitempty"`
	Shard     string    `json:"shard,omitempty"`
	Timestamp time.Time `json:"timestamp"`
	Position  string    `json:"position,omitempty"`
}

func (e *fileEntry) id() FeedID {
	return FeedID{TableID{e.Database, e.Catalog, e.Schema, e.Table}, ShardID{spannerpb.TypeCode(spannerpb.TypeCode_value[e.ShardType]), e.Shard}}
}

// Check reads the file, if it exists, and tests whether a new file can replace it. If this is impossible for a lasting
// reason, such as a read-only directory, the error is FAILED_PRECONDITION. If the disk is full, the error has another
// code, since a later Check may succeed.
func (f *File) Check(context.Context) error {
	err := f.locked(func() error {
		if _, err := f.read(); err != nil {
			return err
		}
		next, err := os.OpenFile(f.next(), os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		return errors.Join(next.Close(), os.Remove(next.Name()))
	})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) {
		return status.Errorf(codes.FailedPrecondition, "The file %s cannot hold checkpoints: %v", f.name, err)
	}
	return err
}

// Load implements Repository.
func (f *File) Load(_ context.Context, id FeedID) (c Checkpoint, ok bool, err error) {
	err = f.locked(func() error {
		list, err := f.read()
		for i := range list {
			if list[i].id() == id {
				c, ok = Checkpoint{list[i].Timestamp, list[i].Position}, true
			}
		}
		return err
	})
	return c, ok, err
}

// Store implements Repository. It writes a new file, syncs it, and renames it to replace the old one.
func (f *File) Store(_ context.Context, id FeedID, c Checkpoint) error {
	e := fileEntry{id.Database, id.Catalog, id.Schema, id.Name, "", id.Shard.Text, c.Timestamp, c.Position}
	if id.Shard.Type != 0 {
		e.ShardType = id.Shard.Type.String()
	}
	return f.locked(func() error {
		list, err := f.read()
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(old fileEntry) bool { return old.id() == id })
		text, err := json.MarshalIndent(append(list, e), "", "  ")
		if err != nil {
			return err
		}
		return f.replace(append(text, '\n'))
	})
}

// locked calls the function do while it holds a lock that excludes other goroutines and processes.
func (f *File) locked(do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	lock, err := os.OpenFile(f.name+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // closing releases the lock
	if err := lockFile(lock); err != nil {
		return fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	return do()
}

func (f *File) read() ([]fileEntry, error) {
	text, err := os.ReadFile(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []fileEntry
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, f.damaged(err)
	}
	if list == nil {
		return nil, f.damaged(errors.New("it is no list"))
	}
	for _, e := range list {
		if e.Database == "" || e.Timestamp.IsZero() {
			return nil, f.damaged(fmt.Errorf("the checkpoint of %q in database %q at %s is not one", e.Table, e.Database, e.Timestamp.Format(time.RFC3339Nano)))
		}
	}
	return list, nil
}

// damaged returns the error for a file that Store cannot have written. The code FAILED_PRECONDITION prevents a retry.
// The watcher must not start without the file's checkpoints, because it would leave changes out.
func (f *File) damaged(err error) error {
	return status.Errorf(codes.FailedPrecondition, "The file %s does not hold checkpoints: %v", f.name, err)
}

// next returns the name under which a new file is written before it replaces the old one. A crash may leave an
// incomplete file of this name.
func (f *File) next() string { return f.name + ".next" }

func (f *File) replace(text []byte) error {
	next := f.next()
	file, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, f.name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.name))
}
