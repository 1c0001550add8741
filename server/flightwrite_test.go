package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// batch returns a batch with an INT64 column and a STRING column.
func batch(idName, textName string, ids []int64, texts []string) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{{Name: idName, Type: arrow.PrimitiveTypes.Int64}, {Name: textName, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	b.Field(0).(*array.Int64Builder).AppendValues(ids, nil)
	b.Field(1).(*array.StringBuilder).AppendValues(texts, nil)
	return b.NewRecordBatch()
}

// TestFlightPrepared checks that the server describes the parameters and the columns of a prepared statement. The
// statement must run with its bound parameters, which the server matches by name or by order.
func TestFlightPrepared(t *testing.T) {
	h := newHarness(t)
	f := h.newFlightClient()
	for _, c := range []struct{ sql, id, text string }{
		{"INSERT INTO Singers (SingerId, Name) VALUES (?, ?)", "p1", "p2"},
		{"INSERT INTO Singers (Name, SingerId) VALUES (@name, @id)", "id", "@Name"},
		{"INSERT INTO Singers (SingerId, Name) VALUES (@id, @name)", "0", "1"},
	} {
		first := map[string]int64{"p1": 10, "id": 20, "0": 30}[c.id]
		p, err := f.Prepare(f.ctx, c.sql)
		h.ok(err)
		if n := p.ParameterSchema().NumFields(); n != 2 {
			t.Errorf("%s: %d parameters", c.sql, n)
		}
		p.SetParameters(batch(c.id, c.text, []int64{first, first + 1}, []string{"a", "b"}))
		n, err := p.ExecuteUpdate(f.harness.ctx) // needs no header, because the handle contains the database's name
		h.ok(err)
		if n != 2 {
			t.Errorf("%s: %d rows", c.sql, n)
		}
		h.ok(p.Close(f.ctx))
	}
	p, err := f.Prepare(f.ctx, "SELECT Name, SingerId FROM Singers WHERE SingerId >= ? AND Name = ? ORDER BY SingerId")
	h.ok(err)
	if got := p.ParameterSchema().Field(0).Type; got.ID() != arrow.INT64 {
		t.Errorf("the first parameter is %s", got)
	}
	if got := p.DatasetSchema().Field(0); got.Name != "Name" || got.Type.ID() != arrow.STRING {
		t.Errorf("the first column is %s", got)
	}
	p.SetParameters(batch("x", "y", []int64{20}, []string{"b"}))
	info, err := p.Execute(f.harness.ctx)
	h.ok(err)
	got, err := f.read(info)
	h.ok(err)
	if !slices.Equal(got, []string{"b|21", "b|31"}) {
		t.Errorf("%q", got)
	}
	p.SetParameters(batch("x", "y", []int64{1, 2}, []string{"a", "b"}))
	_, err = p.Execute(f.ctx)
	h.fails(err, codes.InvalidArgument)
	one := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil), batch("x", "y", []int64{1}, []string{""}).Columns()[:1], 1)
	p.SetParameters(one)
	_, err = p.Execute(f.ctx)
	if h.fails(err, codes.InvalidArgument); !strings.Contains(err.Error(), "has 2 parameters") {
		t.Error(err)
	}
	_, err = f.Prepare(f.ctx, "SELECT Nothing")
	h.fails(err, codes.InvalidArgument)
}

// TestFlightUpdate checks all commands that can carry a DML statement. Each must run the statement once, and return its
// row count and its rows.
func TestFlightUpdate(t *testing.T) {
	h := newHarness(t)
	f := h.newFlightClient()
	n, err := f.ExecuteUpdate(f.ctx, "INSERT INTO Singers (SingerId, Name) VALUES (1, 'a'), (2, 'b')")
	h.ok(err)
	if n != 2 {
		t.Errorf("%d rows", n)
	}
	info, err := f.Execute(f.ctx, "UPDATE Singers SET Name = 'c' WHERE SingerId = 1")
	h.ok(err)
	if len(info.Endpoint) != 0 || info.TotalRecords != 1 {
		t.Errorf("%v", info)
	}
	info, err = f.Execute(f.ctx, "INSERT INTO Singers (SingerId, Name) VALUES (3, 'd'), (4, NULL) THEN RETURN SingerId, Name, Data")
	h.ok(err)
	for range 2 {
		got, err := f.read(info)
		h.ok(err)
		if !slices.Equal(got, []string{"3|d|NULL", "4|NULL|NULL"}) {
			t.Errorf("%q", got)
		}
	}
	_, err = f.ExecuteUpdate(f.ctx, "INSERT INTO Singers (SingerId) VALUES (1)")
	h.fails(err, codes.AlreadyExists)
	_, err = f.ExecuteUpdate(f.ctx, "SELECT 1")
	h.fails(err, codes.InvalidArgument)
	_, err = f.ExecuteUpdate(f.ctx, "CREATE TABLE Made (K INT64) PRIMARY KEY (K)")
	h.ok(err)
	_, err = f.ExecuteUpdate(f.ctx, "INSERT INTO Made (K) VALUES (7)")
	h.ok(err)
	got, err := f.rows("SELECT s.Name, m.K FROM Singers s JOIN Made m ON TRUE WHERE s.SingerId < 3 ORDER BY 1")
	h.ok(err)
	if !slices.Equal(got, []string{"b|7", "c|7"}) {
		t.Errorf("%q", got)
	}
}

// TestFlightTransaction checks that the writes of a transaction are visible only inside it before its commit, and
// everywhere after its commit.
func TestFlightTransaction(t *testing.T) {
	h := newHarness(t)
	f := h.newFlightClient()
	count := func(rows []string, err error) string {
		h.ok(err)
		return strings.Join(rows, "")
	}
	const sql = "SELECT COUNT(*) FROM Singers"
	for _, c := range []struct {
		end  func(*flightsql.Txn) error
		want string
	}{{func(tx *flightsql.Txn) error { return tx.Rollback(f.ctx) }, "0"}, {func(tx *flightsql.Txn) error { return tx.Commit(f.ctx) }, "2"}} {
		tx, err := f.BeginTransaction(f.ctx)
		h.ok(err)
		_, err = tx.ExecuteUpdate(f.ctx, "INSERT INTO Singers (SingerId) VALUES (1)")
		h.ok(err)
		_, err = tx.Execute(f.ctx, "INSERT INTO Singers (SingerId) VALUES (2)")
		h.ok(err)
		if c.want == "0" {
			_, err = tx.ExecuteUpdate(f.ctx, "INSERT INTO Singers (SingerId) VALUES (2)")
			h.fails(err, codes.AlreadyExists)
		}
		h.ok(c.end(tx))
		if got := count(f.rows(sql)); got != c.want {
			t.Errorf("%s rows, want %s", got, c.want)
		}
	}
	tx, err := f.BeginTransaction(f.ctx)
	h.ok(err)
	_, err = tx.ExecuteUpdate(f.ctx, "DELETE FROM Singers WHERE TRUE")
	h.ok(err)
	info, err := tx.Execute(f.ctx, sql)
	h.ok(err)
	if got := count(f.read(info)); got != "0" {
		t.Errorf("%s rows in the transaction", got)
	}
	p, err := tx.Prepare(f.ctx, "INSERT INTO Singers (SingerId, Name) VALUES (?, ?)")
	h.ok(err)
	p.SetParameters(batch("a", "b", []int64{5, 6, 7}, []string{"", "", ""}))
	_, err = p.ExecuteUpdate(f.ctx)
	h.ok(err)
	id := tx.ID()
	h.ok(tx.Commit(f.ctx))
	if got := count(f.rows(sql)); got != "3" {
		t.Errorf("%s rows", got)
	}
	_, err = f.DoGet(f.ctx, &arrowflight.Ticket{Ticket: id})
	h.fails(err, codes.InvalidArgument) // the handle of a transaction is not a ticket
}

// TestFlightPartitions: the endpoints of a query together return each row once, at one timestamp.
func TestFlightPartitions(t *testing.T) {
	h := newHarness(t)
	f := h.newFlightClient("max-partitions", "4")
	const rows = 8000
	h.dmlOnce(h.session(true), fmt.Sprintf("INSERT INTO Singers (SingerId, Name) SELECT n, REPEAT('x', 100) FROM UNNEST(GENERATE_ARRAY(1, %d)) n", rows))
	info, err := f.Execute(f.ctx, "SELECT SingerId FROM Singers WHERE SingerId > 0")
	h.ok(err)
	if n := len(info.Endpoint); n < 2 || n > 4 {
		t.Errorf("%d endpoints", n)
	}
	h.dmlOnce(h.session(true), "INSERT INTO Singers (SingerId) VALUES (1000000)")
	h.restart()
	f.harness = h
	got, err := h.newFlightClient().read(info)
	h.ok(err)
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != rows {
		t.Errorf("%d rows", n)
	}
	// The client asks for up to 64 parts. But the server makes at most one part, which is one endpoint, for each 1,000
	// rows: here at most 8.
	f = h.newFlightClient("max-partitions", "64")
	info, err = f.Execute(f.ctx, "SELECT SingerId FROM Singers WHERE SingerId > 0")
	h.ok(err)
	if n := len(info.Endpoint); n < 6 || n > 8 {
		t.Errorf("%d endpoints of %d rows", n, rows)
	}
	f = h.newFlightClient("max-partitions", "none")
	_, err = f.Execute(f.ctx, "SELECT SingerId FROM Singers")
	h.fails(err, codes.InvalidArgument)
	f = h.newFlightClient("max-partitions", "4")
	info, err = f.Execute(f.ctx, "SELECT COUNT(*) FROM Singers")
	h.ok(err)
	if n := len(info.Endpoint); n != 1 {
		t.Errorf("%d endpoints of a query that cannot be divided", n)
	}
}

func ingestOptions(exists flightpb.CommandStatementIngest_TableDefinitionOptions_TableExistsOption, missing flightpb.CommandStatementIngest_TableDefinitionOptions_TableNotExistOption) *flightsql.TableDefinitionOptions {
	return &flightsql.TableDefinitionOptions{IfExists: exists, IfNotExist: missing}
}

// durations returns a batch with one column, whose type no table column can have.
func durations(values ...arrow.Duration) arrow.RecordBatch {
	b := array.NewDurationBuilder(memory.DefaultAllocator, &arrow.DurationType{Unit: arrow.Second})
	b.AppendValues(values, nil)
	column := b.NewArray()
	return array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "d", Type: column.DataType(), Nullable: true}}, nil), []arrow.Array{column}, int64(len(values)))
}

// TestFlightIngest: a bulk load creates a table, replaces it or adds rows to it, with or without a transaction.
func TestFlightIngest(t *testing.T) {
	const (
		fail, extend, replace = flightsql.TableDefinitionOptionsTableExistsOptionFail, flightsql.TableDefinitionOptionsTableExistsOptionAppend, flightsql.TableDefinitionOptionsTableExistsOptionReplace
		create, mustExist     = flightsql.TableDefinitionOptionsTableNotExistOptionCreate, flightsql.TableDefinitionOptionsTableNotExistOptionFail
	)
	h := newHarness(t)
	f := h.newFlightClient("primary-key", "id")
	ids, texts := make([]int64, 30_000), make([]string, 30_000)
	for i := range ids {
		ids[i], texts[i] = int64(i), fmt.Sprint("text ", i)
	}
	load := func(ctx context.Context, table string, o *flightsql.ExecuteIngestOpts, rows ...arrow.RecordBatch) (int64, error) {
		o.Table = table
		r, err := array.NewRecordReader(rows[0].Schema(), rows)
		h.ok(err)
		return f.ExecuteIngest(ctx, r, o)
	}
	n, err := load(f.ctx, "Loaded", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(fail, create)}, batch("id", "text", ids[:20_000], texts[:20_000]), batch("id", "text", ids[20_000:], texts[20_000:]))
	h.ok(err)
	if n != 30_000 {
		t.Errorf("%d rows", n)
	}
	_, err = load(f.ctx, "Loaded", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(fail, create)}, batch("id", "text", ids[:1], texts[:1]))
	h.fails(err, codes.AlreadyExists)
	_, err = load(f.ctx, "None", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(extend, mustExist)}, batch("id", "text", ids[:1], texts[:1]))
	if h.fails(err, codes.InvalidArgument); !strings.Contains(err.Error(), "None") {
		t.Error(err)
	}
	_, err = load(f.ctx, "Loaded", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(extend, create)}, batch("id", "text", append(slices.Clone([]int64{-1, -2}), ids[:20_000]...), append(slices.Clone(texts[:2]), texts[:20_000]...)))
	h.fails(err, codes.AlreadyExists)
	got, err := f.rows("SELECT COUNT(*), MAX(text) FROM Loaded")
	h.ok(err)
	if want := "30000|text 9999"; got[0] != want {
		t.Errorf("%s, want %s", got, want)
	}
	tx, err := f.BeginTransaction(f.ctx)
	h.ok(err)
	n, err = load(f.ctx, "Loaded", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(extend, create), TransactionId: tx.ID()}, batch("id", "text", []int64{-5, -6}, []string{"zz", "zzz"}))
	h.ok(err)
	h.ok(tx.Rollback(f.ctx))
	if got, _ := f.rows("SELECT COUNT(*) FROM Loaded"); n != 2 || got[0] != "30000" {
		t.Errorf("%d rows in a transaction, then %s", n, got)
	}
	f = h.newFlightClient()
	_, err = load(f.ctx, "Loaded", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(replace, create)}, batch("a", "b", []int64{1, 1}, []string{"x", "x"}))
	h.ok(err)
	if got, _ := f.rows("SELECT * FROM Loaded"); !slices.Equal(got, []string{"1|x", "1|x"}) {
		t.Errorf("%q", got)
	}
	// A load that replaces the table, but cannot create the new one, leaves the old table unchanged.
	_, err = load(h.newFlightClient("primary-key", "none").ctx, "Loaded", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(replace, create)}, batch("a", "b", []int64{1}, []string{"x"}))
	h.fails(err, codes.FailedPrecondition)
	_, err = load(f.ctx, "Loaded", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(replace, create)}, durations(1, 2))
	h.fails(err, codes.InvalidArgument)
	if got, _ := f.rows("SELECT * FROM Loaded"); !slices.Equal(got, []string{"1|x", "1|x"}) {
		t.Errorf("after a table that could not be made: %q", got)
	}
	// A column may have the same name as its table, but two columns must not have the same name.
	for _, o := range []flightsql.TableDefinitionOptionsTableExistsOption{fail, replace, extend} {
		_, err = load(f.ctx, "Word", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(o, create)}, batch("id", "word", []int64{1}, []string{"x"}))
		h.ok(err)
	}
	if got, _ := f.rows("SELECT * FROM Word"); !slices.Equal(got, []string{"1|x", "1|x"}) {
		t.Errorf("%q", got)
	}
	_, err = load(f.ctx, "Word", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(extend, create)}, batch("id", "ID", []int64{1}, []string{"x"}))
	h.fails(err, codes.InvalidArgument)
	_, err = load(f.ctx, "Singers", &flightsql.ExecuteIngestOpts{TableDefinitionOptions: ingestOptions(extend, create)}, batch("SingerId", "Updated", []int64{1}, []string{"no time"}))
	if h.fails(err, codes.InvalidArgument); !strings.Contains(err.Error(), "Row 1") || !strings.Contains(err.Error(), "Updated") {
		t.Error(err)
	}
}

// TestFlightIngestModes: the header ingest-mode decides how rows with existing keys are written. The rows of one commit
// are written together or not at all.
func TestFlightIngestModes(t *testing.T) {
	h := newHarness(t)
	extend := ingestOptions(flightsql.TableDefinitionOptionsTableExistsOptionAppend, flightsql.TableDefinitionOptionsTableNotExistOptionFail)
	load := func(mode string, transaction []byte, rows ...arrow.RecordBatch) (int64, error) {
		f := h.newFlightClient("ingest-mode", mode)
		r, err := array.NewRecordReader(rows[0].Schema(), rows)
		h.ok(err)
		return f.ExecuteIngest(f.ctx, r, &flightsql.ExecuteIngestOpts{Table: "Singers", TableDefinitionOptions: extend, TransactionId: transaction})
	}
	singers := func(ids []int64, names ...string) arrow.RecordBatch { return batch("SingerId", "Name", ids, names) }
	f := h.newFlightClient()
	want := func(what string, want ...string) {
		t.Helper()
		got, err := f.rows("SELECT SingerId, Name FROM Singers ORDER BY SingerId")
		h.ok(err)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	for _, mode := range []string{"insert-or-update", "insert", "replace"} {
		for range 2 {
			n, err := load(mode, nil, singers([]int64{3, 1}, "c", "a"), singers([]int64{2}, mode))
			if mode == "insert" {
				h.fails(err, codes.AlreadyExists)
				continue
			}
			if h.ok(err); n != 3 {
				t.Errorf("%s: %d rows", mode, n)
			}
			want(mode, "1|a", "2|"+mode, "3|c")
		}
	}
	n, err := load("insert-or-update", nil, singers([]int64{4, 4}, "first", "last"))
	if h.ok(err); n != 2 {
		t.Errorf("%d rows", n)
	}
	want("a key twice", "1|a", "2|replace", "3|c", "4|last")
	// Several small batches are written by one commit, so a load that fails writes none of them.
	for _, rows := range [][]arrow.RecordBatch{
		{singers([]int64{5}, "e"), singers([]int64{6, 4}, "f", "there")},
		{singers([]int64{5}, "e"), singers([]int64{6, 5}, "f", "twice")},
	} {
		_, err = load("insert", nil, rows...)
		h.fails(err, codes.AlreadyExists)
		want("a load that fails", "1|a", "2|replace", "3|c", "4|last")
	}
	tx, err := f.BeginTransaction(f.ctx)
	h.ok(err)
	_, err = load("insert-or-update", tx.ID(), singers([]int64{4, 5}, "d", "e"))
	h.ok(err)
	_, err = load("replace", tx.ID(), singers([]int64{4}, "x"))
	h.fails(err, codes.InvalidArgument)
	h.ok(tx.Commit(f.ctx))
	want("a transaction", "1|a", "2|replace", "3|c", "4|d", "5|e")
	_, err = load("upsert", nil, singers([]int64{4}, "x"))
	h.fails(err, codes.InvalidArgument)
}

// TestFlightBadInput: invalid commands, data and handles are refused with an error that says what is wrong.
func TestFlightBadInput(t *testing.T) {
	h := newHarness(t)
	f := h.newFlightClient()
	describe := func(m proto.Message) *arrowflight.FlightDescriptor {
		packed, err := anypb.New(m)
		h.ok(err)
		cmd, err := proto.Marshal(packed)
		h.ok(err)
		return &arrowflight.FlightDescriptor{Type: arrowflight.DescriptorCMD, Cmd: cmd}
	}
	for name, d := range map[string]*arrowflight.FlightDescriptor{
		"path":                {Type: arrowflight.DescriptorPATH, Path: []string{"Singers"}},
		"no command":          {Type: arrowflight.DescriptorCMD, Cmd: []byte{0xff}},
		"empty":               {Type: arrowflight.DescriptorCMD},
		"foreign handle":      describe(&flightpb.CommandPreparedStatementQuery{PreparedStatementHandle: []byte("mine")}),
		"foreign transaction": describe(&flightpb.CommandStatementQuery{Query: "SELECT 1", TransactionId: []byte("mine")}),
	} {
		_, err := f.Client.Client.GetFlightInfo(f.ctx, d)
		if t.Log(name, err); err == nil {
			t.Errorf("%s: no error", name)
		}
		h.fails(err, codes.InvalidArgument)
	}
	_, err := f.Client.Client.GetFlightInfo(f.ctx, describe(&flightpb.CommandStatementSubstraitPlan{}))
	h.fails(err, codes.Unimplemented)
	stream, err := f.Client.Client.DoAction(f.ctx, &arrowflight.Action{Type: "Dance"})
	h.ok(err)
	_, err = stream.Recv()
	h.fails(err, codes.Unimplemented)

	put := func(data ...*arrowflight.FlightData) error {
		stream, err := f.Client.Client.DoPut(f.ctx)
		h.ok(err)
		data[0].FlightDescriptor = describe(&flightpb.CommandStatementIngest{Table: "Singers", TableDefinitionOptions: &flightpb.CommandStatementIngest_TableDefinitionOptions{}})
		for _, d := range data {
			_ = stream.Send(d) // if Send fails, Recv returns the reason
		}
		h.ok(stream.CloseSend())
		_, err = stream.Recv()
		return err
	}
	for name, data := range map[string][]*arrowflight.FlightData{
		"no message":  {{DataHeader: []byte("not a flatbuffer")}},
		"no schema":   {{DataHeader: []byte{0, 0, 0, 0, 0, 0, 0, 0}, DataBody: []byte("x")}},
		"cut in half": halved(h, batch("SingerId", "Name", []int64{1, 2}, []string{"a", "b"})),
	} {
		err := put(data...)
		if t.Log(name, err); err == nil {
			t.Errorf("%s: no error", name)
		}
		h.fails(err, codes.InvalidArgument)
	}
}

// halved returns the messages of a batch, without the second half of the body of the second message.
func halved(h *harness, b arrow.RecordBatch) (list []*arrowflight.FlightData) {
	var messages []*arrowflight.FlightData
	w := arrowflight.NewRecordWriter(collector{&messages}, ipc.WithSchema(b.Schema()))
	h.ok(w.Write(b))
	messages[1].DataBody = messages[1].DataBody[:len(messages[1].DataBody)/2]
	return messages
}

type collector struct{ list *[]*arrowflight.FlightData }

func (c collector) Send(d *arrowflight.FlightData) error {
	*c.list = append(*c.list, proto.Clone(d).(*arrowflight.FlightData))
	return nil
}

// TestFlightPreparedOutlives checks that a prepared statement can be used after its transaction has ended. It then runs
// in the next transaction of its connection; after this one has ended too, it runs without a transaction. The server
// must refuse the statement if it is not clear in which transaction to run it, or if that transaction was lost.
func TestFlightPreparedOutlives(t *testing.T) {
	h := newHarness(t)
	f := h.newFlightClient()
	begin := func(f *flightClient) *flightsql.Txn {
		tx, err := f.BeginTransaction(f.ctx)
		h.ok(err)
		return tx
	}
	var p, read *flightsql.PreparedStatement
	prepare := func(tx *flightsql.Txn) {
		var err error
		p, err = tx.Prepare(f.ctx, "INSERT INTO Singers (SingerId, Name) VALUES (?, ?)")
		h.ok(err)
		read, err = tx.Prepare(f.ctx, "SELECT COUNT(*) FROM Singers WHERE SingerId <= ?")
		h.ok(err)
	}
	insert := func(id int64) error {
		p.SetParameters(batch("a", "b", []int64{id}, []string{"x"}))
		_, err := p.ExecuteUpdate(f.ctx)
		return err
	}
	shows := func(inside, outside string) {
		t.Helper()
		one := batch("a", "b", []int64{100}, []string{""})
		read.SetParameters(array.NewRecordBatch(arrow.NewSchema(one.Schema().Fields()[:1], nil), one.Columns()[:1], 1))
		info, err := read.Execute(f.ctx)
		h.ok(err)
		got, err := f.read(info)
		h.ok(err)
		all, err := f.rows("SELECT COUNT(*) FROM Singers")
		h.ok(err)
		if got[0] != inside || all[0] != outside {
			t.Errorf("%s rows in the transaction and %s outside, want %s and %s", got[0], all[0], inside, outside)
		}
	}
	tx := begin(f)
	prepare(tx)
	h.ok(insert(1))
	shows("1", "0")
	h.ok(tx.Commit(f.ctx))
	tx = begin(f)
	h.ok(insert(2)) // runs in the new transaction
	shows("2", "1")
	h.ok(tx.Rollback(f.ctx))
	tx = begin(f)
	h.ok(insert(2))
	shows("2", "1")
	h.ok(tx.Commit(f.ctx))
	h.ok(insert(3)) // runs without a transaction
	shows("3", "3")

	// Over another connection the server does not know the next transaction, so the statement is refused.
	other := h.newFlightClient()
	elsewhere := flightsql.NewPreparedStatement(other.Client, p.Handle())
	elsewhere.SetParameters(batch("a", "b", []int64{4}, []string{"x"}))
	_, err := elsewhere.ExecuteUpdate(other.ctx)
	h.fails(err, codes.FailedPrecondition)
	begin(other)
	_, err = elsewhere.ExecuteUpdate(other.ctx)
	h.fails(err, codes.FailedPrecondition)

	// Dropping the index aborts the open transaction, but the client has not ended this transaction. So the server
	// still runs the statement in it, and the statement fails.
	tx = begin(f)
	h.ok(insert(4))
	_, err = f.ExecuteUpdate(f.ctx, "DROP INDEX SingersByName")
	h.ok(err)
	h.fails(insert(5), codes.Aborted)
	h.ok(tx.Rollback(f.ctx))

	// If two transactions of the connection are open at once, the server moves the statement to neither. But the
	// statement runs in the transaction in which it was prepared as long as this transaction is open.
	first := begin(f)
	prepare(first)
	second := begin(f)
	h.ok(insert(6))
	h.ok(first.Commit(f.ctx))
	h.fails(insert(7), codes.FailedPrecondition)
	h.ok(second.Commit(f.ctx))
	h.fails(insert(7), codes.FailedPrecondition)

	// A restart loses the open transaction, so the statement is refused.
	f = h.newFlightClient()
	prepare(begin(f))
	h.restart()
	f = h.newFlightClient()
	lost := flightsql.NewPreparedStatement(f.Client, p.Handle())
	lost.SetParameters(batch("a", "b", []int64{8}, []string{"x"}))
	_, err = lost.ExecuteUpdate(f.ctx)
	h.fails(err, codes.Aborted)
}
