package pebble

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCheckpoint: copies that are made while clients commit one row after the other hold, of each client, all rows up to one of them, and all
// that were acknowledged before. The store's own directory stays as it was.
func TestCheckpoint(t *testing.T) {
	const clients, rows, copies = 3, 100, 4
	fs := vfs.NewCrashableMem()
	s := open(t, fs, "data")
	var mu sync.Mutex
	acknowledged := make([]int, clients)
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			for i := range rows {
				put(t, s, fmt.Sprintf("row %d %03d\x00", c, i), strings.Repeat("x", i%5*20_000))
				mu.Lock()
				acknowledged[c] = i + 1
				mu.Unlock()
			}
		})
	}
	for n := range copies {
		mu.Lock()
		before := append([]int(nil), acknowledged...)
		mu.Unlock()
		if err := s.Checkpoint(fmt.Sprint("copies/", n)); err != nil {
			t.Fatal(err)
		}
		remains := fs.CrashClone(vfs.CrashCloneCfg{}) // what is synced
		for c, n := range readClients(t, remains, fmt.Sprint("copies/", n), clients) {
			if n < before[c] {
				t.Errorf("a copy has %d rows of client %d, of which %d were acknowledged before", n, c, before[c])
			}
		}
	}
	running.Wait()
	if err := s.Checkpoint("copies/0"); !errors.Is(err, iofs.ErrExist) {
		t.Errorf("a copy to a directory that exists: %v", err)
	}
	for c, n := range readClients(t, fs.CrashClone(vfs.CrashCloneCfg{}), "data", clients) {
		if n != rows {
			t.Errorf("the store has %d rows of client %d", n, c)
		}
	}
}

// readClients counts the rows of each client in a copy, which have no gaps.
func readClients(t *testing.T, fs vfs.FS, dir string, clients int) []int {
	t.Helper()
	s := open(t, fs, dir)
	it, err := s.NewIter([]byte("row "), []byte("row!"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	counts := make([]int, clients)
	for ok := it.First(); ok; ok = it.Next() {
		part := strings.Fields(strings.TrimSuffix(string(it.Key()), "\x00"))
		c, _ := strconv.Atoi(part[1])
		if i, _ := strconv.Atoi(part[2]); i != counts[c] {
			t.Errorf("client %d has row %d behind %d rows", c, i, counts[c])
		}
		counts[c]++
	}
	return counts
}
