package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// besideCommits is the number of transactions of each subtest. While one request commits such a transaction, other
// requests of the transaction read.
const besideCommits = 300

// TestReadBesideCommit checks the reads that other requests of a transaction make while the transaction commits. Each
// such read must be refused, or return a value that is still valid at the commit timestamp.
func TestReadBesideCommit(t *testing.T) {
	// The first two modes are serializable. In RepeatableRead, a value may change between its read and the commit.
	for _, mode := range modes[:2] {
		for _, how := range []struct {
			name string
			read func(*Request) (string, error)
		}{{"get", getA}, {"scan", scanA}, {"partial scan", scanPartA}} {
			t.Run(mode.name+", "+how.name, func(t *testing.T) {
				m := newManager(t, openStore(t, vfs.NewMem(), "data"), time.Now)
				commitOne(t, m, "a", "0")
				stop := make(chan struct{})
				var writer sync.WaitGroup
				writer.Go(func() { overwrite(t, m, stop) })
				defer writer.Wait()
				defer close(stop)
				for range besideCommits {
					readBesideCommit(t, m, mode.options, how.read)
				}
			})
		}
	}
}

// overwrite writes key a in a loop until stop is closed.
func overwrite(t *testing.T, m *Manager, stop chan struct{}) {
	for i := 1; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		if _, err := commitKey(m, "a", fmt.Sprint(i)); err != nil && usererror.CodeOf(err) != codes.Aborted {
			t.Error(err)
			return
		}
	}
}

// readBesideCommit commits a transaction while two other requests of the transaction read key a. It compares what
// they read with the value of a at the commit timestamp.
func readBesideCommit(t *testing.T, m *Manager, o Options, read func(*Request) (string, error)) {
	t.Helper()
	ctx := context.Background()
	tx := m.Begin(o)
	if err := tx.Put(ctx, key("b"), []byte("............"), nil, []table.Pending{{}}); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	answered := make([][]string, 2)
	for i := range answered {
		readers.Go(func() {
			r := tx.Request()
			for {
				val, err := read(r)
				if err != nil {
					if c := usererror.CodeOf(err); c != codes.FailedPrecondition && c != codes.Aborted {
						t.Error(err)
					}
					return
				}
				answered[i] = append(answered[i], val)
			}
		})
	}
	ts, err := tx.Commit(ctx, nil, CommitOptions{})
	readers.Wait()
	if err != nil {
		return
	}
	then := valueAt(t, m, ts)
	for _, vals := range answered {
		for _, val := range vals {
			if val != then {
				t.Fatalf("a transaction was answered %s by a read beside its commit; when it took effect it was %s", val, then)
			}
		}
	}
}

// valueAt returns the value of key a at a timestamp.
func valueAt(t *testing.T, m *Manager, at mvcc.Timestamp) string {
	t.Helper()
	s, err := m.Snapshot(context.Background(), Bound{Kind: ReadTimestamp, Time: at.Time()})
	if err != nil {
		t.Fatal(err)
	}
	val, _, err := s.Get(context.Background(), key("a"), table.LockShared)
	if err != nil {
		t.Fatal(err)
	}
	return string(val)
}

func getA(r *Request) (string, error) {
	ctx := context.Background()
	// First read the transaction's own write of key b. The commit fills its timestamp into a copy of that value: if it
	// changed the value itself, the race detector would report this read.
	if _, _, err := r.Get(ctx, key("b"), table.LockShared); err != nil {
		return "", err
	}
	val, _, err := r.Get(ctx, key("a"), table.LockShared)
	return string(val), err
}

func scanA(r *Request) (string, error) { return scanFirst(r, table.ScanOptions{}) }

func scanPartA(r *Request) (string, error) { return scanFirst(r, table.ScanOptions{Partial: true}) }

// scanFirst scans keys a and b and returns the value of a.
func scanFirst(r *Request, o table.ScanOptions) (val string, err error) {
	c, err := r.Scan(context.Background(), table.Span{Start: key("a"), End: key("c")}, o)
	if err != nil {
		return "", err
	}
	if c.Next() {
		val = string(c.Value())
		c.Next()
	}
	return val, errors.Join(c.Err(), c.Close())
}
