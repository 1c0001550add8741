package server

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// A flightClient is a Flight SQL client for one database.
type flightClient struct {
	*harness
	*flightsql.Client
	ctx context.Context
}

func (h *harness) newFlightClient(headers ...string) *flightClient {
	h.Helper()
	c, err := flightsql.NewClient(h.address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	h.ok(err)
	h.Cleanup(func() { c.Close() })
	return &flightClient{h, c, metadata.AppendToOutgoingContext(h.ctx, append([]string{"database", testDatabase}, headers...)...)}
}

// rows returns the rows of a query from all its endpoints, as text.
func (f *flightClient) rows(sql string) (rows []string, err error) {
	info, err := f.Execute(f.ctx, sql)
	if err != nil {
		return nil, err
	}
	return f.read(info)
}

// read reads all endpoints of a FlightInfo and returns their rows as text.
func (f *flightClient) read(info *arrowflight.FlightInfo) (rows []string, err error) {
	f.Helper()
	want, err := arrowflight.DeserializeSchema(info.Schema, nil)
	f.ok(err)
	for _, e := range info.Endpoint {
		part, schema, err := f.ticket(e.Ticket)
		if err != nil {
			return nil, err
		}
		if !schema.Equal(want) {
			f.Errorf("schema of the info: %s\nof the stream: %s", want, schema)
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

// ticket reads one endpoint. It sends no database header, because the ticket names the database.
func (f *flightClient) ticket(t *arrowflight.Ticket) (rows []string, schema *arrow.Schema, err error) {
	r, err := f.DoGet(f.harness.ctx, t)
	if err != nil {
		return nil, nil, err
	}
	defer r.Release()
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			cells := make([]string, b.NumCols())
			for c, col := range b.Columns() {
				cells[c] = cell(col, i)
			}
			rows = append(rows, strings.Join(cells, "|"))
		}
	}
	return rows, r.Schema(), r.Err()
}

func cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "NULL"
	}
	if b, ok := a.(*array.Binary); ok {
		return fmt.Sprintf("%x", b.Value(i))
	}
	return a.ValueStr(i)
}

var everyType = []string{
	`CREATE TABLE Every (Id INT64 NOT NULL, Flag BOOL, Single FLOAT32, Double FLOAT64, Price NUMERIC, Name STRING(MAX), Data BYTES(MAX), Day DATE, Stamp TIMESTAMP,
		Doc JSON, Uid UUID, Tags ARRAY<STRING(MAX)>, Days ARRAY<DATE>, Upper STRING(MAX) AS (UPPER(Name))) PRIMARY KEY (Id)`,
	`CREATE TABLE Keys (A STRING(MAX), B BYTES(MAX), C NUMERIC, D TIMESTAMP, E DATE, F BOOL, G UUID, H FLOAT64, I FLOAT32, J INT64) PRIMARY KEY (A DESC, B, C DESC, D, E, F, G, H, I, J DESC)`,
}

// TestFlightTypes checks that values of every type, and NULL, have the Arrow types that package columnar specifies. It
// checks a query that only reads rows, a query that also computes, and values from keys and from generated columns.
func TestFlightTypes(t *testing.T) {
	h := newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, everyType)
	ses := h.session(true)
	h.dmlOnce(ses, `INSERT INTO Every (Id, Flag, Single, Double, Price, Name, Data, Day, Stamp, Doc, Uid, Tags, Days) VALUES
		(-3, true, 1.5, -2.25, -12345678901234567890.123456789, 'ÿ', b'\x00\xff', '2024-02-29', '1999-12-31T23:59:59.123456789Z', JSON '{"a": [1]}', '00112233-4455-6677-8899-aabbccddeeff', ['x', NULL, ''], [DATE '0001-01-01']),
		(4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
		(5, false, CAST('nan' AS FLOAT32), CAST('inf' AS FLOAT64), 0, '', b'', '9999-12-31', '1970-01-01T00:00:00Z', JSON 'null', '00000000-0000-0000-0000-000000000000', [], [])`)
	h.dmlOnce(ses, `INSERT INTO Keys (A, B, C, D, E, F, G, H, I, J) VALUES (CONCAT('a', CODE_POINTS_TO_STRING([0]), 'b'), b'\x00\x01\xff', -1.5, '2000-01-01T00:00:00.5Z', '2000-01-02', true, '00112233-4455-6677-8899-aabbccddeeff', -1.5, 2.5, -7), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`)
	f := h.newFlightClient()
	const all = "Id, Flag, Single, Double, Price, Name, Data, Day, Stamp, Doc, Uid, Tags, Days, Upper"
	want := []string{
		`-3|true|1.5|-2.25|-12345678901234567890.123456789|ÿ|00ff|2024-02-29|1999-12-31T23:59:59.123456789Z|{"a":[1]}|ABEiM0RVZneImaq7zN3u/w==|["x",null,""]|["0001-01-01"]|Ÿ`,
		"4" + strings.Repeat("|NULL", 13),
		"5|false|NaN|+Inf|0|||9999-12-31|1970-01-01T00:00:00Z|null|AAAAAAAAAAAAAAAAAAAAAA==|[]|[]|",
	}
	for _, sql := range []string{"SELECT " + all + " FROM Every", "SELECT " + all + " FROM Every WHERE Id + 0 = Id ORDER BY Id + 0"} {
		got, err := f.rows(sql)
		h.ok(err)
		if diff := strings.Join(got, "\n"); diff != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", sql, diff, strings.Join(want, "\n"))
		}
	}
	got, err := f.rows("SELECT A, B, C, D, E, F, G, H, I, J FROM Keys")
	h.ok(err)
	if want := "a\x00b|0001ff|-1.5|2000-01-01T00:00:00.5Z|2000-01-02|true|ABEiM0RVZneImaq7zN3u/w==|-1.5|2.5|-7\n" + strings.Repeat("|NULL", 10)[1:]; strings.Join(got, "\n") != want {
		t.Errorf("keys: %q", got)
	}
	got, err = f.rows("SELECT MAKE_INTERVAL(year => 1, day => 2, second => 3), [STRUCT(1 AS a, 'b' AS b)], CAST(NULL AS INTERVAL)")
	h.ok(err)
	if want := `{"months":12,"days":2,"nanoseconds":3000000000}|[{"a":1,"b":"b"}]|NULL`; len(got) != 1 || got[0] != want {
		t.Errorf("computed: %q", got)
	}
}

// TestFlightRange: if a timestamp does not fit into an Arrow timestamp in nanoseconds, the query fails with an error
// that names the column. A client that asks for microseconds gets the value.
func TestFlightRange(t *testing.T) {
	h := newHarness(t)
	const sql = "SELECT TIMESTAMP '9999-12-31T23:59:59.999999999Z' AS Last, TIMESTAMP '0001-01-01T00:00:00Z' AS First"
	_, err := h.newFlightClient().rows(sql)
	if h.fails(err, codes.OutOfRange); !strings.Contains(err.Error(), "Last") || !strings.Contains(err.Error(), "timestamp-unit") {
		t.Error(err)
	}
	got, err := h.newFlightClient("timestamp-unit", "us").rows(sql)
	h.ok(err)
	if want := "9999-12-31T23:59:59.999999Z|0001-01-01T00:00:00Z"; got[0] != want {
		t.Errorf("%s, want %s", got[0], want)
	}
	_, err = h.newFlightClient("timestamp-unit", "fortnight").rows(sql)
	h.fails(err, codes.InvalidArgument)
}

// TestFlightDatabase: a request must name its database, and an error says what is wrong with the name.
func TestFlightDatabase(t *testing.T) {
	h := newHarness(t)
	f := h.newFlightClient()
	_, err := f.Execute(h.ctx, "SELECT 1")
	if h.fails(err, codes.InvalidArgument); !strings.Contains(err.Error(), "projects/PROJECT/instances") {
		t.Error(err)
	}
	for name, code := range map[string]codes.Code{"db": codes.InvalidArgument, testInstance + "/databases/none": codes.NotFound} {
		_, err := f.Execute(metadata.AppendToOutgoingContext(h.ctx, "database", name), "SELECT 1")
		h.fails(err, code)
	}
	_, err = f.rows("SELECT Nothing FROM Singers")
	if h.fails(err, codes.InvalidArgument); !strings.Contains(err.Error(), "Unrecognized name: Nothing") {
		t.Error(err)
	}
}

// TestFlightTicket checks that a ticket reads at the timestamp of its GetFlightInfo, however often it is used, and
// after a restart. The server must refuse a ticket that was changed, that belongs to another server, or that is too
// old.
func TestFlightTicket(t *testing.T) {
	now := time.Now()
	h := newHarnessAt(t, func() time.Time { return now })
	ses := h.session(true)
	h.dmlOnce(ses, "INSERT INTO Singers (SingerId, Name) VALUES (1, 'before')")
	f := h.newFlightClient()
	info, err := f.Execute(f.ctx, "SELECT Name FROM Singers")
	h.ok(err)
	h.dmlOnce(ses, "UPDATE Singers SET Name = 'after' WHERE TRUE")
	for range 2 {
		got, err := f.read(info)
		if h.ok(err); len(got) != 1 || got[0] != "before" {
			t.Errorf("%q", got)
		}
	}
	h.restart()
	f = h.newFlightClient()
	got, err := f.read(info)
	if h.ok(err); len(got) != 1 || got[0] != "before" {
		t.Errorf("after a restart: %q", got)
	}
	ticket := info.Endpoint[0].Ticket.Ticket
	for i := range ticket {
		changed := append([]byte(nil), ticket...)
		changed[i] ^= 1
		if _, _, err := f.ticket(&arrowflight.Ticket{Ticket: changed}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	other := newHarness(t)
	_, _, err = other.newFlightClient().ticket(info.Endpoint[0].Ticket)
	h.fails(err, codes.InvalidArgument)
	expires := info.Endpoint[0].ExpirationTime.AsTime()
	if want := now.Add(time.Hour); expires.Sub(want).Abs() > time.Minute {
		t.Errorf("expires at %s, want %s", expires, want)
	}
	now = expires.Add(time.Second)
	_, err = f.read(info)
	h.fails(err, codes.FailedPrecondition)
}

// dmlOnce runs a DML statement in a transaction of its own.
func (h *harness) dmlOnce(ses, sql string) {
	h.Helper()
	r, err := h.sql(ses, begins(readWrite()), 1, sql)
	h.ok(err)
	_, err = h.data.Commit(h.ctx, commitOf(ses, r.Metadata.Transaction.Id))
	h.ok(err)
}
