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

// journal is a state file: JSON lines that are appended, so that a kill loses at most the last ones. Its process has it locked until it ends, by a kill, too.
type journal struct {
	name string
	file *os.File
	// before makes durable what the lines say is done; nil where that is so already.
	before func() error

	writing sync.Mutex // held while lines go to disk
	mu      sync.Mutex
	pending []byte // lines that are not in the file yet
	err     error  // of the first write that has not worked
}

// flushInterval is how long a line may wait for others, to be synced with them.
const flushInterval = 200 * time.Millisecond

// openJournal opens a state file, or makes one, and returns its complete lines. It is refused if another process has it open.
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
		// The process that had it locked has removed it meanwhile.
	}
}

// errLocked is that of a state file that another process has open.
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

// completeLines leaves out what was cut off when the process that wrote it was killed.
func completeLines(text []byte) []byte { return text[:bytes.LastIndexByte(text, '\n')+1] }

// isAt says whether a file is still the one of a name.
func isAt(file *os.File, name string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	at, err := os.Stat(name)
	return err == nil && os.SameFile(open, at)
}

// append appends lines. When it returns nil they survive a loss of power. A nil journal keeps nothing.
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

// later appends a line, which is on disk some time later, or when close returns nil. It returns the error of a write before.
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
		time.AfterFunc(flushInterval, func() { _ = j.flush() }) // the error is that of the next line, or of close
	}
	j.pending = append(append(j.pending, text...), '\n')
	return j.err
}

// flush writes the lines that wait.
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

// close writes what waits, and lets other processes have the file.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return errors.Join(j.flush(), j.file.Close())
}

// remove deletes the file.
func (j *journal) remove() error {
	return errors.Join(os.Remove(j.name), j.close())
}
