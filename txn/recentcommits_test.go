package txn

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/table"
)

// TestScanBesideCommits: a scan that locks as it proceeds reads a range again in two cases only: a commit may have
// written in the range before the scan locked it, or there were more commits than recentCommits stores. The scan
// misses no row.
func TestScanBesideCommits(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		reverse bool
		// A step has three words. First, the key that a commit writes, or "many" for many commits outside the range.
		// Second, the key that the scan returns next, or "." at its end. Third, "again" if the scan must read its range
		// again, otherwise "-".
		steps []string
	}{
		{false, []string{"zz b -", "a c -", "d d again", "zz f -", "many h again", "z . -"}},
		{true, []string{"a h -", "zz f -", "d d again", "zz c -", "many b again", "a . -"}},
	} {
		m := newManager(t, openStore(t, vfs.NewMem(), "data"), time.Now)
		for _, k := range []string{"b", "c", "f", "h"} {
			blindCommit(t, m, key(k), []byte("old"))
		}
		scan, err := m.Begin(Options{}).Scan(ctx, table.Span{Start: key("a\x01"), End: key("z")}, table.ScanOptions{Partial: true, Reverse: c.reverse})
		if err != nil {
			t.Fatal(err)
		}
		cur := scan.(*cursor)
		for _, step := range c.steps {
			words := strings.Fields(step)
			if words[0] == "many" {
				for i := range keptCommits + 1 {
					blindCommit(t, m, fmt.Appendf(nil, "zz%d\x00", i), nil)
				}
			} else {
				blindCommit(t, m, key(words[0]), []byte("new"))
			}
			before, shown := cur.base, "."
			if cur.Next() {
				shown = strings.TrimSuffix(string(cur.Key()), "\x00")
			}
			if again := cur.base != before; shown != words[1] || again != (words[2] == "again") || cur.Err() != nil {
				t.Errorf("reverse %v, %q: the scan shows %s, looks again: %v, %v", c.reverse, step, shown, again, cur.Err())
			}
		}
		if err := cur.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScanBehindCommitsElsewhere checks that a scan does not read its range again because of commits outside the range
// that it has yet to read, however many commits there are.
func TestScanBehindCommitsElsewhere(t *testing.T) {
	m := newManager(t, openStore(t, vfs.NewMem(), "data"), time.Now)
	for i := range 3 * keptCommits {
		blindCommit(t, m, rowKey(i), nil)
	}
	scan, err := m.Begin(Options{}).Scan(context.Background(), table.Span{Start: []byte{0x80}, End: []byte{0xf0}}, table.ScanOptions{Partial: true})
	if err != nil {
		t.Fatal(err)
	}
	cur := scan.(*cursor)
	base := cur.base
	for cur.Next() {
		blindCommit(t, m, []byte("elsewhere"), nil)
	}
	if cur.Err() != nil || cur.base != base {
		t.Errorf("it looked again: %v, %v", cur.base != base, cur.Err())
	}
}

// TestWrittenMeets: mayOverlap is true for a range that contains a written key. If a commit wrote many keys, it is
// also true for every range between the first and the last. Both hold for keys longer than prefixSize, too.
func TestWrittenMeets(t *testing.T) {
	long := strings.Repeat("x", 100)
	many := strings.Fields("k d j e i f h g")
	for _, c := range []struct {
		keys       []string
		start, end string
		want       bool
	}{
		{nil, "a", "z", false},
		{[]string{"c"}, "a", "c", false},
		{[]string{"c"}, "a", "c\x00", true},
		{[]string{"c"}, "c", "d", true},
		{[]string{"c"}, "cc", "d", false},
		{[]string{"c"}, "d", "e", false},
		{[]string{"e", "c"}, "d", "d\x00", false},
		{[]string{"e", "c"}, "d", "f", true},
		{many, "fa", "fb", true}, // no key is in this range, but it lies between the first key, d, and the last, k
		{many, "a", "d", false},
		{many, "a", "da", true},
		{many, "k", "l", true},
		{many, "ka", "l", false},
		{[]string{long}, long, long + "\x00", true},
		{[]string{long + "b"}, long + "a", long + "c", true},
		{append(many, long+"b"), long + "a", long + "c", true},
		{[]string{long}, "y", "z", false},
	} {
		var w written
		for _, k := range c.keys {
			w.add([]byte(k))
		}
		if got := w.mayOverlap(c.start, c.end); got != c.want {
			t.Errorf("%q and [%q, %q): %v", c.keys, c.start, c.end, got)
		}
	}
}
