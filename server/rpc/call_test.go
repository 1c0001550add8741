package rpc

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A taped is a transport that records the calls of its methods, in order.
type taped struct {
	metadata map[string][]string
	tape     []string
	broken   error // error that Send returns
}

func (t *taped) Metadata(name string) []string { return t.metadata[name] }
func (t *taped) Peer() string                  { return "10.0.0.1:5555" }
func (t *taped) WantsTiming() bool             { return true }
func (t *taped) SetHeader(name, value string)  { t.tape = append(t.tape, "header "+name) }
func (t *taped) SetTrailer(name, value string) { t.tape = append(t.tape, "trailer "+name) }
func (t *taped) Send(m any) error {
	t.tape = append(t.tape, "message "+string(m.(*Frame).Data))
	return t.broken
}

// life makes a Call of the method m, and calls the methods of the Call in the order in which a transport does.
func (t *taped) life(m Method) error {
	d := NewDispatcher(nil, time.Now, slog.New(slog.DiscardHandler), cpu.NoAccount(), memory.NewBudget(memory.NoLimit), nil)
	var c Call
	d.Begin(&c, &m, t)
	c.Received(7)
	_, err := c.Run(context.Background())
	c.End(err)
	return err
}

// TestLifeOfACall: headers are set before the first message is sent, and trailers after the last.
func TestLifeOfACall(t *testing.T) {
	send := func(texts ...string) Method {
		return Streaming("StreamingRead", func(_ context.Context, _ *spannerpb.ReadRequest, c *Call) error {
			for _, text := range texts {
				if err := c.Send(&Frame{Data: []byte(text)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, c := range []struct {
		name   string
		method Method
		broken error
		tape   string
		code   codes.Code
	}{
		{"stream", send("a", "b"), nil, "header server-timing|message a|message b|trailer server-timing", codes.OK},
		{"empty stream", send(), nil, "trailer server-timing", codes.OK},
		{"broken stream", send("a", "b"), usererror.Transport(codes.Unavailable, "gone"), "header server-timing|message a|trailer server-timing", codes.Unavailable},
		{"unary", Unary("GetSession", func(context.Context, *spannerpb.GetSessionRequest) (*spannerpb.Session, error) {
			return &spannerpb.Session{}, nil
		}), nil, "header server-timing|trailer server-timing", codes.OK},
		{"error", Unary("GetSession", func(context.Context, *spannerpb.GetSessionRequest) (*spannerpb.Session, error) {
			return nil, errors.New("disk full")
		}), nil, "trailer server-timing", codes.Internal},
		{"panic", Unary("GetSession", func(context.Context, *spannerpb.GetSessionRequest) (*spannerpb.Session, error) {
			panic("oh")
		}), nil, "trailer server-timing", codes.Internal},
	} {
		transport := &taped{broken: c.broken}
		err := transport.life(c.method)
		if got := strings.Join(transport.tape, "|"); got != c.tape || status.Code(err) != c.code {
			t.Errorf("%s: %s, %v; want %s, %v", c.name, got, err, c.tape, c.code)
		}
	}
}

// TestWhatATransportKnows: the handler of a method gets the client's metadata and address from the transport.
func TestWhatATransportKnows(t *testing.T) {
	transport := &taped{metadata: map[string][]string{"user-agent": {"a", "b"}}}
	var got []string
	err := transport.life(UnaryCall("GetSession", func(_ context.Context, _ *spannerpb.GetSessionRequest, c *Call) (*spannerpb.Session, error) {
		got = []string{c.Metadata("user-agent"), c.Metadata("none"), c.Peer()}
		return &spannerpb.Session{}, nil
	}))
	if want := []string{"a b", "", "10.0.0.1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
