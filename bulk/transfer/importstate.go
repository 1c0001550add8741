package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
)

// ImportState is a file that records which rows of which files are in a table, so that an import can continue after an
// interruption or a bad row. The file is locked, so only one import at a time uses it. It has JSON lines:
//
//	{"version":2,"server":"127.0.0.1:9010","database":"projects/p/instances/i/databases/d","table":"Singers"}
//	{"creates":true}                        the import makes the table
//	{"forget":true}                         the table has lost its rows: earlier lines about files do not count
//	{"import":{...}}                        how the files of the next lines are read and written
//	{"file":"/home/ann/singers.csv", ...}   a file as it is now; earlier lines about it do not count
//	{"file":"/home/ann/singers.csv","from":17,"to":65536,"sent":true}     rows that may have been sent (with the mode Insert)
//	{"file":"/home/ann/singers.csv","from":17,"to":4111,"rows":128, ...}  rows that are committed or rejected, and the fingerprint of their text
//
// If a file has changed, the fingerprints tell which rows are still as they were when they were sent. Such rows are
// not sent again, wherever they are now in the file.
//
// A line is durable only when it is synced, and several lines are synced together. So after a crash an import may write
// a few rows again.
type ImportState struct {
	journal *journal
	target  ImportTarget
	creates bool
	way     json.RawMessage          // the ImportWay in the last line that has one, for the files in later lines
	files   map[string]*importedFile // what the lines say about each file, by the file's absolute name
	now     map[string]*importedFile // the files of this import, by the names that the user gave
	reading file.Options
	noted   atomic.Bool // whether this run has written a line about rows
}

// ImportTarget is the table to which an import writes.
type ImportTarget struct {
	Server   string `json:"server"`
	Database string `json:"database"`
	Table    string `json:"table"`
}

func (t ImportTarget) String() string {
	return fmt.Sprintf("table %s of %s on %s", t.Table, t.Database, t.Server)
}

// ImportWay holds everything that decides what is written to the table, apart from the text of the rows. When it
// changes, all rows are sent again.
type ImportWay struct {
	Created    time.Time `json:"created"`    // when the database was created, if known
	Definition []string  `json:"definition"` // the DDL of the table
	Mode       Mode      `json:"mode"`
	Reading    []string  `json:"reading"` // the options of the command line for reading files
}

// stateHeader and the types below are the JSON forms of the lines of the state file.
type stateHeader struct {
	Version int `json:"version"`
	ImportTarget
}

type stateCreates struct {
	Creates bool `json:"creates"`
}

type stateWay struct {
	Import ImportWay `json:"import"`
}

type stateForget struct {
	Forget bool `json:"forget"`
}

type stateFile struct {
	File    string        `json:"file"`
	Version *file.Version `json:"version,omitempty"`
	Head    string        `json:"head,omitempty"` // the SHA-256 of the bytes before the first row (file.Options.Head)
	// Resent says that rows of the file were sent earlier, and that it is unknown which; any of them may be in the
	// table.
	Resent bool `json:"resent,omitempty"`
	// Finished says that all rows of the file are in the table. Then the state no longer records extents of the file.
	Finished bool `json:"finished,omitempty"`
}

type stateExtent struct {
	File string `json:"file"`
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Sent bool   `json:"sent,omitempty"`
	Rows int64  `json:"rows,omitempty"` // how many rows of the extent are in the table
	// Bad says that rows of the extent were rejected.
	Bad bool `json:"bad,omitempty"`
	*file.Fingerprint
}

func (e stateExtent) extent(name string) bulk.Extent {
	return bulk.Extent{File: name, From: e.From, To: e.To}
}

// importedFile is what the state records about one file.
type importedFile struct {
	stateFile
	way        json.RawMessage // how the file's rows were read and written
	sent, done []stateExtent
}

const importStateVersion = 2

// OpenImportState opens the state file of imports into a table. It creates the file and its directory if they do not
// exist. It returns an error if another import has the file open.
func OpenImportState(name string, target ImportTarget) (*ImportState, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	j, lines, err := openJournal(name)
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("another import into %s is under way: it has %s locked", target, name)
	}
	if err != nil {
		return nil, err
	}
	s := &ImportState{journal: j, target: target}
	if err := s.replay(lines); err != nil {
		return nil, errors.Join(err, j.close())
	}
	if len(lines) == 0 {
		if err := j.append(stateHeader{importStateVersion, target}); err != nil {
			return nil, errors.Join(err, j.remove())
		}
	}
	return s, nil
}

// replay restores the state from the lines of the state file.
func (s *ImportState) replay(lines []byte) error {
	s.files = map[string]*importedFile{}
	n := 0
	for line := range bytes.Lines(lines) {
		if n++; n == 1 {
			if err := s.checkHeader(line); err != nil {
				return err
			}
			continue
		}
		if err := s.replayLine(line); err != nil {
			return fmt.Errorf("%s is damaged in line %d: delete it, and all rows are sent again", s.journal.name, n)
		}
	}
	return nil
}

func (s *ImportState) checkHeader(line []byte) error {
	var h stateHeader
	if err := json.Unmarshal(line, &h); err != nil || h.Version != importStateVersion {
		return fmt.Errorf("%s is not the state of an import by this version of crowfoot: name another file", s.journal.name)
	}
	if h.ImportTarget != s.target {
		return fmt.Errorf("%s is the state of an import into %s, and this one is into %s: name another file", s.journal.name, h.ImportTarget, s.target)
	}
	return nil
}

func (s *ImportState) replayLine(line []byte) error {
	var l struct {
		Creates *bool           `json:"creates"`
		Forget  bool            `json:"forget"`
		Import  json.RawMessage `json:"import"`
		File    string          `json:"file"`
		To      *int64          `json:"to"` // only lines about extents have this field
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	switch f := s.files[l.File]; {
	case l.Creates != nil:
		s.creates = *l.Creates
	case l.Forget:
		clear(s.files)
	case l.Import != nil:
		s.way = l.Import
	case l.To == nil:
		f = &importedFile{way: s.way}
		s.files[l.File] = f
		err := json.Unmarshal(line, &f.stateFile)
		if f.Finished {
			delete(s.files, l.File)
		} else if f.Version == nil {
			err = errors.New("a file without a version")
		}
		return err
	case f == nil:
		return errors.New("an extent of no file")
	default:
		var e stateExtent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.Sent {
			f.sent = append(f.sent, e)
		} else {
			f.done = append(f.done, e)
		}
	}
	return nil
}

// Creates reports whether the import creates its table, that is, whether this run or an earlier one has called Create.
func (s *ImportState) Creates() bool { return s.creates }

// Create records that the import is about to create its table. A later run then knows that this import has created the
// table.
func (s *ImportState) Create() error {
	s.creates = true
	return s.journal.append(stateCreates{true})
}

// HasRows reports whether, according to the state, rows of the import are in the table.
func (s *ImportState) HasRows() bool {
	for _, f := range s.files {
		if slices.ContainsFunc(f.done, func(e stateExtent) bool { return e.Rows > 0 }) {
			return true
		}
	}
	return false
}

// Forget removes all rows from the state, because the table no longer has them.
func (s *ImportState) Forget() error {
	clear(s.files)
	return s.journal.append(stateForget{true})
}

// ImportPlan says which rows earlier runs have already written, and which must be sent again.
type ImportPlan struct {
	Done []bulk.Extent // extents that must not be read again
	Rows int64         // how many rows of the extents in Done are in the table
	// Again says why rows that were sent before are sent again; "" if none are.
	Again string
	// Rejects says that earlier runs may have rejected rows of the files. Bad says that rows in Done were rejected.
	Rejects, Bad bool
}

// Begin compares the named files with the state, and returns the plan for this run. If the parameter way differs from
// the ImportWay that the state records for a file, all rows of the file must be sent again. The last parameter holds
// the options with which the files are read.
func (s *ImportState) Begin(way ImportWay, names []string, reading file.Options) (plan ImportPlan, err error) {
	s.reading, s.now = reading, map[string]*importedFile{}
	text, err := json.Marshal(way)
	if err != nil {
		return plan, err
	}
	lines := []any{stateWay{way}}
	for _, name := range names {
		now, err := s.look(name, text)
		if err != nil {
			return plan, err
		}
		before := s.files[now.File]
		plan.Rejects = plan.Rejects || before != nil && before.began()
		if why := now.change(before, s.target.Table); why != "" && plan.Again == "" {
			plan.Again = why
		}
		s.now[name] = now
	}
	plan.Rejects = plan.Rejects && plan.Again == ""
	for _, name := range names {
		now := s.now[name]
		switch before := s.files[now.File]; {
		case before == nil || !before.began():
			lines = append(lines, now.stateFile)
		case plan.Again == "":
			s.now[name] = before
		default:
			if err := s.resume(name, now, before); err != nil {
				return plan, err
			}
			lines = append(lines, now.stateFile)
			for _, e := range now.done {
				lines = append(lines, e)
			}
		}
		now = s.now[name]
		s.files[now.File] = now
		for _, e := range now.done {
			plan.Done, plan.Rows, plan.Bad = append(plan.Done, e.extent(name)), plan.Rows+e.Rows, plan.Bad || e.Bad
		}
	}
	return plan, s.journal.append(lines...)
}

// look finds out the version of a file as it is now. It returns a new importedFile for the file, without extents.
func (s *ImportState) look(name string, way []byte) (*importedFile, error) {
	whole, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	version, err := file.VersionOf(name)
	if err != nil {
		return nil, err
	}
	head, err := s.reading.Head(name)
	return &importedFile{stateFile: stateFile{File: whole, Version: &version, Head: head}, way: way}, err
}

// began reports whether an import may have sent rows of the file.
func (f *importedFile) began() bool { return f.Resent || len(f.sent)+len(f.done) > 0 }

// change says what has changed since rows of the file were sent; "" if nothing has.
func (f *importedFile) change(before *importedFile, table string) string {
	var was, is ImportWay
	switch {
	case before == nil || !before.began():
		return ""
	case bytes.Equal(before.way, f.way) && *before.Version == *f.Version && before.Head == f.Head:
		return ""
	case bytes.Equal(before.way, f.way):
		return filepath.Base(f.File) + " has changed"
	case json.Unmarshal(before.way, &was) != nil || json.Unmarshal(f.way, &is) != nil || !was.Created.Equal(is.Created):
		return "the database was made anew"
	case !slices.Equal(was.Definition, is.Definition):
		return fmt.Sprintf("table %s was altered (%s)", table, bulk.DefinitionChange(was.Definition, is.Definition))
	case was.Mode != is.Mode:
		return fmt.Sprintf("--mode was %s", was.Mode)
	}
	return "the flags that say how files are read have changed"
}

// resume finds the rows of a file that were sent and have not changed since. It leaves out extents with rejected rows:
// these extents are read again, so that the rejected rows are reported with their current line numbers.
func (s *ImportState) resume(name string, now, before *importedFile) error {
	now.Resent = before.began()
	if !bytes.Equal(before.way, now.way) || before.Head != now.Head {
		return nil
	}
	known := slices.DeleteFunc(slices.Clone(before.done), func(e stateExtent) bool { return e.Bad })
	if *before.Version == *now.Version {
		now.done = known
		return nil
	}
	known = slices.DeleteFunc(known, func(e stateExtent) bool { return e.Fingerprint == nil })
	prints := make([]file.Fingerprint, len(known))
	for i, e := range known {
		prints[i] = *e.Fingerprint
	}
	extents, err := s.reading.Find(name, prints)
	for i, e := range extents {
		if e.To > e.From {
			known[i].From, known[i].To = e.From, e.To
			now.done = append(now.done, known[i])
		}
	}
	return err
}

// Finish removes the files of the import from the state, because the import is complete. Then it unlocks the state
// file, or deletes it if the state holds nothing from which a later import can continue.
func (s *ImportState) Finish() error {
	var lines []any
	for _, f := range s.now {
		delete(s.files, f.File)
		lines = append(lines, stateFile{File: f.File, Finished: true})
	}
	s.creates = false
	s.noted.Store(false)
	if !s.knows() {
		return s.journal.remove()
	}
	return errors.Join(s.journal.append(append(lines, stateCreates{false})...), s.journal.close())
}

// mayBeIn reports whether an earlier run may have sent rows of an extent.
func (s *ImportState) mayBeIn(e bulk.Extent) bool {
	f := s.now[e.File]
	return f.Resent || slices.ContainsFunc(f.sent, func(x stateExtent) bool { return x.From < e.To && e.From < x.To })
}

// resends reports whether this import may send rows again that an earlier run has already sent.
func (s *ImportState) resends() bool {
	for _, f := range s.now {
		if f.Resent {
			return true
		}
	}
	return false
}

// noteSent records, durably, that rows of an extent may have been sent. If a later run finds rows of the extent in the
// table, unchanged, it counts them as rows of this import.
func (s *ImportState) noteSent(e bulk.Extent) error {
	s.noted.Store(true)
	return s.journal.append(stateExtent{File: s.now[e.File].File, From: e.From, To: e.To, Sent: true})
}

// noteDone records that the rows of an extent were committed or rejected.
func (s *ImportState) noteDone(e bulk.Extent, rows int64, bad bool) error {
	f := s.now[e.File]
	line := stateExtent{File: f.File, From: e.From, To: e.To, Rows: rows, Bad: bad}
	fingerprint, err := s.reading.Fingerprint(e)
	if err != nil {
		return err
	}
	// If the file was changed after its rows were read, the fingerprint may not be that of the rows that were sent. In
	// this case, the line gets no fingerprint.
	if now, err := file.VersionOf(e.File); err == nil && now == *f.Version && fingerprint.Sum != "" {
		line.Fingerprint = &fingerprint
	}
	s.noted.Store(true)
	return s.journal.later(line)
}

// Path returns the name of the state file.
func (s *ImportState) Path() string { return s.journal.name }

// knows reports whether the state holds anything from which an import can continue.
func (s *ImportState) knows() bool {
	if s.creates || s.noted.Load() {
		return true
	}
	for _, f := range s.files {
		if f.began() {
			return true
		}
	}
	return false
}

// Close unlocks the state file, or deletes it if the state holds nothing from which a later import can continue.
func (s *ImportState) Close() error {
	if !s.knows() {
		return s.journal.remove()
	}
	return s.journal.close()
}
