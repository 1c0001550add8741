package changestream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// inWorld calls f with a new world, which is a store with change streams, and with a fake clock.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, vfs.NewMem())
		f(t, w)
		w.close()
	})
}

func micros(d time.Duration) mvcc.Timestamp { return mvcc.Timestamp(d.Microseconds()) }

// TestRead checks that a reader returns the records of its query that were committed before or while it reads.
func TestRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		start := w.commit("a")
		w.commit("b", "c")
		token := w.tokens(start)[0]
		q := query(token, start+1)
		q.End = w.oracle.Now() + micros(5*time.Second)
		var got []record
		done := make(chan struct{})
		go func() {
			defer close(done)
			got = w.all(q)
		}()
		time.Sleep(time.Second)
		w.commit("d")
		time.Sleep(time.Second)
		w.commit("e")
		<-done
		if got := texts(got); got != "b c d e" {
			t.Errorf("read %s", got)
		}
		if now := w.oracle.Now(); now < q.End {
			t.Errorf("ended at %d, before %d", now, q.End)
		}
	})
}

// TestWake checks that a reader that waits gets a record as soon as the record is visible.
func TestWake(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r := w.read(query(w.tokens(w.oracle.Visible())[0], w.oracle.Visible()))
		var at time.Time
		go func() {
			next(t, r)
			at = time.Now()
		}()
		time.Sleep(3 * time.Second)
		before := time.Now()
		w.commit("a")
		synctest.Wait()
		if !at.Equal(before) {
			t.Errorf("committed at %v, read at %v", before, at)
		}
	})
}

// TestHeartbeats checks that without records, there is one heartbeat in each interval, with the time of the clock. A
// record must begin a new interval.
func TestHeartbeats(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r := w.read(query(w.tokens(w.oracle.Visible())[0], w.oracle.Visible()))
		began := w.oracle.Now()
		for i := range 3 {
			beat := next(t, r)
			if due := began + micros(time.Duration(i+1)*10*time.Second); beat.at != due || beat.data != "" {
				t.Errorf("heartbeat %d at %d, want %d: %+v", i, beat.at, due, beat)
			}
		}
		go func() {
			time.Sleep(4 * time.Second)
			w.commit("a")
		}()
		if got := next(t, r); got.data == "" {
			t.Errorf("read %+v before the record", got)
		}
		if beat := next(t, r); beat.at != began+micros(44*time.Second) {
			t.Errorf("heartbeat %v after the begin, want 44s", time.Duration(beat.at-began)*time.Microsecond)
		}
	})
}

// TestHeartbeatsByClock checks that a reader times its heartbeats by the clock in the log's Config. In this test, that
// clock runs at half the speed of the package time.
func TestHeartbeatsByClock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		began := time.Now()
		w.clock = func() time.Time { return began.Add(time.Since(began) / 2) }
		w.reopen()
		r := w.read(query(w.tokens(w.oracle.Visible())[0], w.oracle.Visible()))
		start := w.oracle.Now()
		if beat := next(t, r); beat.at != start+micros(10*time.Second) || time.Since(began) != 20*time.Second {
			t.Errorf("heartbeat %v after the begin, by a clock that shows %v, after %v", time.Duration(beat.at-start)*time.Microsecond, w.clock().Sub(began), time.Since(began))
		}
	})
}

// TestSplitAndMerge checks that a partition that is split or merged ends with records of its children, and that the
// children begin at the timestamp at which the partition ended.
func TestSplitAndMerge(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		start := w.commit("a", "m", "z")
		root := w.tokens(start)
		w.reshape("m")
		split := w.commit("a", "m", "z")
		got := w.all(query(root[0], start))
		if texts(got) != "a m z 2 children" {
			t.Fatalf("the root has %s", texts(got))
		}
		halves := got[3]
		if tokens := w.tokens(split); tokens[0] != halves.children[0].token || tokens[1] != halves.children[1].token {
			t.Errorf("children %v, but %v live", halves.children, tokens)
		}
		if !slices.Equal(halves.children[1].parents, root) {
			t.Errorf("parents %v, want %v", halves.children[1].parents, root)
		}
		w.reshape()
		w.commit("q")
		left, right := w.all(query(halves.children[0].token, halves.at)), w.all(query(halves.children[1].token, halves.at))
		if texts(left) != "a 1 children" || texts(right) != "m z 1 children" {
			t.Fatalf("the halves have %s, and %s", texts(left), texts(right))
		}
		whole := left[1].children[0]
		if again := right[2].children[0]; whole.token != again.token || len(whole.parents) != 2 || !slices.Equal(whole.parents, again.parents) {
			t.Errorf("the halves become %+v and %+v", whole, again)
		}
		q := query(whole.token, left[1].at)
		q.End = w.oracle.Visible()
		if got := w.all(q); texts(got) != "q" {
			t.Errorf("the whole has %s", texts(got))
		}
		if again := w.all(query(root[0], start)); texts(again) != texts(got) {
			t.Errorf("a token used twice: %s", texts(again))
		}
		if last := w.all(query(root[0], halves.at)); texts(last) != "2 children" {
			t.Errorf("from the end of a partition: %s", texts(last))
		}
	})
}

// TestPartitionsSurvive checks that records, partitions and tokens are still valid after a restart.
func TestPartitionsSurvive(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		start := w.commit("a", "z")
		root := w.tokens(start)
		w.reshape("g", "m")
		w.reshape("m")
		second := w.commit("b", "y")
		before := w.tokens(second)
		w.reopen()
		if got := w.tokens(second); !slices.Equal(got, before) {
			t.Errorf("partitions are %v, were %v", got, before)
		}
		if got := w.all(query(root[0], start)); texts(got) != "a z 3 children" {
			t.Errorf("the root has %s", texts(got))
		}
		w.commit("c")
		q := query(before[0], second)
		q.End = w.oracle.Visible()
		if got := w.all(q); texts(got) != "b c" {
			t.Errorf("the first has %s", texts(got))
		}
		w.reshape()
		if got := w.tokens(w.oracle.Visible()); len(got) != 1 || slices.Contains(before, got[0]) || got[0] == root[0] {
			t.Errorf("the partition of all keys is %v", got)
		}
	})
}

// TestRefusals lists queries that are refused.
func TestRefusals(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		created := w.oracle.Visible()
		w.commit("a")
		root := w.tokens(created)[0]
		time.Sleep(time.Hour)
		w.reshape("m")
		split := w.oracle.Visible()
		child := w.tokens(split)[0]
		time.Sleep(time.Hour)
		now := w.oracle.Now()
		for _, c := range []struct {
			name, token string
			start       mvcc.Timestamp
			want        codes.Code
			text        string
		}{
			{"a start too far ahead", "", now + micros(changestream.MaxAhead) + 1, codes.OutOfRange, "too far in the future"},
			{"before the stream", "", created - 1, codes.OutOfRange, "too far in the past"},
			{"before retention", "", now - micros(24*time.Hour) - 1, codes.OutOfRange, "too far in the past"},
			{"before the partition", child, split - 1, codes.OutOfRange, "invalid for the partition"},
			{"after the partition", root, split + 1, codes.OutOfRange, "invalid for the partition"},
			{"no token", "token", now, codes.InvalidArgument, "does not belong to the Change Stream"},
			{"a token that was changed", root[:20] + "BBBB" + root[24:], now, codes.InvalidArgument, "does not belong to the Change Stream"},
		} {
			_, err := w.log.Read(t.Context(), query(c.token, c.start))
			if got := usererror.CodeOf(err); got != c.want || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	})
}

// TestTokensOfOthers checks that a token is valid only for its own stream, and only if it is unchanged.
func TestTokensOfOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		at := w.create(stream, other)
		q := query(w.tokens(at)[0], at)
		q.Stream = other
		if _, err := w.log.Read(t.Context(), q); usererror.CodeOf(err) != codes.InvalidArgument {
			t.Errorf("a token of another stream: %v", err)
		}
		if _, err := w.log.Read(t.Context(), query(w.tokens(at)[0]+"\n", at)); usererror.CodeOf(err) != codes.InvalidArgument {
			t.Errorf("a token with a line end: %v", err)
		}
		w.create(other)
		if _, err := w.log.Read(t.Context(), query("", at)); usererror.CodeOf(err) != codes.NotFound {
			t.Errorf("a stream that was dropped: %v", err)
		}
	})
}

// TestFuture checks that a query whose start is in the future waits.
func TestFuture(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		token := w.tokens(w.oracle.Visible())[0]
		start := w.oracle.Now() + micros(5*time.Minute)
		r := w.read(query(token, start))
		go func() {
			time.Sleep(time.Minute)
			w.commit("early")
			w.reshape("m")
			w.reshape()
		}()
		if got := w.tokens(start); len(got) != 1 || got[0] == token {
			t.Errorf("at the start there are %v", got)
		}
		if now := w.oracle.Now(); now < start {
			t.Errorf("answered at %d, before %d", now, start)
		}
		if ok, err := r.Next(); ok || usererror.CodeOf(err) != codes.OutOfRange {
			t.Errorf("the partition ended before the start: %v, %v", ok, err)
		}
	})
}

// TestReadersEnd checks that readers end when their context ends, when the stream is dropped, and when the log is
// closed.
func TestReadersEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		at := w.create(stream, other)
		token := w.tokens(at)[0]
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error)
		read := func(ctx context.Context) {
			r, err := w.log.Read(ctx, query(token, at))
			if err == nil {
				_, err = r.Next()
			}
			errs <- err
		}
		go read(ctx)
		time.Sleep(time.Second)
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("its context ended: %v", err)
		}
		go read(t.Context())
		time.Sleep(time.Second)
		w.create(other)
		if err := <-errs; usererror.CodeOf(err) != codes.NotFound {
			t.Errorf("the stream was dropped: %v", err)
		}
		w.create(stream)
		token, at = w.tokens(w.oracle.Visible())[0], w.oracle.Visible()
		go read(t.Context())
		time.Sleep(time.Second)
		closed := errors.New("closed")
		w.log.Close(closed)
		if err := <-errs; !errors.Is(err, closed) {
			t.Errorf("the log was closed: %v", err)
		}
	})
}

// TestResume checks that a query can be resumed after any of its rows.
func TestResume(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		start := w.commit("a", "b")
		w.commit("c")
		token := w.tokens(start)[0]
		w.reshape("m")
		r := w.read(query(token, start))
		for i, rest := range []string{"b c 2 children", "c 2 children", "2 children", ""} {
			next(t, r)
			q := query(token, start)
			q.Resume = r.Position()
			if got := texts(w.all(q)); got != rest {
				t.Errorf("after row %d: %q, want %q", i, got, rest)
			}
		}
	})
}

// TestResumeInTransaction checks that a query can be resumed between any two records of a transaction, even when the
// records are in a file of the store. The test reopens the store, which moves the records from memory to a file.
func TestResumeInTransaction(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		start := w.commit("before")
		keys := strings.Fields(strings.Repeat("k ", 20))
		at := w.commit(keys...)
		w.reopen()
		token := w.tokens(start)[0]
		for i := range keys {
			q := query(token, start)
			q.Resume, q.End = changestream.Position{Timestamp: at, Sequence: uint32(i)}, at
			if got := w.all(q); len(got) != len(keys)-i {
				t.Errorf("from record %d on: %s", i, texts(got))
			}
		}
	})
}

// TestStreamsOfAnyNumber checks that after a restart each stream finds its own partitions again. The keys of the store
// contain the numbers of streams and of partitions, so the test has numbers with one digit and with two. One of them is
// 9, the byte that the store takes for the end of a version's suffix.
func TestStreamsOfAnyNumber(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		streams := []*schema.ChangeStream{stream, other, {ID: 9, Name: "ninth", Retention: 24 * time.Hour}, {ID: 10, Name: "tenth", Retention: 24 * time.Hour}}
		w.create(streams...)
		var bounds []string
		for i := range 20 { // so that partition numbers have one and two digits
			bounds = append(bounds, fmt.Sprintf("%02d", i))
			w.reshape(bounds...)
		}
		at := w.commit("a")
		for len(streams) > 0 {
			w.reopen()
			for _, s := range streams {
				q := query("", at)
				q.Stream = s
				partitions := len(w.all(q)[0].children)
				if s == stream && partitions != len(bounds)+1 || s != stream && partitions != 1 {
					t.Errorf("%d streams: %s has %d partitions", len(streams), s.Name, partitions)
				}
			}
			streams = streams[:len(streams)-1]
			w.create(streams...)
		}
	})
}

// TestCollect checks that Collect deletes the records that are older than the retention period. A reader that has not
// read them yet must fail. A query of a partition that ended before the kept records must get the error that the
// partition has expired. Records that are younger must still be readable.
func TestCollect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		start := w.commit("a")
		root := w.tokens(start)[0]
		slow := w.read(query(root, start))
		w.reshape("m")
		child := w.tokens(w.oracle.Visible())[0]
		w.commit("b")
		time.Sleep(20 * time.Hour)
		late := w.commit("c")
		time.Sleep(20 * time.Hour)
		if err := w.log.Collect(stream.ID, w.oracle.Now()-micros(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := slow.Next(); usererror.CodeOf(err) != codes.OutOfRange {
			t.Errorf("a reader of what was collected: %v", err)
		}
		if _, err := w.log.Read(t.Context(), query(root, start)); usererror.CodeOf(err) != codes.OutOfRange || !strings.Contains(err.Error(), "This partition is no longer valid.") {
			t.Errorf("an expired partition: %v", err)
		}
		w.reopen()
		q := query(child, late-1)
		q.End = late
		if got := texts(w.all(q)); got != "c" {
			t.Errorf("what was kept: %s", got)
		}
		q = query(child, late-micros(19*time.Hour)) // a query that began before the oldest kept record can be continued
		q.Resume, q.End = changestream.Position{Timestamp: late}, late
		if _, err := w.log.Read(t.Context(), q); err != nil {
			t.Errorf("resumed: %v", err)
		}
		q = query(child, start+1)
		q.Stream = &schema.ChangeStream{ID: stream.ID, Retention: 7 * 24 * time.Hour}
		if _, err := w.log.Read(t.Context(), q); usererror.CodeOf(err) != codes.OutOfRange {
			t.Errorf("what was collected is gone for good: %v", err)
		}
	})
}

// TestReshapeNewest checks that of concurrent calls of Reshape, the one that gets the newest bounds takes effect last.
func TestReshapeNewest(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	defer w.close()
	newest := [][]byte{[]byte("m")}
	done := make(chan error)
	err := w.log.Reshape(stream.ID, func() [][]byte {
		old := newest
		newest = [][]byte{[]byte("g"), []byte("m")}
		go func() { done <- w.log.Reshape(stream.ID, func() [][]byte { return newest }) }()
		return old
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if tokens := w.tokens(w.oracle.Visible()); len(tokens) != 3 {
		t.Errorf("%d partitions, want the 3 of the newest bounds", len(tokens))
	}
}
