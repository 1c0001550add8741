package rpc

import (
	"net"
	"strings"
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

// Names of metadata that clients send.
const (
	apiClientKey = "x-goog-api-client"
	userAgentKey = "user-agent"
	requestIDKey = "x-goog-spanner-request-id"
)
