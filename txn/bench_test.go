package txn

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

func openStore(tb testing.TB, fs vfs.FS, dir string) *pebble.Store {
	tb.Helper()
	store, err := pebble.Open(dir, fs)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

// rowKey returns the key of row i. Successive rows get keys that are far apart.
func rowKey(i int) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{0x81, 1}, uint64(i)*0x9E3779B97F4A7C15), 0)
}

func blindCommit(tb testing.TB, m *Manager, key, val []byte) {
	ctx := context.Background()
	_, err := m.Begin(Options{}).Commit(ctx, func(w table.Writer) error { return w.Put(ctx, key, val, nil, nil) }, CommitOptions{})
	if err != nil {
		tb.Error(err)
	}
}

// BenchmarkCommit commits single rows of 300 bytes. It does so on disk with 1 and with 64 clients, and in memory with
// 1 client, where no sync hides the cost of a commit. p50-us is the median time of a commit in microseconds. fsync-us
// is the median time in which the machine appends and syncs 300 bytes to a plain file.
func BenchmarkCommit(b *testing.B) {
	for _, c := range []struct {
		name    string
		fs      vfs.FS
		clients int
	}{{"disk/1", vfs.Default, 1}, {"disk/64", vfs.Default, 64}, {"memory/1", vfs.NewMem(), 1}} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			m := newManager(b, openStore(b, c.fs, dir), time.Now)
			val := make([]byte, 300)
			took := make([]time.Duration, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			var clients sync.WaitGroup
			for client := range c.clients {
				clients.Go(func() {
					for i := client; i < b.N; i += c.clients {
						began := time.Now()
						blindCommit(b, m, rowKey(i), val)
						took[i] = time.Since(began)
					}
				})
			}
			clients.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			if c.fs == vfs.Default {
				b.ReportMetric(float64(fsyncMedian(b, dir).Microseconds()), "fsync-us")
			}
		})
	}
}

func fsyncMedian(tb testing.TB, dir string) time.Duration {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	took := make([]time.Duration, 500)
	for i := range took {
		began := time.Now()
		if _, err := f.Write(make([]byte, 300)); err != nil {
			tb.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			tb.Fatal(err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// loaded makes a database with rows of 1 kB. Those that do not fit into memtables are in SSTables.
func loaded(b *testing.B, rows int) *Manager {
	b.Helper()
	m := newManager(b, openStore(b, vfs.NewMem(), "data"), time.Now)
	val := make([]byte, 1000)
	for i := 0; i < rows; {
		batch := m.versions.NewBatch()
		for n := 0; n < 1000 && i < rows; n++ {
			if err := batch.Put(rowKey(i), val, mvcc.Timestamp(1000+i)); err != nil {
				b.Fatal(err)
			}
			i++
		}
		if err := batch.CommitNoSync(); err != nil {
			b.Fatal(err)
		}
		_ = batch.Close()
	}
	return m
}

// BenchmarkPointRead reads one row of 1 kB with a single-use strong read.
func BenchmarkPointRead(b *testing.B) {
	const rows = 50_000
	m := loaded(b, rows)
	ctx := context.Background()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s, err := m.Snapshot(ctx, Bound{})
		if err != nil {
			b.Fatal(err)
		}
		if _, ok, err := s.Get(ctx, rowKey(i*7919%rows), table.LockShared); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// BenchmarkScan scans rows of 1 kB, in a snapshot and in transactions. In the case "merged", the transaction has
// written a row outside the range. In the case "partial", the scan locks each row when it reaches the row, and not
// the whole range at its start. One operation is one row.
func BenchmarkScan(b *testing.B) {
	const rows = 50_000
	m := loaded(b, rows)
	ctx := context.Background()
	snapshot, err := m.Snapshot(ctx, Bound{})
	if err != nil {
		b.Fatal(err)
	}
	tx := m.Begin(Options{})
	if err := tx.Put(ctx, []byte("\xf0z\x00"), []byte("x"), nil, nil); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		view table.View
		opts table.ScanOptions
	}{
		{"forward", snapshot, table.ScanOptions{}},
		{"reverse", snapshot, table.ScanOptions{Reverse: true}},
		{"merged", tx, table.ScanOptions{}},
		{"partial", m.Begin(Options{}), table.ScanOptions{Partial: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; n < b.N; {
				cur, err := c.view.Scan(ctx, table.Span{Start: []byte{1}, End: []byte{0xff}}, c.opts)
				if err != nil {
					b.Fatal(err)
				}
				for cur.Next() && n < b.N {
					n++
				}
				if cur.Err() != nil {
					b.Fatal(cur.Err())
				}
				_ = cur.Close()
			}
		})
	}
}

// BenchmarkScanBesideCommits scans rows of 1 kB in a transaction; the scan locks each row when it reaches the row.
// After every row, another transaction commits a row outside the range. One operation is one row.
func BenchmarkScanBesideCommits(b *testing.B) {
	const rows = 50_000
	m := loaded(b, rows)
	ctx := context.Background()
	b.ReportAllocs()
	for n := 0; n < b.N; {
		cur, err := m.Begin(Options{}).Scan(ctx, table.Span{Start: []byte{1}, End: []byte{0xf0}}, table.ScanOptions{Partial: true})
		if err != nil {
			b.Fatal(err)
		}
		for cur.Next() && n < b.N {
			n++
			blindCommit(b, m, []byte("\xf0z\x00"), nil)
		}
		if cur.Err() != nil {
			b.Fatal(cur.Err())
		}
		_ = cur.Close()
	}
}

// BenchmarkPointLock measures how long it takes to lock a point, in transactions with ten locks each.
func BenchmarkPointLock(b *testing.B) {
	m := newManager(b, openStore(b, vfs.NewMem(), "data"), time.Now)
	ctx := context.Background()
	b.ReportAllocs()
	tx := m.Begin(Options{})
	for i := 0; b.Loop(); i++ {
		if i%10 == 0 {
			_ = tx.Rollback()
			tx = m.Begin(Options{})
		}
		if err := m.locks.acquire(ctx, tx, string(rowKey(i)), "", table.LockShared); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkContention runs 32 clients on disk, which all read and then write the same row. aborts/op is the mean
// number of retries of an operation.
func BenchmarkContention(b *testing.B) {
	m := newManager(b, openStore(b, vfs.Default, b.TempDir()), time.Now)
	ctx := context.Background()
	var aborts atomic.Int64
	attempt := func(previous Age) (Age, error) {
		tx := m.Begin(Options{Previous: previous})
		if _, _, err := tx.Get(ctx, rowKey(1), table.LockShared); err != nil {
			return tx.Age(), err
		}
		_, err := tx.Commit(ctx, func(w table.Writer) error { return w.Put(ctx, rowKey(1), []byte("x"), nil, nil) }, CommitOptions{})
		return tx.Age(), err
	}
	const clients = 32
	var running sync.WaitGroup
	b.ResetTimer()
	for c := range clients {
		running.Go(func() {
			for i := c; i < b.N; i += clients {
				var age Age
				var err error
				for age, err = attempt(age); err != nil; age, err = attempt(age) {
					var user *usererror.Error
					if !errors.As(err, &user) || user.Code != codes.Aborted {
						b.Error(err)
						return
					}
					aborts.Add(1)
					time.Sleep(user.RetryAfter)
				}
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(aborts.Load())/float64(b.N), "aborts/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkStrong measures how long it takes to choose the timestamp of a strong read: with one reader, with 64
// readers, and with 64 readers beside 8 clients that commit.
func BenchmarkStrong(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct {
		name             string
		readers, writers int
	}{{"1", 1, 0}, {"64", 64, 0}, {"64 beside commits", 64, 8}} {
		b.Run(c.name, func(b *testing.B) {
			m := newManager(b, openStore(b, vfs.NewMem(), "data"), time.Now)
			var readers, writers sync.WaitGroup
			var done atomic.Bool
			for w := range c.writers {
				writers.Go(func() {
					for !done.Load() {
						blindCommit(b, m, rowKey(w), nil)
					}
				})
			}
			b.ResetTimer()
			for r := range c.readers {
				readers.Go(func() {
					for i := r; i < b.N; i += c.readers {
						if _, err := m.Snapshot(ctx, Bound{}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			readers.Wait()
			b.StopTimer()
			done.Store(true)
			writers.Wait()
		})
	}
}
