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

// ImportState is a file that remembers which rows of which files are in a table, so that an import that was interrupted, or ended by a bad row, goes on. It is locked: one
// import at a time has it. It is JSON lines:
//
//	{"version":2,"server":"127.0.0.1:9010","database":"projects/p/instances/i/databases/d","table":"Singers"}
//	{"creates":true}                        the import makes the table
//	{"forget":true}                         the table has lost its rows: what stands before of files does not count
//	{"import":{...}}                        how rows of the files that follow are read and written
//	{"file":"/home/ann/singers.csv", ...}   a file as it is now; what stands before of it does not count
//	{"file":"/home/ann/singers.csv","from":17,"to":65536,"sent":true}     rows that may have been sent (with the mode Insert)
//	{"file":"/home/ann/singers.csv","from":17,"to":4111,"rows":128, ...}  rows that are committed or rejected, and the fingerprint of their text
//
// A file that has changed since is compared by these fingerprints: rows that are as they were sent are not sent again, wherever they stand now.
// What a line says survives a loss of power when the line is in the file. Lines are synced some at a time: an import that goes on writes a few rows again.
type ImportState struct {
	journal *journal
	target  ImportTarget
	creates bool
	way     json.RawMessage          // of the files whose lines come next
	files   map[string]*importedFile // by their absolute names
	now     map[string]*importedFile // those of this import, by the names that it has for them
	reading file.Options
	noted   atomic.Bool // a line about rows was written
}

// ImportTarget is where rows go.
type ImportTarget struct {
	Server   string `json:"server"`
	Database string `json:"database"`
	Table    string `json:"table"`
}

func (t ImportTarget) String() string {
	return fmt.Sprintf("table %s of %s on %s", t.Table, t.Database, t.Server)
}

// ImportWay is what rows that were sent depend on beside their text. Where it changes, all of them are sent again.
type ImportWay struct {
	Created    time.Time `json:"created"`    // when the database was made, if that is known
	Definition []string  `json:"definition"` // of the table
	Mode       Mode      `json:"mode"`
	Reading    []string  `json:"reading"` // what the command line says of the files
}

// stateHeader and the types below are the lines of the file.
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
	Head    string        `json:"head,omitempty"` // the fingerprint of what stands before the rows
	// Resent says that rows of the file were sent before that are not known any more: any of them may be in the table.
	Resent bool `json:"resent,omitempty"`
	// Finished says that all rows of the file are in, and that nothing is known of it any more.
	Finished bool `json:"finished,omitempty"`
}

type stateExtent struct {
	File string `json:"file"`
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Sent bool   `json:"sent,omitempty"`
	Rows int64  `json:"rows,omitempty"` // that are in the table
	// Bad says that other rows of the extent were rejected.
	Bad bool `json:"bad,omitempty"`
	*file.Fingerprint
}

func (e stateExtent) extent(name string) bulk.Extent {
	return bulk.Extent{File: name, From: e.From, To: e.To}
}

// importedFile is what the state knows of a file.
type importedFile struct {
	stateFile
	way        json.RawMessage // how its rows were read and written
	sent, done []stateExtent
}

const importStateVersion = 2

// OpenImportState opens the state file of imports into a table, or makes one, and its directory. It is refused while another import has it.
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

// replay reads the lines.
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
		To      *int64          `json:"to"` // of an extent
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

// Creates says whether the import makes its table: it, or a run before, has called Create.
func (s *ImportState) Creates() bool { return s.creates }

// Create notes that the import is about to make its table, so that one that goes on knows whose the table is.
func (s *ImportState) Create() error {
	s.creates = true
	return s.journal.append(stateCreates{true})
}

// HasRows says whether the table has rows by what the state knows.
func (s *ImportState) HasRows() bool {
	for _, f := range s.files {
		if slices.ContainsFunc(f.done, func(e stateExtent) bool { return e.Rows > 0 }) {
			return true
		}
	}
	return false
}

// Forget forgets all rows: the table does not have them any more.
func (s *ImportState) Forget() error {
	clear(s.files)
	return s.journal.append(stateForget{true})
}

// ImportPlan is what an import of files has to do, and what runs before have done.
type ImportPlan struct {
	Done []bulk.Extent // that are not read again
	Rows int64         // that are in the table by what is done
	// Again says why rows that were sent are sent again, "" if none is.
	Again string
	// Rejects says that rows which runs before have rejected may be among those done, and Bad that some are.
	Rejects, Bad bool
}

// Begin compares files, which are read by some options, with what is known of them.
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

// look looks at a file as it is now.
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

// began says whether rows of the file may have been sent.
func (f *importedFile) began() bool { return f.Resent || len(f.sent)+len(f.done) > 0 }

// change says what has changed since rows of a file were sent, "" if nothing has.
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

// resume finds the rows of a file that were sent, and have not changed. Those beside rejected rows are read again, so that these are
// reported with the lines that they have now.
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

// Finish forgets the files of the import, which is complete, and lets other imports have the state.
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

// mayBeIn says whether rows of an extent may have been sent by a run before.
func (s *ImportState) mayBeIn(e bulk.Extent) bool {
	f := s.now[e.File]
	return f.Resent || slices.ContainsFunc(f.sent, func(x stateExtent) bool { return x.From < e.To && e.From < x.To })
}

// resends says whether rows that a run before has sent may be sent again.
func (s *ImportState) resends() bool {
	for _, f := range s.now {
		if f.Resent {
			return true
		}
	}
	return false
}

// noteSent notes, durably, that rows of an extent may have been sent: an import that goes on takes them for its own if they are in the table as they were sent.
func (s *ImportState) noteSent(e bulk.Extent) error {
	s.noted.Store(true)
	return s.journal.append(stateExtent{File: s.now[e.File].File, From: e.From, To: e.To, Sent: true})
}

// noteDone notes that the rows of an extent are committed or rejected.
func (s *ImportState) noteDone(e bulk.Extent, rows int64, bad bool) error {
	f := s.now[e.File]
	line := stateExtent{File: f.File, From: e.From, To: e.To, Rows: rows, Bad: bad}
	print, err := s.reading.Fingerprint(e)
	if err != nil {
		return err
	}
	// The text is what was sent unless the file was written meanwhile.
	if now, err := file.VersionOf(e.File); err == nil && now == *f.Version && print.Sum != "" {
		line.Fingerprint = &print
	}
	s.noted.Store(true)
	return s.journal.later(line)
}

// Path is the name of the file.
func (s *ImportState) Path() string { return s.journal.name }

// knows says whether there is something that an import can go on with.
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

// Close lets other imports have the state. One that knows nothing is deleted.
func (s *ImportState) Close() error {
	if !s.knows() {
		return s.journal.remove()
	}
	return s.journal.close()
}
