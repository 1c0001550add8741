package rpc

import (
	"strconv"
	"time"

	"github.com/crowfoot-db/crowfoot/server/cost"
)

// server-timing (https://www.w3.org/TR/server-timing/) tells the client how long its request took.
//
// Cloud Spanner's front ends put what they measured into the headers of a reply, and there the clients look for it, each with
// a pattern of its own: "gfet4t7; dur=2, afe; dur=2" suits all. What is known only at the end (all of the time, the CPU, the
// waiting for locks) follows in the trailers.
const (
	TimingKey = "server-timing"
	// AsksTimingKey is what clients send to hear of the API's front end: Java, Node and Python always, Go with
	// SPANNER_DISABLE_AFE_SERVER_TIMING=false. gRPC tells no other client, since it costs a point read 2% of its CPU.
	AsksTimingKey = "x-goog-spanner-enable-afe-server-timing"
)

// frontEnds is the time until the first message. One process is both of Cloud Spanner's front ends. They count whole
// milliseconds; here these are rounded up, since to some clients 0 is none.
func frontEnds(took time.Duration) string {
	ms := strconv.FormatInt(max(int64((took+time.Millisecond-1)/time.Millisecond), 1), 10)
	return "gfet4t7; dur=" + ms + ", afe; dur=" + ms
}

// totals is what is known at the end. A server without statistics does not know of CPU.
func totals(c cost.Cost) string {
	b := appendMillis([]byte("total; dur="), c.Latency)
	if c.CPU > 0 {
		b = appendMillis(append(b, ", cpu; dur="...), c.CPU)
	}
	b = appendMillis(append(b, ", lock; dur="...), c.LockWait)
	return string(b)
}

// appendMillis appends milliseconds to the microsecond.
func appendMillis(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(d.Microseconds())/1e3, 'f', 3, 64)
}
