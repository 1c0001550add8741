package rpc

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/cost"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// TestLogCostsNothingUnread: a request whose log line is below the log's level allocates nothing for that line.
func TestLogCostsNothingUnread(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelInfo}))
	d := NewDispatcher(nil, time.Now, log, cpu.NoAccount(), memory.NewBudget(memory.NoLimit), nil)
	m := Unary("Read", func(context.Context, *spannerpb.ReadRequest) (*spannerpb.ResultSet, error) { return nil, nil })
	var c Call
	d.Begin(&c, &m, nil)
	if n := testing.AllocsPerRun(100, func() { c.log(cost.Cost{Latency: time.Millisecond}, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
