package rest

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A Gateway serves the services of a dispatcher over HTTP with JSON. It calls the same methods as gRPC. A streamed
// reply is a JSON array.
type Gateway struct {
	dispatcher *rpc.Dispatcher
	routes     []*route
	others     map[string]http.HandlerFunc
	log        *slog.Logger
}

// NewGateway returns the gateway of a dispatcher. others holds, by path, handlers for requests that are not requests of
// the API.
func NewGateway(d *rpc.Dispatcher, others map[string]http.HandlerFunc, log *slog.Logger) *Gateway {
	g := &Gateway{dispatcher: d, others: others, log: log}
	for i := range d.Services {
		s := &d.Services[i]
		methods := s.Descriptor().Methods()
		for j := range s.Methods {
			m := &s.Methods[j]
			g.routes = append(g.routes, routesOf(m, methods.ByName(protoreflect.Name(m.Name)))...)
		}
	}
	return g
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if handler := g.others[r.URL.Path]; handler != nil {
		handler(w, r)
		return
	}
	found, values := g.route(r)
	if found == nil {
		Refuse(w, usererror.NoRoute(r.Method, r.URL.Path))
		return
	}
	t := newTransport(w, r, found)
	g.dispatcher.Begin(&t.call, found.method, t)
	body, err := t.readBody(rpc.MaxBytes(t.call.Request))
	t.call.Received(int(t.body.read))
	if err == nil {
		err = t.call.Memory.Grow(r.Context(), jsonBytes(body))
	}
	if err == nil {
		err = decodeRequest(found, values, r, body, t.call.Request)
	}
	if found.method.Streaming && err == nil {
		g.serveStream(t)
		return
	}
	g.serveUnary(t, err)
}

// route finds the binding whose pattern matches the request, and the values of its variables. A binding with a suffix,
// such as :commit, wins over one without, because the value of a variable may contain a colon too.
func (g *Gateway) route(r *http.Request) (found *route, values []string) {
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for _, candidate := range g.routes {
		if candidate.verb != r.Method || (found != nil && candidate.suffix == "") {
			continue
		}
		if v, ok := candidate.match(path); ok {
			found, values = candidate, v
			if found.suffix != "" {
				break
			}
		}
	}
	return found, values
}

// serveUnary runs a call and replies with its only message or its error. If refusal is not nil, serveUnary replies with
// refusal and does not run the call. It encodes the reply before the call ends, so that the time of encoding belongs to
// the call.
func (g *Gateway) serveUnary(t *transport, refusal error) {
	data, err := []byte(nil), refusal
	if err == nil {
		var reply any
		if reply, err = t.run(); err == nil {
			data, err = t.encode(reply)
		}
	}
	if err != nil {
		data = errorBody(err)
	}
	t.call.Cost.Wire.Sent = int64(len(data) + 1)
	t.call.End(err)
	g.write(t.reply, HTTPStatus(err), data)
}

// run runs the call. If the call fails because the server is stopping, run returns the error for users that says so.
// This error is the cause with which the server has ended the context.
func (t *transport) run() (any, error) {
	ctx := t.request.Context()
	reply, err := t.call.Run(ctx)
	if err == nil {
		return reply, nil
	}
	if cause, ok := usererror.As(context.Cause(ctx)); ok {
		return nil, cause
	}
	return nil, err
}

// serveStream runs a streaming call. The reply is a JSON array.
func (g *Gateway) serveStream(t *transport) {
	_, err := t.run()
	closing := t.closing(err)
	t.call.Cost.Wire.Sent = t.sent + int64(len(closing))
	t.call.End(err)
	if !t.begun {
		t.begin(HTTPStatus(err))
	}
	if _, err := t.reply.Write([]byte(closing)); err != nil {
		g.log.Debug("client is gone", slog.Any("error", err))
	}
}

// write sends a reply that is a single JSON value.
func (g *Gateway) write(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	if _, err := w.Write(append(data, '\n')); err != nil {
		g.log.Debug("client is gone", slog.Any("error", err))
	}
}

// Refuse replies with err to a request for which no method was called.
func Refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(HTTPStatus(err))
	_, _ = w.Write(append(errorBody(err), '\n')) // fails if the client has disconnected
}
