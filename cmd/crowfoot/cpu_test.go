package main

import (
	"context"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
)

// needsThreadClocks skips the test on systems where CPU time cannot be measured. It also skips the test if
// CROWFOOT_TEST_CPU is not set, because other tests may then run at the same time. CI sets that variable in the step
// that runs the tests of CPU time.
func needsThreadClocks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no clock of threads")
	}
	if os.Getenv("CROWFOOT_TEST_CPU") == "" {
		t.Skip("measures CPU time: set CROWFOOT_TEST_CPU=1 and run nothing else")
	}
}

// TestCPUAddsUp checks that under the load of the benchmarks the CPU time that requests are charged adds up to the CPU
// time of the process.
func TestCPUAddsUp(t *testing.T) {
	needsThreadClocks(t)
	l := newLoaded(t)
	l.during(time.Second, l.mixed()...)
	process, requests := l.cpu()
	l.during(4*time.Second, l.mixed()...)
	processAfter, requestsAfter := l.cpu()
	used, charged := processAfter-process, requestsAfter-requests
	t.Logf("charged %.2f of %.2f s", charged, used)
	if share := charged / used; share < 0.85 || share > 1.15 {
		t.Errorf("requests were charged %g of what the process used", share)
	}
}

// request sends requests of one kind, and adds up the CPU time that the server reports for them.
type request struct {
	ask func(ctx context.Context) (metadata.MD, error) // sends the request and returns the trailer of the reply

	mu       sync.Mutex
	requests int
	cpu      time.Duration
}

// asksTiming is the header by which clients ask for server-timing, which has the CPU time of a request.
const asksTiming = "x-goog-spanner-enable-afe-server-timing"

func (r *request) work(ctx context.Context) error {
	trailer, err := r.ask(metadata.AppendToOutgoingContext(ctx, asksTiming, "true"))
	if err != nil {
		return err
	}
	_, text, _ := strings.Cut(strings.Join(trailer.Get("server-timing"), ""), "cpu; dur=")
	text, _, _ = strings.Cut(text, ",")
	ms, _ := strconv.ParseFloat(text, 64) // ms is 0 if the time is too small to be reported
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.cpu += time.Duration(ms * float64(time.Millisecond))
	return nil
}

// mean returns the mean CPU time of the requests since the last call of mean.
func (r *request) mean() time.Duration {
	mean := r.cpu / time.Duration(max(r.requests, 1))
	r.requests, r.cpu = 0, 0
	return mean
}

func streamed(stream grpc.ServerStreamingClient[spannerpb.PartialResultSet], err error) (metadata.MD, error) {
	for err == nil {
		_, err = stream.Recv()
	}
	if err != io.EOF {
		return nil, err
	}
	return stream.Trailer(), nil
}

func (l *loaded) query(sql string) *request {
	return &request{ask: func(ctx context.Context) (metadata.MD, error) {
		return streamed(l.raw.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: l.session, Sql: sql}))
	}}
}

func (l *loaded) read(tag string, keys *spannerpb.KeySet) *request {
	return &request{ask: func(ctx context.Context) (metadata.MD, error) {
		return streamed(l.raw.StreamingRead(ctx, &spannerpb.ReadRequest{Session: l.session, Table: "T", Columns: loadedColumns(), KeySet: keys,
			RequestOptions: &spannerpb.RequestOptions{RequestTag: tag}}))
	}}
}

func (l *loaded) commit() *request {
	return &request{ask: func(ctx context.Context) (trailer metadata.MD, err error) {
		row, err := structpb.NewList(append([]any{strconv.FormatInt(newID(), 10)}, loadedRow(0)[1:]...))
		if err != nil {
			return nil, err
		}
		_, err = l.raw.Commit(ctx, &spannerpb.CommitRequest{
			Session: l.session,
			Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: &spannerpb.TransactionOptions{
				Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: &spannerpb.TransactionOptions_ReadWrite{}},
			}},
			Mutations: []*spannerpb.Mutation{{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{
				Table: "T", Columns: loadedColumns(), Values: []*structpb.ListValue{row},
			}}}},
		}, grpc.Trailer(&trailer))
		return trailer, err
	}}
}

func key(id int) *structpb.ListValue {
	return &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(strconv.Itoa(id))}}
}

// TestCPUToldApart checks that two kinds of requests with very different costs are charged about as much CPU time when
// both run at the same time as when each kind runs alone. The server could mix them up, because it measures only one
// request in a few and estimates the others.
func TestCPUToldApart(t *testing.T) {
	needsThreadClocks(t)
	l := newLoaded(t)
	one := &spannerpb.KeySet{Keys: []*structpb.ListValue{key(7)}}
	thousand := &spannerpb.KeySet{Ranges: []*spannerpb.KeyRange{{
		StartKeyType: &spannerpb.KeyRange_StartClosed{StartClosed: key(0)}, EndKeyType: &spannerpb.KeyRange_EndOpen{EndOpen: key(1000)},
	}}}
	for _, c := range []struct {
		name         string
		heavy, light *request
	}{
		{"reads of one row and of a thousand, of the same columns", l.read("thousand", thousand), l.read("one", one)},
		{"a point and a sort", l.query("SELECT F1, COUNT(*), MAX(F2) FROM (SELECT F1, F2, Id FROM T WHERE Id < 1000 ORDER BY F3, Id DESC) GROUP BY F1"), l.query("SELECT F0 FROM T WHERE Id = 7")},
		{"a read and a commit", l.commit(), l.query("SELECT F0 FROM T WHERE Id = 7")},
	} {
		t.Run(c.name, func(t *testing.T) {
			const warm, long, try = 200 * time.Millisecond, time.Second, 5
			for i := range try { // several attempts, because other programs may disturb the machine
				cost := func(works ...func(context.Context) error) (heavy, light time.Duration) {
					l.during(warm, works...)
					c.heavy.mean()
					c.light.mean()
					l.during(long, works...)
					return c.heavy.mean(), c.light.mean()
				}
				heavy, _ := cost(c.heavy.work, c.heavy.work, c.heavy.work, c.heavy.work)
				_, light := cost(c.light.work, c.light.work, c.light.work, c.light.work)
				heavyToo, lightToo := cost(c.heavy.work, c.heavy.work, c.light.work, c.light.work)
				alone, together := heavy.Seconds()/light.Seconds(), heavyToo.Seconds()/lightToo.Seconds()
				t.Logf("alone %v and %v, %.1f times as much; together %v and %v, %.1f times", heavy, light, alone, heavyToo, lightToo, together)
				if toldApart(heavy, light, heavyToo, lightToo) {
					return
				}
				if i == try-1 {
					t.Errorf("alone one costs %g times the other, together %g times", alone, together)
				}
			}
		})
	}
}

// toldApart reports whether the server charges two kinds of requests correctly when both run at the same time. heavy
// and light are the CPU times that a request of each kind is charged when its kind runs alone. heavyToo and lightToo
// are the CPU times that it is charged when both kinds run. Each must be about the same in both cases, with one
// exception: a light request really takes more CPU time when heavy requests run, too. The heavy requests replace its
// data in the processor's caches. Also, many light requests at once share their system calls, but between heavy
// requests there are few light ones. So lightToo may be higher than light, by up to a third of heavy. If the server
// mixed the two kinds up, lightToo would be higher than light by half of heavy.
func toldApart(heavy, light, heavyToo, lightToo time.Duration) bool {
	const most = 2
	alone, together := heavy.Seconds()/light.Seconds(), heavyToo.Seconds()/lightToo.Seconds()
	heavyRight := heavyToo.Seconds() < most*heavy.Seconds() && heavyToo.Seconds() > heavy.Seconds()/most
	return heavyRight && (together > alone/most && together < alone*most || lightToo > light/2 && lightToo-light < heavy/3)
}
