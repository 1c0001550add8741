package rpc

import (
	"strconv"
	"time"

	"github.com/crowfoot-db/crowfoot/server/cost"
)

// server-timing (https://www.w3.org/TR/server-timing/) tells the client how long its request took.
//
// Cloud Spanner's front ends put their times into the headers of a reply. Each client searches for them with a pattern of its
// own; "gfet4t7; dur=2, afe; dur=2" matches all of the patterns. Times that are known only at the end (total, CPU, waiting for
// locks) follow in the trailers.
const (
	TimingKey = "server-timing"
	// AsksTimingKey is the header by which clients ask for the times of the API's front end: Java, Node and Python always send
	// it, Go with SPANNER_DISABLE_AFE_SERVER_TIMING=false. Over gRPC only clients that ask get the times, because they cost a
	// point read 2% of its CPU time.
	AsksTimingKey = "x-goog-spanner-enable-afe-server-timing"
)

// frontEnds returns the entries for the time until the first message. Both of Cloud Spanner's front ends get the same time,
// because here they are one process. The times are whole milliseconds, rounded up because some clients treat 0 as missing.
func frontEnds(took time.Duration) string {
	ms := strconv.FormatInt(max(int64((took+time.Millisecond-1)/time.Millisecond), 1), 10)
	return "gfet4t7; dur=" + ms + ", afe; dur=" + ms
}

// totals returns the entries that are known at the end: the latency, the request's own CPU time, its share of the CPU time of
// work for all requests, and its waits for locks. A server without statistics measures no CPU time and omits both CPU entries.
func totals(c cost.Cost) string {
	b := appendMillis([]byte("total; dur="), c.Latency)
	if c.CPU > 0 {
		b = appendMillis(append(b, ", cpu; dur="...), c.CPU)
		b = appendMillis(append(b, ", shared; dur="...), c.SharedCPU)
	}
	b = appendMillis(append(b, ", lock; dur="...), c.LockWait)
	return string(b)
}

// appendMillis appends d in milliseconds with three decimals.
func appendMillis(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(d.Microseconds())/1e3, 'f', 3, 64)
}
