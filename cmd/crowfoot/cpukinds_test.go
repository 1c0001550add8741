package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
)

// charging is a client of a server that runs as a separate process. The tests of this file use it to check the CPU time
// that the server charges to requests.
type charging struct {
	*testing.T
	process *exec.Cmd
	http    string
	client  spannerpb.SpannerClient
	session string
}

func newCharging(t *testing.T) *charging {
	t.Helper()
	process, api, httpAddress := serveBoth(t, "--data", filepath.Join(t.TempDir(), "data"), "--database", crashDatabase)
	conn, err := grpc.NewClient(api, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &charging{T: t, process: process, http: httpAddress, client: spannerpb.NewSpannerClient(conn)}
	ses, err := c.client.CreateSession(t.Context(), &spannerpb.CreateSessionRequest{Database: crashDatabase, Session: &spannerpb.Session{Multiplexed: true}})
	c.ok(err)
	c.session = ses.Name
	return c
}

func (c *charging) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// used returns the CPU time that the server's process has used so far.
func (c *charging) used() time.Duration {
	c.Helper()
	const scheduled = 2 // CPUCLOCK_SCHED of Linux: the clock counts CPU time
	var t unix.Timespec
	c.ok(unix.ClockGettime(int32(^c.process.Process.Pid)<<3|scheduled, &t))
	return time.Duration(t.Nano())
}

// charged returns the CPU time that the trailer server-timing has under a name.
func charged(trailer metadata.MD, name string) time.Duration {
	_, text, _ := strings.Cut(strings.Join(trailer.Get("server-timing"), ""), name+"; dur=")
	text, _, _ = strings.Cut(text, ",")
	ms, _ := strconv.ParseFloat(text, 64)
	return time.Duration(ms * float64(time.Millisecond))
}

func asking(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, asksTiming, "true")
}

func (c *charging) query(sql string, params map[string]any) []metadata.MD {
	c.Helper()
	p, err := structpb.NewStruct(params)
	c.ok(err)
	trailer, err := streamed(c.client.ExecuteStreamingSql(asking(c.Context()), &spannerpb.ExecuteSqlRequest{Session: c.session, Sql: sql, Params: p}))
	c.ok(err)
	return []metadata.MD{trailer}
}

func (c *charging) read() []metadata.MD {
	c.Helper()
	trailer, err := streamed(c.client.StreamingRead(asking(c.Context()), &spannerpb.ReadRequest{Session: c.session, Table: "T", Columns: []string{"Id", "A", "S"},
		KeySet: &spannerpb.KeySet{All: true}}))
	c.ok(err)
	return []metadata.MD{trailer}
}

func readWrite() *spannerpb.TransactionOptions {
	return &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: &spannerpb.TransactionOptions_ReadWrite{}}}
}

// dml runs a statement in a transaction of its own. It returns the trailers of the statement and of the commit.
func (c *charging) dml(sql string) []metadata.MD {
	c.Helper()
	var md metadata.MD
	ctx := asking(c.Context())
	r, err := c.client.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Session: c.session, Sql: sql, Seqno: 1,
		Transaction: &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Begin{Begin: readWrite()}}}, grpc.Trailer(&md))
	c.ok(err)
	var commit metadata.MD
	_, err = c.client.Commit(ctx, &spannerpb.CommitRequest{Session: c.session, PrecommitToken: r.PrecommitToken,
		Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: r.Metadata.Transaction.Id}}, grpc.Trailer(&commit))
	c.ok(err)
	return []metadata.MD{md, commit}
}

func (c *charging) ddl(statement string) {
	c.Helper()
	body, _ := json.Marshal(map[string]any{"statements": []string{statement}})
	req, _ := http.NewRequest("PATCH", "http://"+c.http+"/v1/"+crashDatabase+"/ddl", bytes.NewReader(body))
	reply, err := http.DefaultClient.Do(req)
	c.ok(err)
	defer reply.Body.Close()
	data, _ := io.ReadAll(reply.Body)
	if reply.StatusCode != 200 {
		c.Fatalf("%s", data)
	}
	var op struct {
		Name string
		Done bool
	}
	c.ok(json.Unmarshal(data, &op))
	for !op.Done {
		reply, err := http.Get("http://" + c.http + "/v1/" + op.Name)
		c.ok(err)
		c.ok(json.NewDecoder(reply.Body).Decode(&op))
		reply.Body.Close()
		time.Sleep(10 * time.Millisecond)
	}
}

// kind is a kind of request, such as a statement, that takes the server long to execute.
type kind struct {
	name string
	run  func(c *charging) []metadata.MD // sends such a request, in one or several calls, and returns the trailers of the calls
	// streams says that the request returns many rows. Sending rows takes much CPU time. The server charges this time
	// as the request's share of work for all requests, and not as the request's own.
	streams bool
	// garbage says that the request allocates very many small values, so that garbage collection takes much CPU time.
	garbage bool
}

func queryKind(name, sql string) kind {
	return kind{name: name, run: func(c *charging) []metadata.MD { return c.query(sql, nil) }}
}

func dmlKind(name, sql string) kind {
	return kind{name: name, garbage: true, run: func(c *charging) []metadata.MD { return c.dml(sql) }}
}

var kinds = []kind{
	queryKind("scan", "SELECT COUNT(*), SUM(LENGTH(S)) FROM T"),
	queryKind("scan whose rows no condition keeps", "SELECT COUNT(*) FROM T WHERE LENGTH(S) < 0"),
	queryKind("cross join", "SELECT COUNT(*) FROM (SELECT Id FROM T WHERE Id < 1000) a CROSS JOIN (SELECT Id FROM T WHERE Id < 1000) b WHERE a.Id + b.Id > 5"),
	queryKind("sort", "SELECT Id FROM (SELECT Id, A FROM T ORDER BY A, S LIMIT 100000) ORDER BY A LIMIT 1"),
	queryKind("hash join", "SELECT COUNT(*) FROM T a JOIN@{JOIN_METHOD=HASH_JOIN} T b ON a.A = b.A"),
	queryKind("aggregation", "SELECT COUNT(*) FROM (SELECT A, COUNT(*) AS n, MAX(S) AS s FROM T GROUP BY A)"),
	queryKind("functions of long values", "SELECT SUM(LENGTH(TO_HEX(SHA512(CONCAT(REPEAT('abcdefghij', 100000), CAST(x AS STRING)))))) FROM UNNEST(GENERATE_ARRAY(1, 100)) AS x"),
	{name: "READ of all rows", run: (*charging).read, streams: true},
	{name: "query of all rows", run: func(c *charging) []metadata.MD { return c.query("SELECT * FROM T", nil) }, streams: true},
	{name: "REST", run: (*charging).rest, garbage: true},
	{name: "planning", run: (*charging).planning},
	dmlKind("UPDATE", "UPDATE T SET A = A + 1 WHERE Id < 20000"),
	{name: "commit of mutations", run: (*charging).mutations, garbage: true},
}

// TestCPUOfKinds checks the CPU time that each kind of request is charged. The time that is charged as the request's
// own must be what the process used, except for work that goroutines do for all requests: garbage collection and
// sending rows. Together with the request's share of that work it must be all that the process used. The test runs each
// kind alone on the server, for at least four seconds of CPU time.
func TestCPUOfKinds(t *testing.T) {
	needsThreadClocks(t)
	c := newCharging(t)
	c.load()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			own, shared, used := c.during(k.run, 4*time.Second)
			t.Logf("own %v, shared %v, of %v: %.3f, %.3f", own, shared, used, own.Seconds()/used.Seconds(), (own+shared).Seconds()/used.Seconds())
			least := 0.85 // garbage collection uses up to 15%
			if k.streams || k.garbage {
				least = 0.5
			}
			if ratio := own.Seconds() / used.Seconds(); ratio < least || ratio > 1.02 {
				t.Errorf("charged %.3f of what the process used", ratio)
			}
			const off = 0.1
			if ratio := (own + shared).Seconds() / used.Seconds(); ratio < 1-off || ratio > 1+off {
				t.Errorf("charged %.3f of what the process used, with what is shared", ratio)
			}
		})
	}
}

// TestCPUOfMix checks that a long execution of a statement is charged about as much CPU time under load as when it runs
// alone, and that a short execution of the same statement is charged at most a hundredth of that. The test runs the
// statement many times for few rows and then once for all rows, while other requests keep the server busy. Under this
// load, the server measures only one execution in a few. On a core whose other hardware thread is busy, the same work
// takes one and a half times as long, so the test cannot compare single executions. It alternates executions alone and
// under load, and compares their sums.
func TestCPUOfMix(t *testing.T) {
	needsThreadClocks(t)
	c := newCharging(t)
	c.load()
	count := func(n int) time.Duration {
		return ownCPU(c.query("SELECT COUNT(*) FROM T WHERE Id < @n AND LENGTH(S) > 0", map[string]any{"n": strconv.Itoa(n)}))
	}
	const turns, shorts = 15, 70
	var alone, beside, short time.Duration
	count(100_000)
	for range turns {
		alone += count(100_000)
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for range 4 {
			load.Go(func() {
				for ctx.Err() == nil {
					c.point(ctx)
				}
			})
		}
		for range shorts {
			short += count(10)
		}
		beside += count(100_000)
		stop()
		load.Wait()
	}
	alone, beside, short = alone/turns, beside/turns, short/(turns*shorts)
	t.Logf("of 100,000 rows %v alone, %v beside short ones; of 10 rows %v", alone, beside, short)
	if ratio := beside.Seconds() / alone.Seconds(); ratio < 0.7 || ratio > 1.5 {
		t.Errorf("the long execution is charged %v, %v alone", beside, alone)
	}
	if short > alone/100 {
		t.Errorf("a short execution is charged %v", short)
	}
}

// TestCPUBelowLatency checks that a light point query is not charged more CPU time than its latency.
func TestCPUBelowLatency(t *testing.T) {
	needsThreadClocks(t)
	c := newCharging(t)
	c.load()
	for range 200 {
		for _, trailer := range c.query("SELECT A FROM T WHERE Id = 7", nil) {
			if cpu, total := charged(trailer, "cpu"), charged(trailer, "total"); cpu > total {
				t.Errorf("CPU %v, total %v", cpu, total)
			}
		}
	}
}

// TestCPUOfBackground checks that the CPU time of filling an index is charged to a background task and not to requests.
// Garbage collection and the log of the storage engine are charged to neither of the two.
func TestCPUOfBackground(t *testing.T) {
	needsThreadClocks(t)
	c := newCharging(t)
	c.load()
	before, background, requests := c.used(), c.background(), c.requests()
	c.ddl("CREATE INDEX ByA ON T(A)")
	used := c.used() - before
	background, requests = c.background()-background, c.requests()-requests
	t.Logf("of %v tasks used %v, requests are charged %v", used, background, requests)
	if share := background.Seconds() / used.Seconds(); share < 0.3 || share > 1.05 {
		t.Errorf("tasks used %v of %v", background, used)
	}
	if share := requests.Seconds() / used.Seconds(); share > 0.1 {
		t.Errorf("requests are charged %v of %v", requests, used)
	}
}

// background returns the CPU time of all background tasks so far.
func (c *charging) background() time.Duration { return c.sum("crowfoot_background_cpu_seconds_total") }

// requests returns the CPU time that all requests were charged so far, including their shares of work for all requests.
func (c *charging) requests() time.Duration {
	return c.sum("crowfoot_cpu_seconds_total") + c.sum("crowfoot_shared_cpu_seconds_total")
}

// sum returns the sum of a metric, in seconds, over all its series.
func (c *charging) sum(metric string) (sum time.Duration) {
	for name, seconds := range metrics(c.T, c.http) {
		if strings.HasPrefix(name, metric+"{") {
			sum += time.Duration(seconds * float64(time.Second))
		}
	}
	return sum
}

func ownCPU(trailers []metadata.MD) (sum time.Duration) {
	for _, m := range trailers {
		sum += charged(m, "cpu")
	}
	return sum
}

// during calls the function run until the server's process has used the given CPU time. It returns the CPU time that
// requests were charged as their own and as shared, and the CPU time that the process used, without that of background
// tasks.
func (c *charging) during(run func(*charging) []metadata.MD, least time.Duration) (ownCPU, shared, used time.Duration) {
	run(c)
	before, background := c.used(), c.background()
	for used < least {
		for _, m := range run(c) {
			ownCPU += charged(m, "cpu")
			shared += charged(m, "shared")
		}
		used = c.used() - before
	}
	return ownCPU, shared, used - (c.background() - background)
}

// load creates a table of 100,000 rows.
func (c *charging) load() {
	c.Helper()
	c.ddl("CREATE TABLE T (Id INT64 NOT NULL, A INT64, S STRING(100)) PRIMARY KEY (Id)")
	for from := 0; from < 100_000; from += 20_000 {
		c.dml(fmt.Sprintf("INSERT INTO T (Id, A, S) SELECT x, FARM_FINGERPRINT(CAST(x AS STRING)), REPEAT('x', 90) FROM UNNEST(GENERATE_ARRAY(%d, %d)) AS x", from, from+19_999))
	}
}

// point reads one row.
func (c *charging) point(ctx context.Context) {
	stream, err := c.client.StreamingRead(ctx, &spannerpb.ReadRequest{Session: c.session, Table: "T", Columns: []string{"A"}, KeySet: &spannerpb.KeySet{Keys: []*structpb.ListValue{key(7)}}})
	for err == nil {
		_, err = stream.Recv()
	}
}

// rest requests a large result over REST, as JSON.
func (c *charging) rest() []metadata.MD {
	body := `{"sql": "SELECT * FROM T WHERE Id < 50000"}`
	reply, err := http.Post("http://"+c.http+"/v1/"+c.session+":executeSql", "application/json", strings.NewReader(body))
	c.ok(err)
	defer reply.Body.Close()
	_, err = io.Copy(io.Discard, reply.Body)
	c.ok(err)
	return []metadata.MD{{"server-timing": []string{strings.Join(reply.Header.Values("Server-Timing"), ", ")}}}
}

// planning runs a long query with a text that was never sent before.
func (c *charging) planning() []metadata.MD {
	sql := fmt.Sprintf("SELECT %d", rand.Int64())
	for i := range 900 {
		sql += fmt.Sprintf(", %d AS c%d", rand.Int64(), i)
	}
	return c.query(sql, nil)
}

// mutations commits many rows in one request.
func (c *charging) mutations() []metadata.MD {
	var rows []*structpb.ListValue
	for range 20_000 {
		rows = append(rows, &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(strconv.FormatInt(newID()+1_000_000, 10)), structpb.NewStringValue("1"), structpb.NewStringValue(strings.Repeat("y", 90))}})
	}
	var trailer metadata.MD
	_, err := c.client.Commit(asking(c.Context()), &spannerpb.CommitRequest{
		Session: c.session, Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: readWrite()},
		Mutations: []*spannerpb.Mutation{{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: &spannerpb.Mutation_Write{
			Table: "T", Columns: []string{"Id", "A", "S"}, Values: rows,
		}}}},
	}, grpc.Trailer(&trailer))
	c.ok(err)
	return []metadata.MD{trailer}
}
