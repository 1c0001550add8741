package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// A timing tells the client how long its request took: server-timing, https://www.w3.org/TR/server-timing/.
//
// Cloud Spanner's front ends put what they measured into the headers of a reply, and there the clients look for it, each with
// a pattern of its own: "gfet4t7; dur=2, afe; dur=2" suits all. What is known only at the end (all of the time, the CPU, the
// waiting for locks) follows in the trailers.
type timing interface {
	begins(entries string) // with the first message of the reply
	ends(entries string)   // when nothing more comes
}

const (
	timingKey = "server-timing"
	// asksTiming is what clients send to hear of the API's front end: Java, Node and Python always, Go with
	// SPANNER_DISABLE_AFE_SERVER_TIMING=false. Nobody else is told over gRPC, since it costs a point read 2% of its CPU.
	asksTiming = "x-goog-spanner-enable-afe-server-timing"
)

// grpcTiming is a request's over gRPC.
type grpcTiming struct{ ctx context.Context }

// timingOf is nil if the client did not ask.
func timingOf(ctx context.Context) timing {
	if len(metadata.ValueFromIncomingContext(ctx, asksTiming)) == 0 {
		return nil
	}
	return grpcTiming{ctx}
}

// Headers and trailers are lost on a client that went away.
func (t grpcTiming) begins(entries string) { grpc.SetHeader(t.ctx, metadata.MD{timingKey: {entries}}) }
func (t grpcTiming) ends(entries string)   { grpc.SetTrailer(t.ctx, metadata.MD{timingKey: {entries}}) }

// httpTiming is a request's over REST. A reply that is not streamed is written when all is known.
type httpTiming struct {
	header   http.Header
	streamed bool
}

func (t httpTiming) begins(entries string) { t.header.Set(timingKey, entries) }

func (t httpTiming) ends(entries string) {
	if t.streamed {
		t.header.Set(http.TrailerPrefix+timingKey, entries)
	} else {
		t.header.Add(timingKey, entries)
	}
}

// frontEnds is the time until the first message. One process is both of Cloud Spanner's front ends. They count whole
// milliseconds; here these are rounded up, since to some clients 0 is none.
func frontEnds(took time.Duration) string {
	ms := strconv.FormatInt(max(int64((took+time.Millisecond-1)/time.Millisecond), 1), 10)
	return "gfet4t7; dur=" + ms + ", afe; dur=" + ms
}

// totals is what is known at the end. A server without statistics does not know of CPU.
func totals(took, cpu, lockWait time.Duration) string {
	b := appendMillis([]byte("total; dur="), took)
	if cpu > 0 {
		b = appendMillis(append(b, ", cpu; dur="...), cpu)
	}
	b = appendMillis(append(b, ", lock; dur="...), lockWait)
	return string(b)
}

// appendMillis appends milliseconds to the microsecond.
func appendMillis(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(d.Microseconds())/1e3, 'f', 3, 64)
}
