package rpc

import (
	"strconv"
	"time"

	"github.com/crowfoot-db/crowfoot/server/cost"
)

// server-timing (https://www.w3.org/TR/server-timing/) tells the client how long its request took.
//
// Cloud Spanner's front ends put the times that they measure into the headers of a reply. Clients look for them there, each with
// a pattern of its own; "gfet4t7; dur=2, afe; dur=2" matches all of them. Times that are known only at the end (total, CPU,
// waiting for locks) follow in the trailers.
const (
	TimingKey = "server-timing"
	// AsksTimingKey is what clients send to be told the times of the API's front end: Java, Node and Python always, Go with
	// SPANNER_DISABLE_AFE_SERVER_TIMING=false. Over gRPC no other client is told, since it costs a point read 2% of its CPU.
	AsksTimingKey = "x-goog-spanner-enable-afe-server-timing"
)

// frontEnds is the entry for the time until the first message, which is that of both of Cloud Spanner's front ends: they are this one process. They
// count whole milliseconds. These are rounded up, since some clients take 0 for no value.
func frontEnds(took time.Duration) string {
	ms := strconv.FormatInt(max(int64((took+time.Millisecond-1)/time.Millisecond), 1), 10)
	return "gfet4t7; dur=" + ms + ", afe; dur=" + ms
}

// totals are the entries that are known at the end: the latency, the measured CPU time of the request itself, its share of the CPU time of
// what serves all requests, and its waits for locks. A server without statistics measures no CPU time and leaves that out.
func totals(c cost.Cost) string {
	b := appendMillis([]byte("total; dur="), c.Latency)
	if c.CPU > 0 {
		b = appendMillis(append(b, ", cpu; dur="...), c.CPU)
		b = appendMillis(append(b, ", shared; dur="...), c.SharedCPU)
	}
	b = appendMillis(append(b, ", lock; dur="...), c.LockWait)
	return string(b)
}

// appendMillis appends milliseconds to the microsecond.
func appendMillis(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(d.Microseconds())/1e3, 'f', 3, 64)
}
