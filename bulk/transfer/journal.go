package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
)

// journal is a state file: JSON lines that are appended, so that a kill loses at most the last. The first is the header.
type journal struct {
	mu   sync.Mutex
	name string
	file *os.File
}

// readJournal reads the complete lines of a state file; there are none if it does not exist.
func readJournal(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	// What was cut off when the process was killed is not taken for a line.
	return text[:bytes.LastIndexByte(text, '\n')+1], err
}

// openJournal opens a state file to append lines behind those that readJournal gave.
func openJournal(name string, lines []byte) (*journal, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err = file.Truncate(int64(len(lines))); err == nil {
		_, err = file.Seek(int64(len(lines)), io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &journal{name: name, file: file}, nil
}

// append writes a line. A nil journal keeps nothing.
func (j *journal) append(line any) error {
	if j == nil {
		return nil
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.file.Write(append(text, '\n'))
	return err
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
