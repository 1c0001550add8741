package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// twin is a second server on the same rows as the embedded one, started with other flags.
type twin struct {
	*process
	data string
}

// twin stops the server, duplicates its data and starts it again, and a second one beside it. Both begin
// with cold caches.
func (t *target) twin(ctx context.Context, flags ...string) (*twin, error) {
	if err := t.process.stop(); err != nil {
		return nil, err
	}
	second := &twin{data: filepath.Join(t.root, "twin")}
	if err := os.RemoveAll(second.data); err != nil { // of a run that was killed
		return nil, err
	}
	if err := duplicate(t.data(), second.data); err != nil {
		return nil, fmt.Errorf("duplicate the data: %w", err)
	}
	if err := t.spawn(ctx); err != nil {
		return second, err
	}
	if err := t.connect(ctx); err != nil {
		return second, err
	}
	var err error
	second.process, err = spawn(ctx, append(t.startArguments(second.data), flags...)...)
	return second, err
}

// close stops the second server and removes its data.
func (t *twin) close() error {
	var errs []error
	if t.process != nil {
		errs = append(errs, t.process.stop())
	}
	return errors.Join(append(errs, os.RemoveAll(t.data))...)
}

// tableSuffix ends the names of the engine's tables, which are written once: both servers can have the same ones.
const tableSuffix = ".sst"

// duplicate makes a directory like another: tables are linked, all else is copied.
func duplicate(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case filepath.Ext(name) == tableSuffix:
			return os.Link(name, target)
		}
		return copyFile(name, target)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
