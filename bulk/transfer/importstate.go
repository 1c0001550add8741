package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// ImportState is a file that remembers what of an import is in, so that an import that was interrupted goes on. It is locked: one import at a time has it.
// It has a line where the import makes its table, a header, which says what is imported, and then a line for each step:
//
//	{"version":1,"creates":"customer","in":"projects/p/instances/i/databases/d"}
//	{"version":1,"import":{...}}
//	{"segment":3,"sent":8192}     rows of the segment that may have been sent, from its begin (with the mode Insert)
//	{"segment":3,"rows":4096}     rows of the segment that are committed or rejected, from its begin
//	{"segment":3,"complete":true}
//
// What a line says survives a loss of power when the line is in the file. Lines are synced some at a time: an import that goes on writes a few rows again.
type ImportState struct {
	journal *journal
	created []byte // the line of the table that the import makes
	creates importHeader
	lines   []byte // of the runs before, from the header on
}

type importHeader struct {
	Version int             `json:"version"`
	Creates string          `json:"creates,omitempty"`
	In      string          `json:"in,omitempty"` // the database of that table
	Import  json.RawMessage `json:"import,omitempty"`
}

type importStep struct {
	Segment  int   `json:"segment"`
	Sent     int64 `json:"sent,omitempty"`
	Rows     int64 `json:"rows,omitempty"`
	Complete bool  `json:"complete,omitempty"`
}

// segmentState is how far a segment is.
type segmentState struct {
	rows, sent int64
	complete   bool
}

const stateVersion = 1

// OpenImportState opens a state file, or makes one. It is refused while another import has it.
func OpenImportState(name string) (*ImportState, error) {
	j, lines, err := openJournal(name)
	if err != nil {
		return nil, err
	}
	s := &ImportState{journal: j, lines: lines}
	first, rest, _ := bytes.Cut(lines, []byte{'\n'})
	var h importHeader
	if json.Unmarshal(first, &h) == nil && h.Creates != "" {
		s.created, s.creates, s.lines = lines[:len(lines)-len(rest)], h, rest
	}
	return s, nil
}

// Begun says whether rows were sent. Any import can begin with the state of one that has sent none.
func (s *ImportState) Begun() bool { return bytes.Count(s.lines, []byte{'\n'}) > 1 }

// Creates says whether the import makes its table in a database: it, or a run before, has called Create.
func (s *ImportState) Creates(database string) bool {
	return s.creates.Creates != "" && s.creates.In == database
}

// Create notes that the import is about to make its table, so that one that goes on knows whose the table is. It is refused if the state is that of an
// import into another database that has sent rows.
func (s *ImportState) Create(database, table string) error {
	if s.Begun() && !s.Creates(database) {
		return s.another("it is of another table or database")
	}
	line := importHeader{Version: stateVersion, Creates: table, In: database}
	if err := errors.Join(s.journal.cut(0), s.journal.append(line)); err != nil {
		return err
	}
	text, err := json.Marshal(line)
	s.created, s.creates, s.lines = append(text, '\n'), line, nil
	return err
}

// another is the error for a state that belongs to another import.
func (s *ImportState) another(why string) error {
	return fmt.Errorf("%s is the state of another import: %s (delete it to begin anew, or name another state file)", s.journal.name, why)
}

// Close lets other imports have the file. A file without a line is deleted.
func (s *ImportState) Close() error {
	if info, err := s.journal.file.Stat(); err == nil && info.Size() == 0 {
		return s.Remove()
	}
	return s.journal.close()
}

// Remove deletes the file: the import is complete. Close must not be called then.
func (s *ImportState) Remove() error { return s.journal.remove() }

// begin returns how far each segment of an import is.
func (s *ImportState) begin(of any, segments int) ([]segmentState, error) {
	what, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	states := make([]segmentState, segments)
	if len(s.lines) > 0 {
		if err := s.replay(what, states); err != nil {
			return nil, err
		}
	}
	if s.Begun() {
		return states, nil
	}
	// The header may be another import's, as of a file that was mended since.
	return states, errors.Join(s.journal.cut(len(s.created)), s.journal.append(importHeader{Version: stateVersion, Import: what}))
}

// replay reads the steps.
func (s *ImportState) replay(what []byte, states []segmentState) error {
	name := s.journal.name
	header, steps, _ := bytes.Cut(s.lines, []byte{'\n'})
	var h importHeader
	if err := json.Unmarshal(header, &h); err != nil || h.Version != stateVersion || h.Import == nil {
		return fmt.Errorf("%s is not the state of an import", name)
	}
	if len(steps) > 0 && !bytes.Equal(h.Import, what) {
		return s.another(difference(h.Import, what))
	}
	for line := range bytes.Lines(steps) {
		var l importStep
		if err := json.Unmarshal(line, &l); err != nil || l.Segment < 0 || l.Segment >= len(states) {
			return fmt.Errorf("%s is damaged: %s", name, line)
		}
		s := &states[l.Segment]
		s.rows, s.sent, s.complete = max(s.rows, l.Rows), max(s.sent, l.Sent), s.complete || l.Complete
	}
	return nil
}

// difference says in which members two objects differ.
func difference(was, is json.RawMessage) string {
	var before, now map[string]json.RawMessage
	if json.Unmarshal(was, &before) != nil || json.Unmarshal(is, &now) != nil {
		return fmt.Sprintf("it was %s, and is %s", was, is)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if bytes.Equal(before[name], now[name]) {
			continue
		}
		var old, later []string
		if json.Unmarshal(before[name], &old) == nil && json.Unmarshal(now[name], &later) == nil {
			list = append(list, fmt.Sprintf("its %s: %s", name, bulk.DefinitionChange(old, later)))
		} else {
			list = append(list, fmt.Sprintf("its %s was %s, and is %s", name, before[name], now[name]))
		}
	}
	return strings.Join(list, "; ")
}
