package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// changeRecord is a row of a change stream, as the official client decodes it.
type changeRecord struct {
	Data []*struct {
		CommitTimestamp time.Time `spanner:"commit_timestamp"`
		Sequence        string    `spanner:"record_sequence"`
		TransactionID   string    `spanner:"server_transaction_id"`
		Last            bool      `spanner:"is_last_record_in_transaction_in_partition"`
		Table           string    `spanner:"table_name"`
		ColumnTypes     []*struct {
			Name     string           `spanner:"name"`
			Type     spanner.NullJSON `spanner:"type"`
			Key      bool             `spanner:"is_primary_key"`
			Position int64            `spanner:"ordinal_position"`
		} `spanner:"column_types"`
		ModType string `spanner:"mod_type"`
		Mods    []*struct {
			Keys      spanner.NullJSON `spanner:"keys"`
			NewValues spanner.NullJSON `spanner:"new_values"`
			OldValues spanner.NullJSON `spanner:"old_values"`
		} `spanner:"mods"`
		Capture    string `spanner:"value_capture_type"`
		Records    int64  `spanner:"number_of_records_in_transaction"`
		Partitions int64  `spanner:"number_of_partitions_in_transaction"`
		Tag        string `spanner:"transaction_tag"`
		System     bool   `spanner:"is_system_transaction"`
	} `spanner:"data_change_record"`
	Heartbeats []*struct {
		Timestamp time.Time `spanner:"timestamp"`
	} `spanner:"heartbeat_record"`
	Children []*struct {
		Start      time.Time `spanner:"start_timestamp"`
		Sequence   string    `spanner:"record_sequence"`
		Partitions []*struct {
			Token   string   `spanner:"token"`
			Parents []string `spanner:"parent_partition_tokens"`
		} `spanner:"child_partitions"`
	} `spanner:"child_partitions_record"`
}

// text formats a record, without times and tokens, which differ from run to run.
func (r *changeRecord) text() string {
	switch {
	case len(r.Data) > 0:
		d := r.Data[0]
		text := d.ModType + " " + d.Table
		for _, m := range d.Mods {
			text += fmt.Sprintf(" %v %v", m.Keys.Value, m.NewValues.Value)
		}
		return text
	case len(r.Heartbeats) > 0:
		return "heartbeat"
	}
	return fmt.Sprintf("%d children", len(r.Children[0].Partitions))
}

const readStream = `SELECT ChangeRecord FROM READ_Everything(start_timestamp => @start, end_timestamp => @end, partition_token => @token, heartbeat_milliseconds => @beat)`

func streamStatement(start time.Time, end spanner.NullTime, token spanner.NullString) spanner.Statement {
	return spanner.Statement{SQL: readStream, Params: map[string]any{"start": start, "end": end, "token": token, "beat": 10_000}}
}

// partition reads a partition of the change stream from start to end, and calls the parameter each with every record.
func (x *traffic) partition(ctx context.Context, start time.Time, end spanner.NullTime, token spanner.NullString, each func(*changeRecord)) error {
	rows := x.client.Single().Query(ctx, streamStatement(start, end, token))
	defer rows.Stop()
	for {
		row, err := rows.Next()
		if errors.Is(err, iterator.Done) {
			return nil
		}
		if err != nil {
			return err
		}
		var records []*changeRecord
		if err := row.Column(0, &records); err != nil {
			return err
		}
		for _, r := range records {
			each(r)
		}
	}
}

func newStreamTraffic(t *testing.T) (x *traffic, created time.Time) {
	t.Helper()
	x = &traffic{harness: newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, append(slices.Clone(trafficSchema), "CREATE CHANGE STREAM Everything FOR ALL"))}
	x.connect()
	return x, x.database().Created()
}

// initial returns the tokens of the partitions that existed at the given time.
func (x *traffic) initial(at time.Time) (tokens []string) {
	x.Helper()
	x.ok(x.partition(x.ctx, at, spanner.NullTime{}, spanner.NullString{}, func(r *changeRecord) {
		for _, p := range r.Children[0].Partitions {
			tokens = append(tokens, p.Token)
		}
	}))
	return tokens
}

func partitionToken(s string) spanner.NullString {
	return spanner.NullString{StringVal: s, Valid: true}
}

// TestChangeStream checks that the official client gets the records of a change stream while it writes. When the
// partition that it reads is split, it must get the tokens of the new partitions, and all later records from them.
func TestChangeStream(t *testing.T) {
	x, created := newStreamTraffic(t)
	root := x.initial(created)
	records := make(chan *changeRecord)
	ended := make(chan error)
	go func() {
		ended <- x.partition(x.ctx, created, spanner.NullTime{}, partitionToken(root[0]), func(r *changeRecord) { records <- r })
	}()
	next := func() *changeRecord {
		t.Helper()
		select {
		case r := <-records:
			return r
		case err := <-ended:
			t.Fatalf("the query ended: %v", err)
			return nil
		}
	}
	x.plain(2)
	if got := next().text(); got != "INSERT Plain map[K:1] map[V:v] map[K:2] map[V:vv]" {
		t.Errorf("read %s", got)
	}
	_, err := x.client.ReadWriteTransactionWithOptions(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement("DELETE FROM Plain WHERE K = 1"))
		return err
	}, spanner.TransactionOptions{TransactionTag: "app=test"})
	x.ok(err)
	deleted := next()
	if got := deleted.text(); got != "DELETE Plain map[K:1] map[]" || deleted.Data[0].Tag != "app=test" {
		t.Errorf("read %s, tag %q", got, deleted.Data[0].Tag)
	}
	x.ok(x.addSplits(splitAt("Plain", "", list("100"))))
	last := next()
	if got := last.text(); got != "2 children" {
		t.Fatalf("read %s", got)
	}
	x.ok(<-ended)
	children := last.Children[0]
	at := spanner.NullTime{Time: x.insertPlain(150, 50), Valid: true}
	var got []string
	for _, c := range children.Partitions {
		x.ok(x.partition(x.ctx, children.Start, at, partitionToken(c.Token), func(r *changeRecord) { got = append(got, r.text()) }))
		if !slices.Equal(c.Parents, root) {
			t.Errorf("parents %v, want %v", c.Parents, root)
		}
	}
	if want := []string{"INSERT Plain map[K:50] map[V:x]", "INSERT Plain map[K:150] map[V:x]"}; !slices.Equal(got, want) {
		t.Errorf("children have %q", got)
	}
	x.restart()
	x.client.Close()
	x.connect()
	var again []string
	x.ok(x.partition(x.ctx, created, at, partitionToken(root[0]), func(r *changeRecord) { again = append(again, r.text()) }))
	if want := []string{"INSERT Plain map[K:1] map[V:v] map[K:2] map[V:vv]", "DELETE Plain map[K:1] map[]", "2 children"}; !slices.Equal(again, want) {
		t.Errorf("after a restart: %q", again)
	}
}

// insertPlain inserts rows with the given keys into the table Plain by one commit, and returns its commit timestamp.
func (x *traffic) insertPlain(keys ...int) time.Time {
	x.Helper()
	var muts []*spanner.Mutation
	for _, k := range keys {
		muts = append(muts, spanner.Insert("Plain", []string{"K", "V"}, []any{k, "x"}))
	}
	at, err := x.client.Apply(x.ctx, muts)
	x.ok(err)
	return at
}

// streamRequest returns a request of the raw API that reads a partition from a start time.
func (x *traffic) streamRequest(start time.Time, partition string) *spannerpb.ExecuteSqlRequest {
	sql := fmt.Sprintf("SELECT ChangeRecord FROM READ_Everything(TIMESTAMP '%s', NULL, '%s', 10000)", start.UTC().Format(time.RFC3339Nano), partition)
	return &spannerpb.ExecuteSqlRequest{Session: x.session, Sql: sql}
}

// TestChangeStreamRefusals checks that only ExecuteStreamingSql can read a change stream, in a strong single-use
// transaction and with valid arguments. The server must refuse other requests.
func TestChangeStreamRefusals(t *testing.T) {
	x, created := newStreamTraffic(t)
	x.session = x.harness.session(true)
	root := x.initial(created)[0]
	req := x.streamRequest(created, root)
	_, err := x.data.ExecuteSql(x.ctx, req)
	x.fails(err, codes.InvalidArgument)
	_, err = x.data.PartitionQuery(x.ctx, &spannerpb.PartitionQueryRequest{Session: x.session, Sql: req.Sql, Transaction: begins(readOnly())})
	x.fails(err, codes.InvalidArgument)

	refused := func(sql string, sel *spannerpb.TransactionSelector, want codes.Code, text string) {
		t.Helper()
		stream, err := x.data.ExecuteStreamingSql(x.ctx, &spannerpb.ExecuteSqlRequest{Session: x.session, Sql: sql, Transaction: sel})
		x.ok(err)
		_, err = stream.Recv()
		x.fails(err, want)
		if !strings.Contains(status.Convert(err).Message(), text) {
			t.Errorf("%s: %v, want %s", sql, err, text)
		}
	}
	const multiUse = "Change stream queries are not supported for multi use transactions. Change stream queries must be strong reads executed via single use transactions"
	refused(req.Sql, begins(readOnly()), codes.InvalidArgument, multiUse)
	refused(req.Sql, begins(readWrite()), codes.InvalidArgument, multiUse)
	stale := &spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_ExactStaleness{ExactStaleness: durationpb.New(0)}}
	refused(req.Sql, &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_SingleUse{SingleUse: &spannerpb.TransactionOptions{
		Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: stale},
	}}}, codes.InvalidArgument, multiUse)
	now := time.Now().UTC()
	call := func(start, end, token, beat, options string) string {
		return fmt.Sprintf("SELECT ChangeRecord FROM READ_Everything(%s, %s, %s, %s, %s)", start, end, token, beat, options)
	}
	at := func(t time.Time) string { return fmt.Sprintf("TIMESTAMP '%s'", t.Format(time.RFC3339Nano)) }
	for _, c := range []struct {
		sql  string
		want codes.Code
		text string
	}{
		{call("NULL", "NULL", "NULL", "1000", "NULL"), codes.InvalidArgument, "start_timestamp must not be null."},
		{call(at(now), at(now.Add(-time.Second)), "NULL", "1000", "NULL"), codes.InvalidArgument, "If end_timestamp is specified, start_timestamp must be <= end_timestamp."},
		{call(at(now), "NULL", "NULL", "NULL", "NULL"), codes.InvalidArgument, "heartbeat_milliseconds must not be null."},
		{call(at(now), "NULL", "NULL", "999", "NULL"), codes.OutOfRange, "heartbeat_milliseconds must be within min 1000 and max 300000. Received heartbeat_milliseconds: 999."},
		{call(at(now), "NULL", "NULL", "300001", "NULL"), codes.OutOfRange, "Received heartbeat_milliseconds: 300001."},
		{call(at(now), "NULL", "NULL", "1000", "['x']"), codes.Unimplemented, "read_options must be null."},
		{call(at(now.Add(time.Hour)), "NULL", "NULL", "1000", "NULL"), codes.OutOfRange, "Specified start_timestamp is too far in the future."},
		{call(at(now.Add(-48*time.Hour)), "NULL", "NULL", "1000", "NULL"), codes.OutOfRange, "Specified start_timestamp is too far in the past."},
		{call(at(now), "NULL", "'token'", "1000", "NULL"), codes.InvalidArgument, "Specified partition_token is invalid, as it does not belong to the Change Stream associated with the TVF. Received partition_token: token."},
		{call(at(now), "NULL", "''", "1000", "NULL"), codes.InvalidArgument, "Specified partition_token is invalid"},
		{call("'yesterday'", "NULL", "NULL", "1000", "NULL"), codes.InvalidArgument, "Could not cast literal \"yesterday\" to type TIMESTAMP"},
		{call("7", "NULL", "NULL", "1000", "NULL"), codes.InvalidArgument, "No matching signature for READ_Everything"},
		{call(at(now), "NULL", "b'token'", "1000", "NULL"), codes.InvalidArgument, "No matching signature for READ_Everything"},
	} {
		refused(c.sql, nil, c.want, c.text)
	}
}

// TestChangeStreamResumes checks that a client can resume an interrupted query of a change stream after any message,
// even if the server was restarted meanwhile.
func TestChangeStreamResumes(t *testing.T) {
	x, created := newStreamTraffic(t)
	x.session = x.harness.session(false)
	root := x.initial(created)[0]
	large := strings.Repeat("x", 2<<20) // so large that it comes in several messages
	_, err := x.client.Apply(x.ctx, []*spanner.Mutation{spanner.Insert("Plain", []string{"K", "V"}, []any{1, large})})
	x.ok(err)
	x.insertPlain(2)
	x.insertPlain(3)
	x.ok(x.addSplits(splitAt("Plain", "", list("100"))))
	req := x.streamRequest(created, root)
	whole := x.partial(x.data.ExecuteStreamingSql(x.ctx, req))
	if len(whole) < 4 {
		t.Fatalf("%d messages", len(whole))
	}
	for i := range whole {
		if i == len(whole)/2 {
			x.restart()
		}
		resumed := &spannerpb.ExecuteSqlRequest{Session: req.Session, Sql: req.Sql, ResumeToken: whole[i].ResumeToken}
		rest := x.partial(x.data.ExecuteStreamingSql(x.ctx, resumed))
		if got, want := values(rest), values(whole[i+1:]); !slices.Equal(got, want) {
			t.Errorf("after message %d: %d bytes, want %d", i, len(strings.Join(got, "")), len(strings.Join(want, "")))
		}
	}
	resumed := &spannerpb.ExecuteSqlRequest{Session: req.Session, Sql: req.Sql + " ", ResumeToken: whole[0].ResumeToken}
	stream, err := x.data.ExecuteStreamingSql(x.ctx, resumed)
	x.ok(err)
	_, err = stream.Recv()
	x.fails(err, codes.InvalidArgument)
}

// values formats the values of messages as strings.
func values(messages []*spannerpb.PartialResultSet) (list []string) {
	for _, m := range messages {
		for _, v := range m.Values {
			list = append(list, v.String())
		}
	}
	return list
}

// TestChangeStreamEnds checks that a client that reads a change stream gets an error when the server stops, when the
// stream is dropped, and when the database is dropped. None of these events may wait for the client.
func TestChangeStreamEnds(t *testing.T) {
	x, created := newStreamTraffic(t)
	x.session = x.harness.session(true)
	root := x.initial(created)[0]
	read := func() spannerpb.Spanner_ExecuteStreamingSqlClient {
		t.Helper()
		stream, err := x.data.ExecuteStreamingSql(x.ctx, x.streamRequest(created, root))
		x.ok(err)
		first, err := stream.Recv() // the server sends the metadata before there is a record
		x.ok(err)
		if first.Metadata == nil {
			t.Errorf("the first message is %v", first)
		}
		return stream
	}
	stream := read()
	registry := x.server.registry
	x.server.Close()
	x.stop = func() { // like the harness's stop, but the server is closed already
		x.conn.Close()
		registry.Close()
		x.closeStore()
	}
	_, err := stream.Recv()
	x.fails(err, codes.Unavailable)
	if want := usererror.ServerStopping().Message; status.Convert(err).Message() != want {
		t.Errorf("it was cut off: %v", err)
	}
	x.restart()
	stream = read()
	x.alter("DROP CHANGE STREAM Everything")
	_, err = stream.Recv()
	x.fails(err, codes.NotFound)

	x.alter("CREATE CHANGE STREAM Everything FOR Plain")
	root, created = "", time.Now()
	x.client.Close()
	x.connect()
	root = x.initial(created)[0]
	stream = read()
	_, err = x.databases.DropDatabase(x.ctx, &databasepb.DropDatabaseRequest{Database: testDatabase})
	x.ok(err)
	_, err = stream.Recv()
	x.fails(err, codes.NotFound)
}

// TestChangeStreamIsNotSlow: because a query of a change stream waits for changes, it is not logged as slow, and
// metrics keep its latency separate from that of other requests. Query statistics count its whole duration.
func TestChangeStreamIsNotSlow(t *testing.T) {
	var step atomic.Int64
	still := newTestClock()
	var log lines
	clock := func() time.Time { still.forward(time.Duration(step.Load())); return still.now() }
	h := newHarnessWith(t, Config{Clock: clock, Log: log.logger(slog.LevelInfo)}, append(slices.Clone(trafficSchema), "CREATE CHANGE STREAM Everything FOR ALL"))
	const method = "ExecuteStreamingSql"
	query := func(sql string) {
		h.ok(h.stream(method, &spannerpb.ExecuteSqlRequest{Session: h.session(true), Sql: sql}, func(any) error { return nil }))
	}
	partitions := "SELECT ChangeRecord FROM READ_Everything(TIMESTAMP '" + h.database().Created().Format(time.RFC3339Nano) + "', NULL, NULL, 10000)"
	before := h.counted("crowfoot_request_seconds", method)
	step.Store(int64(time.Second))
	query(partitions)
	step.Store(0)
	if list := log.drain(t, method); len(list) > 0 {
		t.Errorf("it is logged: %v", list)
	}
	if n := h.counted("crowfoot_change_stream_query_seconds", method); n != 1 {
		t.Errorf("metrics count %v queries of change streams", n)
	}
	if n := h.counted("crowfoot_request_seconds", method); n != before {
		t.Errorf("metrics count %v others", n-before)
	}
	still.forward(time.Minute)
	rows := h.query(h.session(true), "SELECT EXECUTION_COUNT FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE AVG_LATENCY_SECONDS > 1 AND TEXT LIKE '%READ_Everything%'")
	if len(rows) != 1 || rows[0] != "1" {
		t.Errorf("statistics have %v", rows)
	}
}

// TestChangeStreamOverREST: over REST too, each record is sent as soon as it comes.
func TestChangeStreamOverREST(t *testing.T) {
	x, created := newStreamTraffic(t)
	x.session = x.harness.session(true)
	req := x.streamRequest(created, x.initial(created)[0])
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	body := fmt.Sprintf(`{"sql": %q}`, req.Sql)
	post, err := http.NewRequestWithContext(ctx, "POST", x.rest+"/v1/"+x.session+":executeStreamingSql", strings.NewReader(body))
	x.ok(err)
	reply, err := http.DefaultClient.Do(post)
	x.ok(err)
	defer reply.Body.Close()
	messages := json.NewDecoder(reply.Body)
	_, err = messages.Token() // the start of the array
	x.ok(err)
	next := func() string {
		t.Helper()
		if messages.More() {
			var m json.RawMessage
			x.ok(messages.Decode(&m))
			return string(m)
		}
		t.Fatal("the array has ended")
		return ""
	}
	if m := next(); !strings.Contains(m, "ChangeRecord") {
		t.Errorf("the first message is %s", m)
	}
	x.insertPlain(7)
	if m := next(); !strings.Contains(m, `{\"K\":\"7\"}`) {
		t.Errorf("the second message is %s", m)
	}
}

// BenchmarkChangeStream reads the existing records of a change stream's 16 partitions, with one reader for each
// partition, as fast as possible. records/s counts the records of all partitions. The client does not decode the
// messages, so the result measures the server and gRPC.
func BenchmarkChangeStream(b *testing.B) {
	const partitions, perPartition = 16, 2000
	x := &traffic{harness: newHarnessWith(b, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, append(slices.Clone(trafficSchema), "CREATE CHANGE STREAM Everything FOR ALL"))}
	x.connect()
	x.session = x.harness.session(true)
	var keys []*structpb.ListValue
	for i := 1; i < partitions; i++ {
		keys = append(keys, list(fmt.Sprint(i*perPartition)))
	}
	x.ok(x.addSplits(splitAt("Plain", "", keys...)))
	start := time.Now()
	for k := 0; k < partitions*perPartition; k += partitions { // each commit has a record in each partition
		var muts []*spanner.Mutation
		for p := range partitions {
			muts = append(muts, spanner.Insert("Plain", []string{"K", "V"}, []any{p*perPartition + k/partitions, "value of a row"}))
		}
		_, err := x.client.Apply(x.ctx, muts)
		x.ok(err)
	}
	tokens := x.initial(start)
	end := time.Now()
	began, records := time.Now(), 0
	for b.Loop() {
		var reading sync.WaitGroup
		for _, t := range tokens {
			reading.Go(func() {
				req := x.streamRequest(start, t)
				req.Sql = strings.Replace(req.Sql, ", NULL,", fmt.Sprintf(", TIMESTAMP '%s',", end.UTC().Format(time.RFC3339Nano)), 1)
				stream, err := x.conn.NewStream(x.ctx, &grpc.StreamDesc{ServerStreams: true}, "/google.spanner.v1.Spanner/ExecuteStreamingSql")
				x.ok(err)
				x.ok(stream.SendMsg(req))
				x.ok(stream.CloseSend())
				for err == nil {
					err = stream.RecvMsg(new(emptypb.Empty))
				}
				if !errors.Is(err, io.EOF) {
					b.Error(err)
				}
			})
		}
		reading.Wait()
		records += partitions * perPartition
	}
	b.ReportMetric(float64(records)/time.Since(began).Seconds(), "records/s")
}

// TestManyChangeStreams: a thousand clients read a change stream at once. While they wait they block no operating
// system thread, and a commit reaches all of them.
func TestManyChangeStreams(t *testing.T) {
	const readers = 1000
	x, created := newStreamTraffic(t)
	x.session = x.harness.session(true)
	req := x.streamRequest(created, x.initial(created)[0])
	var waiting, told sync.WaitGroup
	waiting.Add(readers)
	for range readers {
		told.Go(func() {
			begun := sync.OnceFunc(waiting.Done)
			defer begun()
			record := false
			err := x.stream("ExecuteStreamingSql", req, func(m any) error {
				var part spannerpb.PartialResultSet
				if err := m.(*rpc.Frame).Decode(&part); err != nil {
					return err
				}
				begun()
				if record = len(part.Values) > 0; record {
					return io.EOF
				}
				return nil
			})
			if !record {
				t.Errorf("a reader ended before the record: %v", err)
			}
		})
	}
	waiting.Wait()
	threads := pprof.Lookup("threadcreate").Count()
	x.insertPlain(1)
	told.Wait()
	if threads > readers/2 {
		t.Errorf("%d readers have made %d threads", readers, threads)
	}
}
