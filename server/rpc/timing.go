package rpc

import (
	"strconv"
	"time"

	"github.com/crowfoot-db/crowfoot/server/cost"
)

// The header and trailer server-timing (https://www.w3.org/TR/server-timing/) tell the client how long its request
// took.
//
// Cloud Spanner's front ends put their times into the header. Each client library searches the header with a pattern of
// its own. Crowfoot writes "gfet4t7; dur=2, afe; dur=2", which matches the patterns of all of them. Times that are
// known only at the end (total, CPU, waiting for locks) follow in the trailer.
const (
	TimingKey = "server-timing"
	// AsksTimingKey is the header by which clients ask for the times of the API's front end: Java, Node and Python
	// always send it, Go sends it with SPANNER_DISABLE_AFE_SERVER_TIMING=false. Over gRPC only clients that ask get the
	// times, because sending them takes 2% of a point read's CPU time.
	AsksTimingKey = "x-goog-spanner-enable-afe-server-timing"
)

// frontEnds returns the entries of the header: the time until the first message. The entries of Cloud Spanner's two
// front ends have the same time, because here one process does the work of both. The times are whole milliseconds, and
// at least 1, because some clients treat 0 as missing.
func frontEnds(took time.Duration) string {
	ms := strconv.FormatInt(max(int64((took+time.Millisecond-1)/time.Millisecond), 1), 10)
	return "gfet4t7; dur=" + ms + ", afe; dur=" + ms
}

// totals returns the entries of the trailer: the latency, the request's own CPU time, its share of the CPU time of work
// for all requests, and its waits for locks. A server without statistics measures no CPU time and omits both CPU
// entries.
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
