package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// deliveries holds the changes that one watcher has delivered. The test kills the watcher, or the command that gets its
// lines, and starts it again. The time from a start to the next end is called a life. In each life the lines are
// written to a separate file. SIGKILL may cut off the last line.
type deliveries struct {
	t                      *testing.T
	name, dir              string
	stream, table, command bool // whether the watcher reads a change stream, has a table as repository, runs a command
	lives                  []*life
	last                   map[int64]time.Time // timestamp of the newest delivered change, by key
	inOrder                map[int]bool        // by index in lives: true if that life ended with a clean shutdown
}

type life struct {
	offset int64
	lines  []deliveredLine
}

type deliveredLine struct {
	CommitTimestamp time.Time `json:"commit_timestamp"`
	ModType         string    `json:"mod_type"`
	Keys            struct{ K int64 }
	NewValues       struct{ V string } `json:"new_values"`
}

// createLife creates a new file, for the lines of the next life of a watcher or of its command.
func createLife(dir string) (*os.File, error) {
	for n := 0; ; n++ {
		file, err := os.OpenFile(lifeName(dir, n), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
}

func lifeName(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("%06d", n)) }

// stoppedInOrder notes that the last life has ended with a clean shutdown. By then a watcher without a command has
// stored in its repository how far it has delivered. So the next life need not deliver these changes again, and the
// method check treats repeated changes as errors.
func (d *deliveries) stoppedInOrder() {
	if d.read(); d.inOrder == nil {
		d.inOrder = map[int]bool{}
	}
	d.inOrder[len(d.lives)-1] = true
}

// read reads the lines that were written to the files since the last call.
func (d *deliveries) read() {
	d.t.Helper()
	if d.last == nil {
		d.last = map[int64]time.Time{}
	}
	for n := 0; ; n++ {
		file, err := os.Open(lifeName(d.dir, n))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			d.t.Fatal(err)
		}
		if n == len(d.lives) {
			d.lives = append(d.lives, &life{})
		}
		err = d.readLife(file, d.lives[n])
		file.Close()
		if err != nil {
			d.t.Fatalf("%s: %v", file.Name(), err)
		}
	}
}

func (d *deliveries) readLife(file *os.File, of *life) error {
	if _, err := file.Seek(of.offset, io.SeekStart); err != nil {
		return err
	}
	text, err := io.ReadAll(file)
	for err == nil {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			return nil
		}
		var line deliveredLine
		if err = json.Unmarshal(text[:end], &line); err == nil {
			of.lines = append(of.lines, line)
			of.offset += int64(end)
			if line.CommitTimestamp.After(d.last[line.Keys.K]) {
				d.last[line.Keys.K] = line.CommitTimestamp
			}
		}
		text = text[end:]
	}
	return err
}

// upTo reports whether all changes of one transaction were delivered. The parameters are the timestamp of this
// transaction and its number of changes.
func (d *deliveries) upTo(last time.Time, changes int) bool {
	for _, at := range d.last {
		if at.Equal(last) {
			changes--
		}
	}
	return changes == 0
}

// check compares the deliveries with the commits:
//
//   - Every line is a committed change with its value. A change stream delivers every change. Polls deliver every row,
//     except values that were overwritten before a poll could read them.
//   - In each life, the changes of a key come in the order of their commits, and each comes once. Only a new life may
//     repeat changes of an earlier one. A life that reads a change stream leaves no change out.
//   - A life that reads a change stream delivers whole transactions, except perhaps its last one, and each transaction
//     was delivered whole by some life. In a life that polls, timestamps do not go back.
//   - After a life that ended with a clean shutdown, the next life repeats nothing, with two exceptions. A command may
//     have written a line that it has not acknowledged. A repository in a table cannot store a position within a
//     transaction of a change stream.
func (d *deliveries) check(l *ledger) {
	d.t.Helper()
	d.read()
	delivered, whole := map[deliveredChange]bool{}, map[time.Time]bool{}
	lines := 0
	for n, life := range d.lives {
		lines += len(life.lines)
		ended := d.inOrder[n-1] && !d.command && !(d.stream && d.table)
		for _, line := range life.lines {
			c := deliveredChange{line.Keys.K, line.CommitTimestamp}
			if ended && delivered[c] {
				d.t.Errorf("%s, life %d: %v comes again though the life before ended in order", d.name, n, c)
			}
			delivered[c] = true
		}
		d.checkOrder(l, n, life.lines)
		d.checkTransactions(l, n, life.lines, whole)
	}
	for k, list := range l.of {
		for i, e := range list {
			if (d.stream || i == len(list)-1) && !delivered[deliveredChange{k, e.at}] {
				d.t.Errorf("%s: the change of key %d at %v is lost", d.name, k, e.at)
			}
		}
	}
	for at := range l.sizes {
		if d.stream && !whole[at] {
			d.t.Errorf("%s: the transaction at %v was not delivered whole", d.name, at)
		}
	}
	d.t.Logf("%s: %d lines in %d lives, %d of them again", d.name, lines, len(d.lives), lines-len(delivered))
}

type deliveredChange struct {
	key int64
	at  time.Time
}

// checkOrder compares the lines of one life with the ledger, for each key.
func (d *deliveries) checkOrder(l *ledger, life int, lines []deliveredLine) {
	d.t.Helper()
	next := map[int64]int{} // by key, the index in the ledger of the change that must come next
	var last time.Time
	for i, line := range lines {
		k, list := line.Keys.K, l.of[line.Keys.K]
		from, again := next[k]
		at := from
		for at < len(list) && !list[at].at.Equal(line.CommitTimestamp) {
			at++
		}
		switch {
		case at == len(list):
			d.t.Errorf("%s, life %d, line %d: the change of key %d at %v was not committed, or comes late", d.name, life, i, k, line.CommitTimestamp)
			continue
		case d.stream && again && at > from:
			d.t.Errorf("%s, life %d, line %d: %d changes of key %d are left out", d.name, life, i, at-from, k)
		case list[at].value != line.NewValues.V || d.stream && (line.ModType == "DELETE") != (list[at].value == ""):
			d.t.Errorf("%s, life %d, line %d: key %d is %s %q, want %q", d.name, life, i, k, line.ModType, line.NewValues.V, list[at].value)
		case !d.stream && line.CommitTimestamp.Before(last):
			d.t.Errorf("%s, life %d, line %d: %v comes after %v", d.name, life, i, line.CommitTimestamp, last)
		}
		next[k], last = at+1, line.CommitTimestamp
	}
}

// checkTransactions finds the transactions that one life, reading a change stream, has delivered completely, and adds
// their timestamps to the map whole. All transactions of a life except the last must be complete. The timestamp
// identifies a transaction, because no two transactions of Crowfoot have the same.
func (d *deliveries) checkTransactions(l *ledger, life int, lines []deliveredLine, whole map[time.Time]bool) {
	d.t.Helper()
	for i := 0; d.stream && i < len(lines); {
		at, n := lines[i].CommitTimestamp, 0
		for i < len(lines) && lines[i].CommitTimestamp.Equal(at) {
			i, n = i+1, n+1
		}
		if n == l.sizes[at] {
			whole[at] = true
		} else if i < len(lines) {
			d.t.Errorf("%s, life %d: of the transaction at %v come %d changes of %d", d.name, life, at, n, l.sizes[at])
		}
	}
}

// runHandler is an environment variable. It makes the test binary act as the command of crowfoot watch --exec, which
// acknowledges lines. Its value is the directory for the files with these lines.
const runHandler = "CROWFOOT_TEST_RUN_HANDLER"

// handleLines writes each line of standard input to the file of a life, and acknowledges the line. It may kill itself
// before it writes a line, while it writes, or before it acknowledges the line.
func handleLines(dir string) error {
	file, err := createLife(dir)
	if err != nil {
		return err
	}
	var seed, life uint64
	fmt.Sscan(os.Getenv(watchSeedName), &seed)
	fmt.Sscan(filepath.Base(file.Name()), &life)
	rnd := rand.New(rand.NewPCG(seed, life))
	last, how := -1, rnd.IntN(3)
	if rnd.IntN(2) == 0 {
		last = rnd.IntN(300)
	}
	for n, in := 0, bufio.NewReader(os.Stdin); ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil // the watcher has ended; if it was killed while it sent a line, this line is incomplete
		}
		if n == last {
			file.Write(line[:how*len(line)/2])
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if _, err := file.Write(line); err != nil {
			return err
		}
		if _, err := os.Stdout.WriteString("\n"); err != nil {
			return err
		}
	}
}
