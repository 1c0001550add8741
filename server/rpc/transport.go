package rpc

import (
	"net"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/memory"
)

// A Transport carries one request and its reply over a protocol. gRPC and REST implement it. A further protocol implements it too, and takes
// a Call through its life.
type Transport interface {
	// Metadata are the values that the client sent under a name in lower case: gRPC's metadata, HTTP's headers.
	Metadata(name string) []string
	// Peer is the client's address, HOST:PORT; "" if it is not known.
	Peer() string
	// WantsTiming says whether the client is told how long the request took, see timing.go.
	WantsTiming() bool
	// SetHeader adds to the headers, which go before the first message, SetTrailer to the trailers, which follow the last. Neither
	// fails if the client went away.
	SetHeader(name, value string)
	SetTrailer(name, value string)
	// Send sends a message of a streamed reply: a proto.Message, or a *Frame, which belongs to the transport from then on. It must call
	// Recorder.WaitForClient for what may have to wait until the client reads. Its errors are for users, see status.IsForUser.
	Send(m any) error
}

// An Uploader is a transport of methods that take a stream of requests.
type Uploader interface {
	// Receive decodes the next request into m, and charges the account for its message. It returns io.EOF after the last one.
	Receive(m proto.Message, charge *memory.Account) error
}

// Receive decodes the next request of an Uploading method into m; io.EOF after the last one. What the one before was charged is given back: the handler
// keeps nothing of it.
func (c *Call) Receive(m proto.Message) error {
	c.upload.Close()
	if c.upload == nil {
		c.upload = c.dispatcher.budget.Open(memory.Request)
	}
	return c.transport.(Uploader).Receive(m, c.upload)
}

// SetHeader adds to the headers of the reply, which go before its first message.
func (c *Call) SetHeader(name, value string) { c.transport.SetHeader(name, value) }

// Metadata is what the client sent under a name, "" if it sent nothing.
func (c *Call) Metadata(name string) string { return strings.Join(c.transport.Metadata(name), " ") }

// Peer is the host that the request came from, "" if it is not known.
func (c *Call) Peer() string {
	address := c.transport.Peer()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// Connection is the client's end of the connection that the request came over, HOST:PORT; "" if that is not known.
func (c *Call) Connection() string {
	address := c.transport.Peer()
	if _, _, err := net.SplitHostPort(address); err != nil {
		return ""
	}
	return address
}

// Names of metadata that clients send.
const (
	apiClientKey = "x-goog-api-client"
	userAgentKey = "user-agent"
	requestIDKey = "x-goog-spanner-request-id"
)
