package rpc

import (
	"net"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/memory"
)

// A Transport carries one request and its reply over a protocol. gRPC and REST implement it. An implementation also
// calls the methods of Call in the order that the comment of Call lists.
type Transport interface {
	// Metadata returns the values that the client sent under a lower-case name: in gRPC's metadata, or in HTTP's
	// headers.
	Metadata(name string) []string
	// Peer returns the client's address, HOST:PORT, or "" if it is unknown.
	Peer() string
	// WantsTiming reports whether the client is told how long the request took: see timing.go.
	WantsTiming() bool
	// SetHeader adds to the reply's headers, which are sent before the first message. SetTrailer adds to the trailers,
	// which are sent after the last message. Neither fails if the client has disconnected.
	SetHeader(name, value string)
	SetTrailer(name, value string)
	// Send sends a message of a streamed reply: a proto.Message, or a *Frame, which the transport owns from then on. An
	// implementation must wait for the client only inside Recorder.WaitForClient, and return errors for users
	// (status.IsForUser).
	Send(m any) error
}

// An Uploader is a transport that can receive a stream of requests.
type Uploader interface {
	// Receive decodes the next request into m, and charges the account for the request's message. It returns io.EOF
	// after the last request.
	Receive(m proto.Message, charge *memory.Account) error
}

// Receive decodes the next request of an Uploading method into m. It returns io.EOF after the last request. The charge
// for the previous request ends, so the handler must not keep any of its memory.
func (c *Call) Receive(m proto.Message) error {
	c.upload.Close()
	if c.upload == nil {
		c.upload = c.dispatcher.budget.Open(memory.Request)
	}
	return c.transport.(Uploader).Receive(m, c.upload)
}

// SetHeader adds to the headers of the reply, which are sent before its first message.
func (c *Call) SetHeader(name, value string) { c.transport.SetHeader(name, value) }

// Metadata returns the values that the client sent under a name, joined by spaces, or "" if there are none.
func (c *Call) Metadata(name string) string { return strings.Join(c.transport.Metadata(name), " ") }

// Peer returns the host that the request came from, or "" if it is unknown.
func (c *Call) Peer() string {
	address := c.transport.Peer()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// Connection returns the client's end of the connection over which the request came, as HOST:PORT, or "" if it is
// unknown.
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
