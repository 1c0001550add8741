package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// journal is a state file. It consists of JSON lines, and new lines are appended, so that killing the process loses at
// most the last lines. The process holds a lock on the file until the journal is closed or the process ends, even by a
// kill.
type journal struct {
	name string
	file *os.File
	// before is a function that makes durable the work that the pending lines report as done. flush calls it, and
	// then writes the lines. The field is nil if the work is already durable.
	before func() error

	writing sync.Mutex // held while lines are written to disk
	mu      sync.Mutex
	pending []byte // lines that are not yet in the file
	err     error  // the first error of a write
}

// flushInterval is how long a line stays in memory before it is written, so that several lines are synced together.
const flushInterval = 200 * time.Millisecond

// openJournal opens or creates a state file, and returns its complete lines. It returns an error if another process has
// the file open.
func openJournal(name string) (*journal, []byte, error) {
	for {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, nil, err
		}
		lines, err := openLocked(file)
		if err == nil && isAt(file, name) {
			return &journal{name: name, file: file}, lines, syncDir(filepath.Dir(name))
		}
		file.Close()
		if err != nil {
			return nil, nil, err
		}
		// In the meantime, the process that held the lock has removed the file. So it is opened again.
	}
}

// errLocked is wrapped by the error for a state file that another process has open.
var errLocked = errors.New("another import or export has it locked")

// openLocked locks a state file and reads its complete lines.
func openLocked(file *os.File) ([]byte, error) {
	if err := lockFile(file); err != nil {
		return nil, fmt.Errorf("%s: %w; it is under way still (%w)", file.Name(), errLocked, err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	lines := completeLines(text)
	if err := file.Truncate(int64(len(lines))); err != nil {
		return nil, err
	}
	_, err = file.Seek(0, io.SeekEnd)
	return lines, err
}

// completeLines returns text without an incomplete last line, which a killed process may have left.
func completeLines(text []byte) []byte { return text[:bytes.LastIndexByte(text, '\n')+1] }

// isAt reports whether an open file is still the one with the given name.
func isAt(file *os.File, name string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	at, err := os.Stat(name)
	return err == nil && os.SameFile(open, at)
}

// append appends lines and syncs the file. When it returns nil, the lines survive a loss of power. On a nil journal it
// does nothing.
func (j *journal) append(lines ...any) error {
	if j == nil {
		return nil
	}
	for _, line := range lines {
		if err := j.add(line); err != nil {
			return err
		}
	}
	return j.flush()
}

// later appends a line that is written to disk after a short delay, or when close is called. If an earlier write has
// failed, it returns that error.
func (j *journal) later(line any) error {
	if j == nil {
		return nil
	}
	return j.add(line)
}

func (j *journal) add(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.pending) == 0 && j.err == nil {
		time.AfterFunc(flushInterval, func() { _ = j.flush() }) // the next add() or close() returns its error
	}
	j.pending = append(append(j.pending, text...), '\n')
	return j.err
}

// flush writes and syncs the pending lines.
func (j *journal) flush() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	lines, err := j.pending, j.err
	j.pending = nil
	j.mu.Unlock()
	if len(lines) == 0 || err != nil {
		return err
	}
	if j.before != nil {
		err = j.before()
	}
	if err == nil {
		if _, err = j.file.Write(lines); err == nil {
			err = j.file.Sync()
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = err
	return err
}

// close writes the pending lines and unlocks the file.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return errors.Join(j.flush(), j.file.Close())
}

// remove deletes and unlocks the file.
func (j *journal) remove() error {
	return errors.Join(os.Remove(j.name), j.close())
}
