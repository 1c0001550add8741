package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// TestDurable checks that a journal writes a line only after the work that the line reports is durable. It also checks
// that append fails if the line cannot be synced; for this, the test appends a line to a pipe, which cannot be synced.
// If the sync of a line fails, or if the function that makes the work durable fails, then later calls must return this
// error, too.
func TestDurable(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	synced := false
	j := &journal{file: w, before: func() error { synced = true; return nil }}
	if err := j.append(stateForget{true}); err == nil || !synced {
		t.Errorf("a line counts that was not synced: %v, %v", err, synced)
	}
	if err := j.later(stateForget{true}); err == nil {
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
	_ = j.later(stateForget{true}) // the method later() returns only the error of an earlier write, and there was none
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

// TestLocked checks that a second import with the same state file or reject file is refused, and so is a second export
// into the same directory. After the first one has ended, the files can be opened again.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	name, target := filepath.Join(dir, stateName), ImportTarget{"localhost:9010", "projects/p/instances/i/databases/d", "T"}
	state, err := OpenImportState(name, target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenImportState(name, target); err == nil || !strings.Contains(err.Error(), "another import into table T of projects/p/instances/i/databases/d on localhost:9010 is under way") {
		t.Errorf("a second import: %v", err)
	}
	if _, err := Export(t.Context(), ExportOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another import or export has it locked") {
		t.Errorf("a second export: %v", err)
	}
	if err := state.Close(); err != nil {
		t.Fatal(err)
	}
	if state, err = OpenImportState(name, target); err != nil {
		t.Fatal(err)
	}
	if err := state.Finish(); err != nil {
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
