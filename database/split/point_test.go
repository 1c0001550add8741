package split

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestPointsSurvive checks that a crash loses no split point, and that points which have expired, or whose table or
// index was dropped, do not come back.
func TestPointsSurvive(t *testing.T) {
	w := newWorld(t)
	null := value.Null(value.Int64)
	w.ok(w.AddPoints([]Point{w.point(7, time.Hour), w.point(3, 2*time.Hour), w.indexPoint("b", null), w.indexPoint("a", value.OfInt64(9))}))
	byA := "Index: ByB on T, Index Key: (a), Primary Table Key: (9)"
	byB := "Index: ByB on T, Index Key: (b), Primary Table Key: (<begin>)"
	w.crash()
	w.shows("T(3)", "T(7)", byA, byB)

	w.alter("DROP INDEX ByB")
	w.shows("T(3)", "T(7)")
	w.alter("CREATE INDEX ByB ON T(B)", "RENAME TABLE T TO U")
	w.shows("U(3)", "U(7)")
	w.now = w.now.Add(time.Hour)
	w.shows("U(3)")
	if n := w.stored(); n != 4 {
		t.Errorf("%d points stored before the sweep", n)
	}
	w.ok(w.SweepPoints())
	if n := w.stored(); n != 1 {
		t.Errorf("%d points stored after the sweep", n)
	}
	w.crash()
	w.shows("U(3)")
	w.alter("DROP INDEX ByB", "DROP TABLE U")
	w.shows()
}

// TestPointsOfDroppedDatabase checks that no point can be added to a dropped database.
func TestPointsOfDroppedDatabase(t *testing.T) {
	w := newWorld(t)
	w.Close()
	if err := w.AddPoints([]Point{w.point(8, time.Hour)}); usererror.CodeOf(err) != codes.NotFound {
		t.Errorf("added to a dropped database: %v", err)
	}
	w.ok(w.SweepPoints())
	if n := w.stored(); n != 0 {
		t.Errorf("%d points left", n)
	}
}

// TestPointsAllOrNone checks that no point is added if one of them is invalid.
func TestPointsAllOrNone(t *testing.T) {
	w := newWorld(t, "CREATE TABLE C (B STRING(MAX), A INT64) PRIMARY KEY (A, B)", "CREATE INDEX CByB ON C(B)")
	x := w.catalog.Index("CByB")
	differs := Point{Table: x.Table, Index: x, Key: []value.Value{value.OfString("b")}, TableKey: []value.Value{value.OfInt64(1), value.OfString("c")}}
	if err := w.AddPoints([]Point{w.point(1, time.Hour), differs}); usererror.CodeOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "differing in column B") {
		t.Errorf("index key and table key that differ: %v", err)
	}
	differs.TableKey[1], differs.Expires = value.OfString("b"), w.now.Add(time.Hour)
	w.ok(w.AddPoints([]Point{differs}))
	w.shows("Index: CByB on C, Index Key: (b), Primary Table Key: (1,b)")

	var many []Point
	for a := range int64(maxPoints) {
		many = append(many, w.point(a, time.Hour))
	}
	if err := w.AddPoints(many); usererror.CodeOf(err) != codes.ResourceExhausted {
		t.Errorf("too many: %v", err)
	}
	if n := w.stored(); n != 1 {
		t.Errorf("%d points stored", n)
	}
	w.ok(w.AddPoints(many[1:]))
	w.now = w.now.Add(time.Hour) // the points expire, which makes room for others
	w.ok(w.AddPoints([]Point{w.point(1, time.Hour)}))
	w.shows("T(1)")
}

// TestPointsAtOnce adds points from many goroutines at once. None may be lost.
func TestPointsAtOnce(t *testing.T) {
	w := newWorld(t)
	var adding sync.WaitGroup
	var want []string
	for a := range int64(20) {
		want = append(want, fmt.Sprintf("T(%d)", 10+a))
		adding.Go(func() {
			if err := w.AddPoints([]Point{w.point(10+a, time.Hour)}); err != nil {
				t.Error(err)
			}
		})
	}
	adding.Wait()
	w.crash()
	w.shows(want...)
}
