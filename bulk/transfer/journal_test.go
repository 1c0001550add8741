package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// TestDurable: a line is written behind what it says is done, is synced before append returns, and an error of either ends the import. A pipe cannot be synced.
func TestDurable(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	synced := false
	j := &journal{file: w, before: func() error { synced = true; return nil }}
	if err := j.append(importStep{Segment: 1}); err == nil || !synced {
		t.Errorf("a line counts that was not synced: %v, %v", err, synced)
	}
	if err := j.later(importStep{Segment: 2}); err == nil {
		t.Error("the error is forgotten")
	}
	w.Close()
	name := filepath.Join(t.TempDir(), "state")
	j, _, err = openJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("the disk is full")
	j.before = func() error { return full }
	_ = j.later(importStep{Segment: 1}) // tells of the write before
	err = j.close()
	if text, _ := os.ReadFile(name); !errors.Is(err, full) || len(text) > 0 {
		t.Errorf("%v, the file has %q", err, text)
	}
	rejects, err := OpenRejects(filepath.Join(t.TempDir(), "rejects"), 2)
	if err == nil {
		err = rejects.Add(bulk.BadRow{})
	}
	if err != nil || !rejects.unsynced || rejects.sync() != nil || rejects.unsynced {
		t.Errorf("%v, %+v", err, rejects)
	}
}

// TestLocked: a second import with the same state file, or the same file of bad rows, is refused, and so is a second export into a directory. The file can be had again
// when the first has ended.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, stateName)
	state, err := OpenImportState(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenImportState(name); err == nil || !strings.Contains(err.Error(), "another import or export has it locked") {
		t.Errorf("a second import: %v", err)
	}
	if _, err := Export(t.Context(), ExportOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another import or export has it locked") {
		t.Errorf("a second export: %v", err)
	}
	if err := state.Close(); err != nil {
		t.Fatal(err)
	}
	if state, err = OpenImportState(name); err != nil {
		t.Fatal(err)
	}
	if err := state.Remove(); err != nil {
		t.Fatal(err)
	}
	var list [2]*Rejects
	for i := range list {
		if list[i], err = OpenRejects(filepath.Join(dir, "rejects"), 5); err != nil {
			t.Fatal(err)
		}
		defer list[i].Close()
	}
	if err := list[0].Add(bulk.BadRow{}); err != nil {
		t.Fatal(err)
	}
	if err := list[1].Add(bulk.BadRow{}); err == nil || !strings.Contains(err.Error(), "written by another import") {
		t.Errorf("a second writer of bad rows: %v", err)
	}
}

// TestStateOfAnotherDatabase: the state of an import that has sent rows into a table that it made is not taken over by one into another database.
func TestStateOfAnotherDatabase(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	open := func() *ImportState {
		s, err := OpenImportState(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	const one, two = "projects/p/instances/i/databases/one", "projects/p/instances/i/databases/two"
	first := open()
	if err := first.Create(one, "customer"); err != nil {
		t.Fatal(err)
	}
	if _, err := first.begin("customer of one", 1); err != nil {
		t.Fatal(err)
	}
	if err := first.journal.append(importStep{Rows: 7}); err != nil {
		t.Fatal(err)
	}
	first.Close()
	second := open()
	if !second.Creates(one) || second.Creates(two) {
		t.Errorf("the table is made in one: %t, in two: %t", second.Creates(one), second.Creates(two))
	}
	if err := second.Create(two, "customer"); err == nil || !strings.Contains(err.Error(), "is the state of another import") {
		t.Errorf("an import into another database takes the state over: %v", err)
	}
	second.Close()
	again := open()
	states, err := again.begin("customer of one", 1)
	if err != nil || states[0].rows != 7 {
		t.Errorf("%v, %+v", err, states)
	}
}
