//go:build unix

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/watch"
	"github.com/crowfoot-db/crowfoot/watch/jsonlines"
)

// batch returns a transaction of n changes, each with a value of size bytes.
func batch(n, size int) []*watch.Transaction {
	columns := []watch.Column{{Name: "V", Type: &sppb.Type{Code: sppb.TypeCode_STRING}}}
	tx := new(watch.Transaction)
	for i := range n {
		value := structpb.NewStringValue(fmt.Sprintf("%d %s", i, strings.Repeat("x", size)))
		tx.Changes = append(tx.Changes, watch.Change{Table: watch.TableID{Name: "T"}, Key: watch.Row{Columns: columns, Values: []*structpb.Value{value}}})
	}
	return []*watch.Transaction{tx}
}

func linesOf(t *testing.T, list []*watch.Transaction) string {
	t.Helper()
	text, err := jsonlines.AppendLines(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

// TestCommand checks that a command gets all lines of all batches in order, even if they exceed the size of a pipe.
// The command must end when the handler is closed, and its output must be passed on.
func TestCommand(t *testing.T) {
	var out bytes.Buffer
	c := &Command{Args: shell("cat; echo end"), Stdout: &out}
	one, two := batch(3000, 100), batch(2, 200_000)
	for _, list := range [][]*watch.Transaction{one, two} {
		if err := c.HandleBatch(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if want := linesOf(t, one) + linesOf(t, two) + "end\n"; out.String() != want {
		t.Errorf("the command got %d bytes, want %d", out.Len(), len(want))
	}
	if err := c.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// TestAcknowledges checks that HandleBatch returns when the command has acknowledged every line of a batch, even if the
// pipes of the command's input and output are full for a while.
func TestAcknowledges(t *testing.T) {
	done := filepath.Join(t.TempDir(), "done")
	// The script writes each line to the file before it acknowledges the line. The command tee would not guarantee
	// that order.
	c := &Command{Args: shell(`while IFS= read -r line; do printf '%s\n' "$line" >&3; printf '%s\n' "$line"; done 3> ` + done), Acknowledge: true}
	list := batch(400, 1000)
	for n := 1; n <= 2; n++ {
		if err := c.HandleBatch(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(done); err != nil || string(got) != strings.Repeat(linesOf(t, list), n) {
			t.Errorf("after batch %d the command is done with %d bytes, %v", n, len(got), err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func fatal(err error) bool { return reflect.TypeOf(err) == reflect.TypeOf(watch.Fatal(err)) }

// TestCommandFails checks that a command that fails before it has acknowledged a batch is started again with the next
// call.
func TestCommandFails(t *testing.T) {
	first := filepath.Join(t.TempDir(), "first")
	c := &Command{Args: shell("if test ! -e " + first + "; then touch " + first + "; read -r line; echo done; exit 3; fi; cat"), Acknowledge: true}
	list := batch(5, 10)
	if err := c.HandleBatch(t.Context(), list); err == nil || fatal(err) || err.Error() != "the command has ended: exit status 3" {
		t.Errorf("%v", err)
	}
	if err := c.HandleBatch(t.Context(), list); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestCommandEnds checks that HandleBatch returns a fatal error, which ends the watcher, if the command exits with
// status 0, cannot be run, or writes more lines than it was given.
func TestCommandEnds(t *testing.T) {
	for _, c := range []struct {
		script      string
		acknowledge bool
		want        string
	}{
		{"head -n 2 > /dev/null", true, "the command has ended, with exit status 0"},
		{"head -n 2 > /dev/null", false, "the command has ended, with exit status 0"},
		{"no-such-command", true, "the command cannot be run: exit status 127"},
		{"echo hello; cat", true, "the command has written more lines than it was given, so that they cannot acknowledge changes"},
	} {
		command := &Command{Args: shell(c.script), Acknowledge: c.acknowledge}
		var err error
		for err == nil { // the first batches may succeed, since they fit into the pipe
			err = command.HandleBatch(t.Context(), batch(1000, 100))
		}
		if !fatal(err) || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.script, err, c.want)
		}
		if ended := errors.Is(err, ErrEnded); ended != strings.Contains(c.want, "status 0") {
			t.Errorf("%s: ErrEnded is %v", c.script, ended)
		}
		if err := command.Close(); err != nil {
			t.Errorf("%s: %v", c.script, err)
		}
	}
}

// TestStop checks that a watcher that must end does not wait for a slow command, and that the command has got only
// whole lines.
func TestStop(t *testing.T) {
	got := filepath.Join(t.TempDir(), "got")
	c := &Command{Args: shell("read -r line; echo \"$line\"; cat > " + got), Acknowledge: true}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- c.HandleBatch(ctx, batch(10_000, 100)) }()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(got); err == nil && len(text) > 0 && text[len(text)-1] != '\n' {
		t.Errorf("the last line is cut off: %q", text[max(0, len(text)-50):])
	}
	if err := (&Command{Args: []string{"/none"}}).HandleBatch(t.Context(), batch(1, 1)); err == nil {
		t.Error("a program that is not there runs")
	}
}

// TestAbandoned ends the context of a batch but not the watcher, as when a change stream is read again after an error.
// The batch must come again and go to a new command. Acknowledgements of the first batch must not count for the
// second, and the end of the first command must not end the watcher.
func TestAbandoned(t *testing.T) {
	for _, acknowledge := range []bool{false, true} {
		dir := t.TempDir()
		reading, proceed, got := filepath.Join(dir, "reading"), filepath.Join(dir, "proceed"), filepath.Join(dir, "got")
		first := "read -r line; touch " + reading + "; until test -e " + proceed + "; do sleep 0.01; done; cat > /dev/null"
		script := "if test -e " + reading + "; then tee " + got + "; else " + first + "; fi"
		c := &Command{Args: shell(script), Acknowledge: acknowledge}
		list := batch(2000, 100) // more than the pipe holds
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { result <- c.HandleBatch(ctx, list) }()
		for _, err := os.Stat(reading); err != nil; _, err = os.Stat(reading) {
			runtime.Gosched()
		}
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) && !errors.Is(err, os.ErrClosed) {
			t.Errorf("%v", err)
		}
		if err := os.WriteFile(proceed, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.HandleBatch(t.Context(), list); err != nil {
			t.Errorf("acknowledge %v: %v", acknowledge, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(got); err != nil || string(text) != linesOf(t, list) {
			t.Errorf("acknowledge %v: the second command got %d bytes, %v", acknowledge, len(text), err)
		}
	}
}

// TestGrandchild checks that end returns even if a process that the command has started in another session keeps the
// output open.
func TestGrandchild(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	untilTheEnd := "while test -d " + t.TempDir() + "; do sleep 0.1; done"
	c := &Command{Args: shell("setsid sh -c '" + untilTheEnd + "' & cat"), Acknowledge: true}
	if err := c.HandleBatch(t.Context(), batch(3, 10)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
