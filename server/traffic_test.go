package server

import (
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

// traffic is the official client on a server whose clock the test moves: what it does is known, so what statistics say
// about it can be compared to the last row and byte.
type traffic struct {
	*harness
	clock   *wallClock
	client  *spanner.Client
	session string // in which statistics are read
}

var trafficSchema = []string{
	`CREATE TABLE Plain (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)`,
	`CREATE TABLE Singers (SingerId INT64 NOT NULL, Name STRING(MAX), Born DATE, Photo BYTES(MAX)) PRIMARY KEY (SingerId)`,
	`CREATE INDEX SingersByName ON Singers(Name) STORING (Born)`,
	`CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Title STRING(MAX)) PRIMARY KEY (SingerId, AlbumId),
		INTERLEAVE IN PARENT Singers ON DELETE CASCADE`,
}

func newTraffic(t testing.TB) *traffic {
	t.Helper()
	clock := newWallClock()
	x := &traffic{harness: newHarnessWith(t, Config{Clock: clock.now, Log: slog.New(slog.DiscardHandler)}, trafficSchema), clock: clock}
	x.client = x.connect()
	x.session = x.harness.session(true)
	return x
}

func (h *harness) connect() *spanner.Client {
	h.Helper()
	client, err := spanner.NewClientWithConfig(h.ctx, testDatabase, spanner.ClientConfig{DisableNativeMetrics: true},
		option.WithEndpoint("passthrough:///"+h.address),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithoutAuthentication(),
		internaloption.SkipDialSettingsValidation())
	h.ok(err)
	h.Cleanup(client.Close)
	return client
}

// minute ends the minute.
func (x *traffic) minute() { x.clock.forward(time.Minute) }

// shows wants a query of statistics to return these rows, columns separated by |.
func (x *traffic) shows(sql string, want ...string) {
	x.Helper()
	x.harness.shows(x.session, sql, want...)
}

// plain fills the table Plain with keys 1 to n and values of as many letters.
func (x *traffic) plain(n int) {
	x.Helper()
	var muts []*spanner.Mutation
	for k := 1; k <= n; k++ {
		muts = append(muts, spanner.Insert("Plain", []string{"K", "V"}, []any{k, strings.Repeat("v", k)}))
	}
	_, err := x.client.Apply(x.ctx, muts)
	x.ok(err)
}

// drain reads rows to their end and returns how many there were.
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

// rows wants a read or query to return so many rows.
func (x *traffic) rows(want int, rows *spanner.RowIterator) {
	x.Helper()
	n, err := drain(rows)
	x.ok(err)
	if n != want {
		x.Errorf("%d rows, want %d", n, want)
	}
}

// ended waits until so many requests of a method have ended with a code: what a client gave up is over a moment later.
func (h *harness) ended(method, code string, want float64) {
	h.Helper()
	for range 500 {
		if h.counted("crowfoot_requests_total", method, code) >= want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	h.Fatalf("%s has not ended with %s", method, code)
}

// counted is the value of a metric with these label values.
func (h *harness) counted(name string, labels ...string) float64 {
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
			if c := m.GetCounter(); c != nil {
				return c.GetValue()
			}
			return float64(m.GetHistogram().GetSampleCount())
		}
	}
	return 0
}
