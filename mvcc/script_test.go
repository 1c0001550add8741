package mvcc_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// TestScripts runs the scripts in testdata and checks that each command prints what its script says. In scripts, keys
// are written without their sentinel byte. A bound has one of three forms. KEY is the key itself. TEXT% is the text
// without a sentinel byte. KEY> is the bound just after the key. Commands:
//
//	write ts=T           writes lines "KEY=VALUE" or "KEY" (a delete), in one batch
//	get at=T KEY...      prints the value and version of each key
//	scan at=T [start= end= reverse deleted skip=KEY]   prints rows; deleted calls ShowDeleted;
//	                     skip calls SkipTo with KEY after the first row
//	changed since=T [start= end=]   prints the result of ChangedSince
//	collect ts=T [dead=TEXT]   deletes versions that no read at or above T sees, and keys that contain the text
//	erase start= end=    calls Erase
//	reopen               closes and opens the store, as a restart does
//	dump                 prints every key of the store, decoded
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{fs: vfs.NewMem()}
		s.open(t)
		defer func() { _ = s.store.Close() }()
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	fs    vfs.FS
	store kv.Store
	v     *mvcc.Versions
}

func (s *script) open(t *testing.T) {
	store, err := pebble.Open("data", s.fs)
	if err != nil {
		t.Fatal(err)
	}
	s.store, s.v = store, mvcc.New(store).In(7)
}

func key(name string) []byte { return append([]byte(name), 0) }

// name returns a logical key as scripts write it: without its sentinel byte.
func name(key []byte) string { return strings.TrimSuffix(string(key), "\x00") }

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	out := new(strings.Builder)
	var err error
	switch d.Cmd {
	case "write":
		err = s.write(d)
	case "get":
		err = s.get(d, out)
	case "scan":
		err = s.scan(d, out)
	case "changed":
		var changed bool
		start, end := bounds(d)
		changed, err = s.v.ChangedSince(start, end, timestamp(d, "since"))
		fmt.Fprintln(out, changed)
	case "collect":
		var done mvcc.Collected
		var dead func([]byte) bool
		if text := ""; d.HasArg("dead") {
			d.ScanArgs(t, "dead", &text)
			dead = func(key []byte) bool { return strings.Contains(name(key), text) }
		}
		done, err = s.v.Collect(context.Background(), timestamp(d, "ts"), dead)
		fmt.Fprintf(out, "saw %d, deleted %d\n", done.Seen, done.Deleted)
	case "erase":
		b := s.v.NewBatch()
		defer b.Close()
		start, end := bounds(d)
		if err = b.Erase(start, end); err == nil {
			err = b.Commit()
		}
	case "reopen":
		if err = s.store.Close(); err == nil {
			s.open(t)
		}
	case "dump":
		err = s.dump(out)
	default:
		d.Fatalf(t, "unknown command")
	}
	if err != nil {
		fmt.Fprintf(out, "error: %v\n", err)
	}
	return out.String()
}

// timestamp returns the value of an argument as a Timestamp, or Latest if the command does not have it.
func timestamp(d *datadriven.TestData, arg string) mvcc.Timestamp {
	for _, a := range d.CmdArgs {
		if a.Key == arg {
			ts, _ := strconv.ParseInt(a.Vals[0], 10, 64)
			return mvcc.Timestamp(ts)
		}
	}
	return mvcc.Latest
}

func bounds(d *datadriven.TestData) (start, end []byte) {
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "start":
			start = bound(arg.Vals[0])
		case "end":
			end = bound(arg.Vals[0])
		}
	}
	return start, end
}

func bound(text string) []byte {
	if raw, ok := strings.CutSuffix(text, "%"); ok {
		return []byte(raw)
	}
	if before, ok := strings.CutSuffix(text, ">"); ok {
		return mvcc.After(nil, key(before))
	}
	return key(text)
}

func (s *script) write(d *datadriven.TestData) error {
	ts := timestamp(d, "ts")
	b := s.v.NewBatch()
	defer b.Close()
	for _, line := range strings.Split(d.Input, "\n") {
		var err error
		if k, v, live := strings.Cut(line, "="); live {
			err = b.Put(key(k), []byte(v), ts)
		} else {
			err = b.Delete(key(k), ts)
		}
		if err != nil {
			return err
		}
	}
	return b.Commit()
}

func (s *script) get(d *datadriven.TestData, out *strings.Builder) error {
	at := timestamp(d, "at")
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) > 0 {
			continue
		}
		val, version, ok, err := s.v.Get(key(arg.Key), at, nil)
		switch {
		case err != nil:
			return err
		case ok:
			fmt.Fprintf(out, "%s=%s @%d\n", arg.Key, val, version)
		case version != 0:
			fmt.Fprintf(out, "%s deleted @%d\n", arg.Key, version)
		default:
			fmt.Fprintf(out, "%s absent\n", arg.Key)
		}
	}
	return nil
}

func (s *script) scan(d *datadriven.TestData, out *strings.Builder) error {
	start, end := bounds(d)
	c, err := s.v.Scan(start, end, timestamp(d, "at"), d.HasArg("reverse"))
	if err != nil {
		return err
	}
	defer c.Close()
	if d.HasArg("deleted") {
		c.ShowDeleted()
	}
	for first := true; c.Next(); first = false {
		fmt.Fprintf(out, "%s=%s @%d\n", name(c.Key()), c.Value(), c.Version())
		if i := slices.IndexFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == "skip" }); first && i >= 0 {
			c.SkipTo(bound(d.CmdArgs[i].Vals[0]))
		}
	}
	return c.Err()
}

func (s *script) dump(out *strings.Builder) error {
	it, err := s.store.NewIter(nil, nil)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		v, err := it.Value()
		if err != nil {
			return err
		}
		space := binary.BigEndian.Uint32(k)
		if space == 0 {
			fmt.Fprintf(out, "%d %q = %x\n", space, k[4:], v)
			continue
		}
		n := len(k) - 9
		ts := ^binary.BigEndian.Uint64(k[n:])
		fmt.Fprintf(out, "%d %q @%d = %q\n", space, k[4:n], ts, v)
	}
	return it.Error()
}
