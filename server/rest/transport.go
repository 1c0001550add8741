package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/crowfoot-db/crowfoot/server/listener"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A transport is one request over REST with its call. The messages of a streamed reply are the elements of a JSON
// array.
type transport struct {
	request *http.Request
	body    countedBody
	reply   http.ResponseWriter
	route   *route
	call    rpc.Call
	begun   bool  // the beginning of the JSON array was sent
	sent    int64 // bytes of the JSON array sent so far
}

func newTransport(w http.ResponseWriter, r *http.Request, found *route) *transport {
	return &transport{request: r, body: countedBody{Reader: r.Body}, reply: w, route: found}
}

// A countedBody is the body of a request. It counts the bytes that are read from it.
type countedBody struct {
	io.Reader
	read int64
	late bool // the client has not sent the body in time
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += int64(n)
	b.late = errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}

// readBody reads the request's body, if its route has one, and decompresses it. The body can have limit bytes at most.
// The gateway calls readBody before the measurement of latency and CPU time starts, because the client decides how long
// the reading takes.
func (t *transport) readBody(limit int) ([]byte, error) {
	if t.route.body == "" {
		return nil, nil
	}
	t.deadline(time.Now().Add(listener.ReceiveTime))
	data, err := t.readContent(limit)
	switch {
	case t.body.late:
		return nil, usererror.ReceiveTimeout(listener.ReceiveTime)
	case err != nil && errors.Is(t.request.Context().Err(), context.Canceled):
		return nil, context.Canceled
	case err == nil:
		t.deadline(time.Time{})
	}
	return data, err
}

func (t *transport) readContent(limit int) ([]byte, error) {
	ctx := t.request.Context()
	if t.request.Header.Get("Content-Encoding") == "gzip" {
		return t.call.Inflate(ctx, &t.body, limit)
	}
	data, err := t.call.Read(ctx, &t.body, t.request.ContentLength, limit)
	if err != nil && !status.IsForUser(err) {
		return nil, usererror.UndecodableRequest("The request body could not be read.")
	}
	return data, err
}

// deadline sets the time by which the client must have sent the request; the zero time means never. After an error the
// deadline stays in force, because net/http then still reads what is left of the body.
func (t *transport) deadline(at time.Time) {
	_ = http.NewResponseController(t.reply).SetReadDeadline(at) // fails on a connection that has no deadlines, as in tests of the gateway
}

// Metadata implements rpc.Transport.
func (t *transport) Metadata(name string) []string { return t.request.Header.Values(name) }

// Peer implements rpc.Transport.
func (t *transport) Peer() string { return t.request.RemoteAddr }

// WantsTiming implements rpc.Transport. Over REST every client gets the header and trailer server-timing.
func (t *transport) WantsTiming() bool { return true }

// SetHeader implements rpc.Transport.
func (t *transport) SetHeader(name, value string) { t.reply.Header().Add(name, value) }

// SetTrailer implements rpc.Transport. A reply that is not streamed is written after the end of the call, so its
// trailers can be sent as headers.
func (t *transport) SetTrailer(name, value string) {
	if t.route.method.Streaming {
		name = http.TrailerPrefix + name
	}
	t.reply.Header().Add(name, value)
}

// Send implements rpc.Transport.
func (t *transport) Send(m any) error {
	before := t.call.Memory.Used()
	data, err := t.encode(m)
	if err != nil {
		return err
	}
	defer func() { t.call.Memory.Shrink(t.call.Memory.Used() - before) }()
	lead := []byte(",\n")
	if !t.begun {
		t.begin(http.StatusOK)
		lead = []byte("[")
	}
	return t.call.Cost.WaitForClient(func() error {
		n, err := t.reply.Write(append(lead, data...))
		t.sent += int64(n)
		if err != nil {
			return context.Canceled // the client disconnected
		}
		if f, ok := t.reply.(http.Flusher); ok {
			f.Flush()
		}
		return nil
	})
}

// jsonValueBytes is the approximate memory in bytes of one JSON value while it is converted to or from a message. See
// rpc.DecodedBytes, which estimates the message.
const jsonValueBytes = 160

// jsonBytes estimates the memory of a message decoded from JSON: that of its text and of its values. It counts the
// values by commas and opening brackets.
func jsonBytes(text []byte) int64 {
	values := 0
	for _, between := range []string{",", "[", "{"} {
		values += bytes.Count(text, []byte(between))
	}
	return int64(len(text)) + int64(values)*jsonValueBytes
}

// jsonFactor is the memory in bytes for each byte of an encoded message when it is converted to JSON: the JSON, and the
// slices that became too small while the encoder appended to them.
const jsonFactor = 6

// encode converts a reply message, which may be a frame, to JSON.
func (t *transport) encode(reply any) ([]byte, error) {
	m, ok := reply.(proto.Message)
	if !ok {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(t.route.descriptor.Output().FullName())
		if err != nil {
			return nil, err
		}
		m = kind.New().Interface()
		frame := reply.(*rpc.Frame).Data
		if err := t.call.Memory.Grow(t.request.Context(), rpc.DecodedBytes(t.route.descriptor.Output(), frame)+jsonFactor*int64(len(frame))); err != nil {
			reply.(*rpc.Frame).Release()
			return nil, err
		}
		if err := reply.(*rpc.Frame).Decode(m); err != nil {
			return nil, err
		}
	}
	return protojson.Marshal(m)
}

func (t *transport) begin(status int) {
	t.begun = true
	t.reply.Header().Set("Content-Type", "application/json; charset=UTF-8")
	t.reply.WriteHeader(status)
}

// closing returns the text that ends the JSON array of a call. If err, the error of the call, is not nil, it becomes
// the last element of the array, or its only one.
func (t *transport) closing(err error) string {
	text := "]\n"
	if err != nil {
		text = string(errorBody(err)) + text
	}
	switch {
	case !t.begun:
		text = "[" + text
	case err != nil:
		text = ",\n" + text
	}
	return text
}
