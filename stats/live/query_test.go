package live

import (
	"testing"
	"time"
)

func BenchmarkQuery(b *testing.B) {
	l := New(time.Now())
	q := &Query{SQL: "SELECT 1", Start: time.Now()}
	b.ReportAllocs()
	for b.Loop() {
		l.Start(q)
		q.Finish()
	}
}
