package stats

import (
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/value"
)

func BenchmarkQuery(b *testing.B) {
	w := newWorld(b)
	q := Query{Text: TextOf("SELECT Name FROM Singers WHERE Id = @id"), End: w.now, Latency: 30 * time.Microsecond, CPU: 20 * time.Microsecond, Rows: 1, Bytes: 8,
		Accesses: []*Access{NewAccess(OpQuery, "Singers", []string{"Id", "Name"})}}
	b.Run("text", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.c.Query(&q)
		}
	})
	b.Run("tag", func(b *testing.B) {
		tagged := q
		tagged.Tag = "app=shop,action=list"
		b.ReportAllocs()
		for b.Loop() {
			w.c.Query(&tagged)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				w.c.Query(&q)
			}
		})
	})
	b.Run("distinct", func(b *testing.B) {
		other := q
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			other.Text.Fingerprint = int64(i)
			w.c.Query(&other)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	w := newWorld(b)
	r := Read{Access: NewAccess(OpRead, "Singers", []string{"Id", "Name"}), End: w.now, CPU: 20 * time.Microsecond, Rows: 1, Bytes: 8}
	b.ReportAllocs()
	for b.Loop() {
		w.c.Read(&r)
	}
}

func BenchmarkTransaction(b *testing.B) {
	w := newWorld(b)
	read, write := NewAccess(OpQuery, "Singers", []string{"Id"}), NewAccess(OpWrite, "Singers", []string{"Id", "Name"})
	b.ReportAllocs()
	var f Footprint
	for b.Loop() {
		f = Footprint{}
		f.Add(read)
		f.Add(write)
		f.Wrote("Singers", 1, 20)
		w.c.Transaction(&Transaction{Footprint: &f, End: w.now, TotalLatency: time.Millisecond, CommitLatency: time.Millisecond, Participants: 1})
	}
}

func BenchmarkLockWait(b *testing.B) {
	w := newWorld(b)
	l := LockWait{Key: KeyText("Singers", []value.Value{value.OfInt64(1)}, false), End: w.now, Wait: time.Millisecond,
		Requests: []LockRequest{{"Singers.Name", "Exclusive", "a"}, {"Singers.Name", "ReaderShared", "b"}}}
	b.ReportAllocs()
	for b.Loop() {
		w.c.LockWait(&l)
	}
}

// BenchmarkTable measures reading a statistics table that shows the minutes of six hours, with keepTop queries for
// each minute.
func BenchmarkTable(b *testing.B) {
	w := newWorld(b)
	for minute := range 360 {
		for i := range keepTop {
			w.c.Query(&Query{Text: Text{SQL: "SELECT Name FROM Singers WHERE Id = @id", Fingerprint: int64(i)}, End: w.now, Latency: time.Duration(minute), CPU: 1})
		}
		w.now = w.now.Add(time.Minute)
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(w.column(b, "QUERY_STATS_TOP_MINUTE", "TEXT")); n < 359*keepTop {
			b.Fatal(n)
		}
	}
}

// BenchmarkFlush measures how long it takes to copy and store the statistics of a full current minute, as the collector
// does every ten seconds.
func BenchmarkFlush(b *testing.B) {
	w := newWorld(b)
	for i := range 2 * boardTallies {
		w.c.Query(&Query{Text: Text{SQL: "SELECT Name FROM Singers WHERE Id = @id", Fingerprint: int64(i)}, End: w.now, CPU: 1})
	}
	b.ReportAllocs()
	for b.Loop() {
		w.now = w.now.Add(time.Millisecond)
		w.c.shards[0].dirty = true
		if err := w.c.flush(w.now, kv.Batch.CommitNoSync); err != nil {
			b.Fatal(err)
		}
	}
}
