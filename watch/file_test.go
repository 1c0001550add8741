package watch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/clienttest"
	"github.com/crowfoot-db/crowfoot/watch"
)

func feedOf(table string) watch.FeedID {
	return watch.FeedID{TableID: watch.TableID{Database: clienttest.Database, Name: table}}
}

// storeIn stores checkpoints of two feeds in a file in dir, and returns the name of the file.
func storeIn(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "checkpoints.json")
	for _, table := range []string{"Singers", "Albums"} {
		if err := watch.NewFile(name).Store(t.Context(), feedOf(table), watch.Checkpoint{Timestamp: time.Unix(1, 0), Position: `["1"]`}); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// TestFileDamaged checks that a file that is empty, cut off at any byte, or filled with other data gives a lasting
// error. If a damaged file were treated like a missing one, the watcher would start anew and leave changes out.
func TestFileDamaged(t *testing.T) {
	name := storeIn(t, t.TempDir())
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	cases := []string{"null", "{}", "[{}]", `[{"table":"T"}]`, `[{"database":"d","table":"T"}]`, `[{"database":"d","table":"T","timestamp":1}]`,
		strings.Repeat("\x00", len(whole)), string(whole[:40]) + strings.Repeat("\x00", len(whole)-40), string(whole) + string(whole)}
	for n := range len(whole) - len("]\n") + 1 {
		cases = append(cases, string(whole[:n]))
	}
	f := watch.NewFile(name)
	for _, text := range cases {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, loaded := f.Load(t.Context(), feedOf("Singers"))
		for _, err := range []error{f.Check(t.Context()), loaded, f.Store(t.Context(), feedOf("Singers"), watch.Checkpoint{Timestamp: time.Unix(2, 0)})} {
			if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "The file "+name+" does not hold checkpoints: ") {
				t.Errorf("%q: %v", text, err)
			}
		}
		if after, err := os.ReadFile(name); err != nil || string(after) != text {
			t.Errorf("%q has become %q, %v", text, after, err)
		}
	}
	c := clienttest.Connect(t, singers)
	if err := runToEnd(t, watch.Options{Source: &watch.Tables{Client: c}, Handler: newRecorder(), Repository: f}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("Run ended with %v", err)
	}
}

// TestFileLeftover checks that the incomplete new file that a crash may leave is ignored.
func TestFileLeftover(t *testing.T) {
	name := storeIn(t, t.TempDir())
	f := watch.NewFile(name)
	for _, text := range []string{"", "[{", strings.Repeat("x", 10_000)} {
		if err := os.WriteFile(name+".next", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, ok, err := f.Load(t.Context(), feedOf("Albums")); !ok || err != nil || !c.Timestamp.Equal(time.Unix(1, 0)) {
			t.Errorf("loaded %v, %v, %v", c, ok, err)
		}
		err := errors.Join(f.Check(t.Context()), f.Store(t.Context(), feedOf("Singers"), watch.Checkpoint{Timestamp: time.Unix(1, 0)}))
		if c, _, loaded := f.Load(t.Context(), feedOf("Singers")); err != nil || loaded != nil || c.Position != "" {
			t.Errorf("loaded %v, %v, %v", c, err, loaded)
		}
	}
}

// TestFileFullDisk checks that on a full disk, changes are delivered, Health shows that the checkpoint cannot be
// stored, and the stored checkpoint is unchanged. The next checkpoint must be stored as soon as there is space. A link
// to /dev/full simulates the full disk.
func TestFileFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	c := clienttest.Connect(t, singers)
	name := filepath.Join(t.TempDir(), "checkpoints.json")
	fill := func() {
		if err := os.Symlink("/dev/full", name+".next"); err != nil {
			t.Fatal(err)
		}
	}
	free := func() {
		if err := os.Remove(name + ".next"); err != nil {
			t.Fatal(err)
		}
	}
	r := newRecorder()
	o := watch.Options{Source: &watch.Tables{Client: c, Include: []string{"Singers"}, Interval: time.Millisecond}, Handler: r, Repository: watch.NewFile(name), CheckpointInterval: time.Millisecond, Start: time.Unix(0, 0)}
	w, stop := run(t, o)
	apply(t, c, singer(1, "a"))
	r.wait(t, atLeast(1))
	stored := func() watch.Checkpoint {
		at, _, err := o.Repository.Load(context.Background(), feedOf("Singers"))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	eventually(func() bool { return stored().Timestamp.After(time.Unix(0, 0)) })
	before := stored()
	fill()
	apply(t, c, singer(2, "b"))
	r.wait(t, atLeast(2))
	eventually(func() bool { return errors.Is(w.Health().Feeds[0].Err, syscall.ENOSPC) })
	if at := stored(); at != before {
		t.Errorf("on the full disk there is %v, want %v", at, before)
	}
	free()
	eventually(func() bool { return w.Health().Ready })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if at := stored(); !at.Timestamp.After(before.Timestamp) {
		t.Errorf("then there is %v", at)
	}
}

// TestFileCannotBe checks that Run returns an error at once if the file cannot be created, for example because its
// directory is read-only or does not exist.
func TestFileCannotBe(t *testing.T) {
	c := clienttest.Connect(t, singers)
	dir := t.TempDir()
	readOnly := filepath.Join(dir, "read-only")
	if err := os.Mkdir(readOnly, 0o555); err != nil {
		t.Fatal(err)
	}
	names := []string{filepath.Join(dir, "none", "f"), filepath.Join(storeIn(t, dir), "f"), dir, "/proc/f"}
	if os.Getuid() != 0 { // permissions do not restrict root
		names = append(names, filepath.Join(readOnly, "f"))
	}
	for _, name := range names {
		err := runToEnd(t, watch.Options{Source: &watch.Tables{Client: c}, Handler: newRecorder(), Repository: watch.NewFile(name)})
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(fmt.Sprint(err), "The file "+name+" cannot hold checkpoints: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFileShared checks that watchers of different feeds can share a file without overwriting each other's
// checkpoints. If two watchers have the same feed, one of them must end.
func TestFileShared(t *testing.T) {
	name := filepath.Join(t.TempDir(), "checkpoints.json")
	var storing sync.WaitGroup
	for i := range 8 {
		f := watch.NewFile(name) // each File stands for a process of its own: only the file lock keeps them apart
		storing.Go(func() {
			for n := range 20 {
				if err := f.Store(t.Context(), feedOf(fmt.Sprint("T", i)), watch.Checkpoint{Timestamp: time.Unix(int64(n+1), 0)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	storing.Wait()
	for i := range 8 {
		if at, ok, err := watch.NewFile(name).Load(t.Context(), feedOf(fmt.Sprint("T", i))); !ok || err != nil || at.Timestamp.Unix() != 20 {
			t.Errorf("T%d: %v, %v, %v", i, at, ok, err)
		}
	}

	c := clienttest.Connect(t, singers)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		w, err := watch.New(watch.Options{Source: &watch.Tables{Client: c, Interval: time.Millisecond}, Handler: newRecorder(), Repository: watch.NewFile(name), CheckpointInterval: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- w.Run(ctx) }()
	}
	for id := 0; ; id++ {
		apply(t, c, singer(id, "a"))
		select {
		case err := <-ended:
			if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "Another watcher stores checkpoints of Singers in the same repository") {
				t.Error(err)
			}
			cancel()
			<-ended // the other watcher writes the file until it ends
			return
		default:
		}
	}
}
