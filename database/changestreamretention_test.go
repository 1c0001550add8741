package database

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// retained is a change stream of a table into which a row is inserted each hour.
type retained struct {
	*aged
	world *streamWorld
	rows  int64
}

// hours advances the clock by n hours, and inserts a row at the end of each hour.
func (r *retained) hours(n int) {
	r.t.Helper()
	for range n {
		r.now.Add(time.Hour.Microseconds())
		r.rows++
		if err := r.world.insert("T", [2]int64{r.rows, 0}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// reads checks that the stream returns each record of the last hours once, and that a read from an earlier time fails.
// The parameter hours is the number of these hours.
func (r *retained) reads(when string, hours int) {
	r.t.Helper()
	s, now := r.db.Catalog().Streams[0], r.oracle.Now()
	earliest := now - mvcc.Timestamp((time.Duration(hours) * time.Hour).Microseconds())
	records, err := r.world.readStream(s, earliest, now)
	if err != nil {
		r.t.Fatalf("%s: %v", when, err)
	}
	var keys []string
	for _, record := range records {
		keys = append(keys, fmt.Sprint(record.mods[0].keys["K"]))
	}
	var want []string
	for k := r.rows - int64(hours); k <= r.rows; k++ {
		want = append(want, fmt.Sprint(k))
	}
	if got, want := strings.Join(keys, " "), strings.Join(want, " "); got != want {
		r.t.Errorf("%s: the rows %s, want %s", when, got, want)
	}
	_, err = r.world.readStream(s, earliest-1, now)
	if usererror.CodeOf(err) != codes.OutOfRange || !strings.HasPrefix(err.Error(), "Specified start_timestamp is too far in the past.") {
		r.t.Errorf("%s: from before: %v", when, err)
	}
}

// collects runs a garbage collection and checks how many records are left in the store. The parameter want is the right
// number.
func (r *retained) collects(want int) {
	r.t.Helper()
	if err := r.db.collect(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	if n := r.storedRecords(); n != want {
		r.t.Errorf("%d records are stored, want %d", n, want)
	}
}

// storedRecords counts the change records in the store.
func (a *aged) storedRecords() (n int) {
	a.t.Helper()
	it, err := a.store.NewIter([]byte("\x00\x00\x00\x00changestream/record/\x00"), []byte("\x00\x00\x00\x00changestream/record0\x00"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n
}

func (r *retained) alter(statement string) {
	r.t.Helper()
	if err := r.db.UpdateSchema(context.Background(), []string{statement}, nil); err != nil {
		r.t.Fatal(err)
	}
}

// TestChangeStreamRetention checks that records can be read for the stream's retention_period and are deleted
// afterwards. If the period becomes longer, the records that are not yet deleted must be kept for the longer period. A
// shorter period must take effect at once.
func TestChangeStreamRetention(t *testing.T) {
	a := newAged(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)", "CREATE CHANGE STREAM S FOR ALL")
	r := &retained{aged: a, world: &streamWorld{bed: &bed{t: t, Registry: a.Registry, db: a.db}}}
	r.hours(48)
	r.reads("by default", 24)
	r.collects(25)
	r.reads("collected", 24)

	r.alter("ALTER CHANGE STREAM S SET OPTIONS (retention_period = '3d')")
	r.hours(1)
	r.reads("raised", 25) // collected records do not come back
	r.hours(23)
	r.reads("a day later", 48)
	r.collects(49)
	r.hours(36)
	r.reads("when it is reached", 72)
	r.collects(73)

	r.alter("ALTER CHANGE STREAM S SET OPTIONS (retention_period = '36h')")
	r.hours(1)
	r.reads("lowered", 36)
	r.collects(37)
	r.alter("ALTER CHANGE STREAM S SET OPTIONS (retention_period = '7d')")
	r.hours(1)
	r.reads("raised again", 37)
}

// TestChangeStreamLimits checks that a database may have ten change streams, of which three may watch all tables or the
// same non-key column. If all ten watch a table, each must record an insert into it.
func TestChangeStreamLimits(t *testing.T) {
	a := newAged(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	r := &retained{aged: a, world: &streamWorld{bed: &bed{t: t, Registry: a.Registry, db: a.db}}}
	refused := func(statement, text string) {
		t.Helper()
		err := a.db.UpdateSchema(context.Background(), []string{statement}, nil)
		if usererror.CodeOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", statement, err)
		}
	}
	for i := range 3 {
		r.alter(fmt.Sprintf("CREATE CHANGE STREAM All%d FOR ALL", i))
	}
	refused("CREATE CHANGE STREAM All3 FOR ALL", "more than 3 Change Streams tracking the same table or non-key column or ALL: ALL.")
	refused("CREATE CHANGE STREAM All3 FOR T", "more than 3 Change Streams tracking the same table or non-key column or ALL: T.")
	refused("CREATE CHANGE STREAM All3 FOR T(V)", "more than 3 Change Streams tracking the same table or non-key column or ALL: T.V.")
	for i := range 7 {
		r.alter(fmt.Sprintf("CREATE CHANGE STREAM Keys%d FOR T()", i))
	}
	refused("CREATE CHANGE STREAM Keys7 FOR T()", "the maximum number of Change Streams per Database (limit 10) has been reached.")
	refused("ALTER CHANGE STREAM Keys6 SET FOR ALL", "or ALL: ALL.")
	r.alter("CREATE TABLE U (K INT64, V INT64) PRIMARY KEY (K)")
	r.hours(1)
	if n := r.storedRecords(); n != 10 {
		t.Errorf("an insert has %d records", n)
	}
	if err := r.world.insert("U", [2]int64{1, 1}); err != nil {
		t.Fatal(err)
	}
	if n := r.storedRecords(); n != 13 {
		t.Errorf("with an insert into a table that was made later there are %d records", n)
	}
}
