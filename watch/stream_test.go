package watch_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	adminapi "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/clienttest"
	"github.com/crowfoot-db/crowfoot/watch"
)

const everything = "CREATE CHANGE STREAM Everything FOR ALL"

// kindsOf formats transactions with the kinds of their changes.
func kindsOf(list []*watch.Transaction) string {
	var all []string
	for _, tx := range list {
		var changes []string
		for _, c := range tx.Changes {
			changes = append(changes, c.Kind.String()+" "+changeText(c))
		}
		all = append(all, "{"+strings.Join(changes, ", ")+"}")
	}
	return strings.Join(all, " ")
}

// TestStream checks that a change stream delivers every change, deletes included, in whole transactions, even across a
// split of the table.
func TestStream(t *testing.T) {
	c := clienttest.Connect(t, singers, "CREATE TABLE Others (Id INT64) PRIMARY KEY (Id)", everything)
	before := apply(t, c, singer(1, "before"))
	r := newRecorder()
	w, stop := run(t, watch.Options{Source: &watch.Stream{Client: c, Name: "Everything", Exclude: []string{"Others"}}, Handler: r, Start: before})
	apply(t, c, singer(2, "a"), singer(3, "b"))
	apply(t, c, singer(2, "c"))
	apply(t, c, spanner.Insert("Others", []string{"Id"}, []any{1}))
	r.wait(t, atLeast(3))
	split(t, 50)
	_, err := c.ReadWriteTransactionWithOptions(context.Background(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return tx.BufferWrite([]*spanner.Mutation{singer(1, "d"), singer(100, "e"), spanner.Delete("Singers", spanner.Key{2})})
	}, spanner.TransactionOptions{TransactionTag: "app=test"})
	if err != nil {
		t.Fatal(err)
	}
	list := r.wait(t, atLeast(6))
	want := "{INSERT Singers(2):a, INSERT Singers(3):b} {UPDATE Singers(2):c} {UPDATE Singers(1):d, INSERT Singers(100):e, DELETE Singers(2)}"
	last := list[len(list)-1]
	if got := kindsOf(list); got != want {
		t.Errorf("delivered %s\nwant      %s", got, want)
	}
	if last.Tag != "app=test" || last.ID == "" || last.System {
		t.Errorf("the last transaction is %+v", last)
	}
	var name string
	if err := last.Changes[0].OldValues.Decode("Name", &name); err != nil || name != "before" {
		t.Errorf("the old name is %q, %v", name, err)
	}
	eventually(func() bool { // a heartbeat moves Delivered past the last transaction
		h := w.Health()
		return h.Ready && !h.Feeds[0].Delivered.Before(last.CommitTimestamp)
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// split adds a split point to the table Singers.
func split(t *testing.T, at int) {
	t.Helper()
	admin, err := adminapi.NewDatabaseAdminClient(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	key := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(fmt.Sprint(at))}}
	_, err = admin.AddSplitPoints(context.Background(), &databasepb.AddSplitPointsRequest{Database: clienttest.Database, SplitPoints: []*databasepb.SplitPoints{
		{Table: "Singers", Keys: []*databasepb.SplitPoints_Key{{KeyParts: key}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStreamRefused checks the error that Run returns if the change stream does not exist, or if the watching starts at
// a time before the stream was created.
func TestStreamRefused(t *testing.T) {
	c := clienttest.Connect(t, singers, everything)
	for _, test := range []struct {
		o    watch.Options
		code codes.Code
		text string
	}{
		{watch.Options{Source: &watch.Stream{Client: c, Name: "Missing"}}, codes.NotFound, "Change Stream not found: Missing"},
		{watch.Options{Source: &watch.Stream{Client: c, Name: "everything"}, Start: time.Unix(0, 0)}, codes.OutOfRange, "start_timestamp is too far in the past"},
	} {
		test.o.Handler = newRecorder()
		if err := runToEnd(t, test.o); status.Code(err) != test.code || !strings.Contains(fmt.Sprint(err), test.text) {
			t.Errorf("%v", err)
		}
	}
}

// TestStreamCheckpointTooOld checks that Run returns an error if the checkpoint is older than the stream's retention,
// names unknown partitions, or has a malformed position. If Run started anew instead, changes would be left out. The
// stored checkpoint must be unchanged.
func TestStreamCheckpointTooOld(t *testing.T) {
	c := clienttest.Connect(t, singers, everything)
	now := apply(t, c, singer(1, "a"))
	for _, test := range []struct {
		at   watch.Checkpoint
		code codes.Code
		text string
	}{
		{watch.Checkpoint{Timestamp: now.Add(-30 * 24 * time.Hour)}, codes.OutOfRange, "start_timestamp is too far in the past"},
		{watch.Checkpoint{Timestamp: time.Date(2026, 1, 2, 3, 4, 4, 999_999_000, time.UTC), Position: `{"partitions":[{"token":"foreign","from":"2026-01-02T03:04:05Z"}]}`}, codes.InvalidArgument, "partition_token is invalid, as it does not belong to the Change Stream"},
		{watch.Checkpoint{Timestamp: now, Position: `["7"]`}, codes.FailedPrecondition, "The checkpoint's position is not a change stream's"},
	} {
		repository := watch.NewMemory()
		id := watch.FeedID{TableID: watch.TableID{Database: c.DatabaseName(), Name: "Everything"}}
		if err := repository.Store(t.Context(), id, test.at); err != nil {
			t.Fatal(err)
		}
		err := runToEnd(t, watch.Options{Source: &watch.Stream{Client: c, Name: "Everything"}, Repository: repository, Handler: newRecorder()})
		if status.Code(err) != test.code || !strings.Contains(fmt.Sprint(err), test.text) {
			t.Errorf("%v: %v", test.at, err)
		}
		if after, _, err := repository.Load(t.Context(), id); err != nil || after != test.at {
			t.Errorf("%v has become %v, %v", test.at, after, err)
		}
	}
}

// TestStreamInAnyCase checks that a watcher finds the checkpoint of an earlier watcher that spelled the stream's name
// in another case.
func TestStreamInAnyCase(t *testing.T) {
	c := clienttest.Connect(t, singers, everything)
	repository, r := watch.NewMemory(), newRecorder()
	start := apply(t, c, singer(0, "before")) // without a Start, the watcher might begin after the change below
	_, stop := run(t, watch.Options{Source: &watch.Stream{Client: c, Name: "EVERYTHING"}, Repository: repository, Handler: r, Start: start})
	apply(t, c, singer(1, "a"))
	r.wait(t, atLeast(1))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	id := watch.FeedID{TableID: watch.TableID{Database: c.DatabaseName(), Name: "Everything"}}
	if _, ok, err := repository.Load(t.Context(), id); !ok || err != nil {
		t.Errorf("the checkpoint is there: %v, %v", ok, err)
	}
}

// TestStreamRestarts stops watchers, and sometimes the server, at random while transactions are written and the table
// is split. Every transaction must be delivered whole, and the transactions of a key in the order of their commits.
func TestStreamRestarts(t *testing.T) {
	const transactions, keys = 60, 12
	s := newServer(t)
	c := clienttest.Dial(t)
	clienttest.Alter(t, everything)
	start := apply(t, c, singer(0, "0/0"))
	for name, repository := range map[string]watch.Repository{
		"file": watch.NewFile(filepath.Join(t.TempDir(), "checkpoints")), "without positions": withoutPositions{watch.NewMemory()},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 0))
			got := &deliveries{t: t, of: map[string][]string{}, delivered: map[string]bool{}}
			want := map[string][]string{} // the values of each key, in the order of their commits
			var mu sync.Mutex
			written := make(chan struct{})
			go func() {
				defer close(written)
				for i := range transactions {
					n := 1 + r.IntN(4)
					chosen := r.Perm(keys)[:n]
					var muts []*spanner.Mutation
					value := fmt.Sprintf("%s-%d/%d", name, i, n)
					for _, k := range chosen {
						muts = append(muts, singer(10*k, value))
					}
					apply(t, c, muts...)
					mu.Lock()
					for _, k := range chosen {
						key := fmt.Sprint(10 * k)
						want[key] = append(want[key], value)
					}
					mu.Unlock()
					if r.IntN(20) == 0 {
						split(t, 1+r.IntN(10*keys))
					}
				}
			}()
			o := watch.Options{Source: &watch.Stream{Client: c, Name: "Everything"}, Handler: got, Repository: repository, Start: start, CheckpointInterval: time.Millisecond}
			over := false
			for pauses := rand.New(rand.NewPCG(8, 0)); !over; {
				ctx, cancel := context.WithCancel(context.Background())
				_, ended := runUntil(t, ctx, o)
				select {
				case <-written:
					mu.Lock()
					got.await(want)
					mu.Unlock()
					over = true
				case <-time.After(time.Duration(pauses.IntN(200)) * time.Millisecond):
				}
				cancel()
				if err := ended(); err != nil {
					t.Fatal(err)
				}
				if !over && pauses.IntN(4) == 0 {
					s.stop()
					s.start()
				}
			}
			for key, values := range want {
				if !slices.Equal(got.of[key], values) {
					t.Errorf("key %s: delivered %v\nwant %v", key, got.of[key], values)
				}
			}
			start = apply(t, c, singer(0, "0/0"))
		})
	}
}

// deliveries is a handler that records the values of each key in the order in which they are first delivered.
type deliveries struct {
	t         *testing.T
	mu        sync.Mutex
	of        map[string][]string
	delivered map[string]bool
	n         int
}

func (d *deliveries) Handle(_ context.Context, tx *watch.Transaction) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var size int
	var value string
	for _, c := range tx.Changes {
		if err := c.Values.Decode("Name", &value); err != nil {
			d.t.Error(err)
		}
		key := c.Key.Values[0].GetStringValue()
		if !d.delivered[key+"="+value] {
			d.delivered[key+"="+value] = true
			d.of[key] = append(d.of[key], value)
			d.n++
		}
	}
	if _, err := fmt.Sscanf(value[strings.IndexByte(value, '/'):], "/%d", &size); err != nil || size != 0 && size != len(tx.Changes) {
		d.t.Errorf("a transaction of %d changes: %s, %v", len(tx.Changes), value, err)
	}
	return nil
}

// await waits until all values in want are delivered.
func (d *deliveries) await(want map[string][]string) {
	n := 0
	for values := range maps.Values(want) {
		n += len(values)
	}
	eventually(func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.n >= n
	})
}

// withoutPositions is a repository that stores only the timestamps of checkpoints, as SpannerTable does.
type withoutPositions struct{ watch.Repository }

func (r withoutPositions) Store(ctx context.Context, id watch.FeedID, c watch.Checkpoint) error {
	c.Position = ""
	return r.Repository.Store(ctx, id, c)
}
