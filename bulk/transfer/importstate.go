package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// The state file of an import has a header, which says what is imported, and then a line for each step:
//
//	{"version":1,"import":{...}}
//	{"segment":3,"sent":8192}     rows of the segment that may have been sent, from its begin (with the mode Insert)
//	{"segment":3,"rows":4096}     rows of the segment that are committed or rejected, from its begin
//	{"segment":3,"complete":true}
type importHeader struct {
	Version int             `json:"version"`
	Import  json.RawMessage `json:"import"`
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

// HasBegun says whether a state file is that of an import that has sent rows. Any import can begin with another one.
func HasBegun(name string) bool {
	lines, err := readJournal(name)
	return err != nil || hasSteps(lines)
}

func hasSteps(lines []byte) bool { return bytes.Count(lines, []byte{'\n'}) > 1 }

// openImportState goes on with the state file of an import, or begins one.
func openImportState(name string, of any, segments int) (*journal, []segmentState, error) {
	what, err := json.Marshal(of)
	if err != nil {
		return nil, nil, err
	}
	lines, err := readJournal(name)
	if err != nil {
		return nil, nil, err
	}
	states := make([]segmentState, segments)
	if len(lines) > 0 {
		if err := replayImport(name, lines, what, states); err != nil {
			return nil, nil, err
		}
		if !hasSteps(lines) { // of this import or of another, as of a file that was mended since
			lines = nil
		}
	}
	j, err := openJournal(name, lines)
	if err == nil && len(lines) == 0 {
		if err = j.append(importHeader{stateVersion, what}); err != nil {
			err = errors.Join(err, j.close(), os.Remove(name))
		}
	}
	return j, states, err
}

// replayImport reads the steps.
func replayImport(name string, lines, what []byte, states []segmentState) error {
	header, steps, _ := bytes.Cut(lines, []byte{'\n'})
	var h importHeader
	if err := json.Unmarshal(header, &h); err != nil || h.Version != stateVersion || h.Import == nil {
		return fmt.Errorf("%s is not the state of an import", name)
	}
	if len(steps) > 0 && !bytes.Equal(h.Import, what) {
		return fmt.Errorf("%s is the state of another import, %s, and this one is %s: delete it to begin anew, or name another state file", name, h.Import, what)
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
