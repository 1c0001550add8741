package server

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// traffic is the official client on a server whose clock the test moves. The test knows all requests of that client, so
// it can compute the statistics to the last row and byte.
type traffic struct {
	*harness
	clock   *testClock
	client  *spanner.Client
	session string // session in which the test reads statistics
}

var trafficSchema = []string{
	`CREATE TABLE Plain (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)`,
	`CREATE TABLE Singers (SingerId INT64 NOT NULL, Name STRING(MAX), Born DATE, Photo BYTES(MAX)) PRIMARY KEY (SingerId)`,
	`CREATE INDEX SingersByName ON Singers(Name) STORING (Born)`,
	`CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Title STRING(MAX)) PRIMARY KEY (SingerId, AlbumId),
		INTERLEAVE IN PARENT Singers ON DELETE CASCADE`,
	`CREATE TABLE Log (Time TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp=true), Line STRING(MAX)) PRIMARY KEY (Time)`,
}

func newTraffic(t testing.TB) *traffic {
	t.Helper()
	clock := newTestClock()
	x := &traffic{harness: newHarnessWith(t, Config{Clock: clock.now, Log: slog.New(slog.DiscardHandler)}, trafficSchema), clock: clock}
	x.connect()
	x.session = x.harness.session(true)
	return x
}

func (x *traffic) connect() {
	x.Helper()
	var err error
	x.client, err = spanner.NewClientWithConfig(x.ctx, testDatabase, spanner.ClientConfig{DisableNativeMetrics: true},
		option.WithEndpoint("passthrough:///"+x.address),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(x.countCall)),
		option.WithGRPCDialOption(grpc.WithChainStreamInterceptor(x.countStream)),
		option.WithoutAuthentication(),
		internaloption.SkipDialSettingsValidation())
	x.ok(err)
	x.Cleanup(x.client.Close)
}

func (h *harness) countCall(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	h.asked.Add(1)
	return invoke(ctx, method, req, reply, cc, opts...)
}

func (h *harness) countStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	h.asked.Add(1)
	return open(ctx, desc, cc, method, opts...)
}

// minute moves the clock by a minute, so that the current minute of the statistics ends.
func (x *traffic) minute() { x.forward(time.Minute) }

// forward moves the clock once all requests have been counted. A client has the last rows of a stream a moment before
// the server ends the request. If forward did not wait for that end, the request could count in the next interval of
// the statistics.
func (x *traffic) forward(d time.Duration) {
	eventually(func() bool { return int64(x.counted("crowfoot_request_seconds")) >= x.asked.Load() })
	x.clock.forward(d)
}

// shows checks that a query of statistics returns the given rows, with columns separated by |.
func (x *traffic) shows(sql string, want ...string) {
	x.Helper()
	x.harness.shows(x.session, sql, want...)
}

// plain fills the table Plain with rows of the keys 1 to n. The value of key k has k letters.
func (x *traffic) plain(n int) {
	x.Helper()
	var muts []*spanner.Mutation
	for k := 1; k <= n; k++ {
		muts = append(muts, spanner.Insert("Plain", []string{"K", "V"}, []any{k, strings.Repeat("v", k)}))
	}
	_, err := x.client.Apply(x.ctx, muts)
	x.ok(err)
}

// drain reads all rows and returns their number.
func drain(rows *spanner.RowIterator) (n int, err error) {
	defer rows.Stop()
	for {
		if _, err := rows.Next(); err == iterator.Done {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
}

// rows checks the number of rows that a read or query returns.
func (x *traffic) rows(want int, rows *spanner.RowIterator) {
	x.Helper()
	n, err := drain(rows)
	x.ok(err)
	if n != want {
		x.Errorf("%d rows, want %d", n, want)
	}
}

// ended waits until the given number of requests of a method have ended with a code. If a client gives up a request,
// the request ends a moment later.
func (h *harness) ended(method, code string, want float64) {
	h.Helper()
	eventually(func() bool { return h.counted("crowfoot_requests_total", method, code) >= want })
}

// counted returns the sum of a metric over all its series that have these label values.
func (h *harness) counted(name string, labels ...string) (sum float64) {
	h.Helper()
	families, err := h.server.gatherer.Gather()
	h.ok(err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	metrics:
		for _, m := range f.Metric {
			for _, want := range labels {
				found := false
				for _, l := range m.Label {
					found = found || l.GetValue() == want
				}
				if !found {
					continue metrics
				}
			}
			sum += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}
