package server

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// A gateway serves the services over HTTP with JSON, as their google.api.http
// annotations say. It calls the same methods as gRPC does. A streamed reply is a JSON array.
type gateway struct {
	server    *Server
	routes    []*route
	observing map[string]http.HandlerFunc // by path: what is not the API
}

func newGateway(s *Server, services []service) *gateway {
	g := &gateway{server: s, observing: s.observing()}
	for _, sv := range services {
		d := serviceDescriptor(sv.name)
		for i := range sv.methods {
			m := &sv.methods[i]
			g.routes = append(g.routes, routesOf(m, d.Methods().ByName(protoreflect.Name(m.name)))...)
		}
	}
	return g
}

// serviceDescriptor finds a service among the protos that are linked in.
func serviceDescriptor(name string) protoreflect.ServiceDescriptor {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		panic("service " + name + " is not linked in: " + err.Error())
	}
	return d.(protoreflect.ServiceDescriptor)
}

// ServeHTTP implements http.Handler.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if observe := g.observing[r.URL.Path]; observe != nil {
		observe(w, r)
		return
	}
	route, values := g.route(r)
	if route == nil {
		g.fail(w, usererror.NoRoute(r.Method, r.URL.Path))
		return
	}
	e := g.server.newExecution(route.method)
	e.timing = httpTiming{w.Header(), route.method.stream != nil}
	e.open(0)
	body := &countedBody{ReadCloser: r.Body}
	r.Body = body
	err := decodeHTTP(route, values, r, e.request)
	e.received = body.read
	switch {
	case err != nil:
		g.answer(w, e, nil, err)
	case route.method.stream != nil:
		g.serveStream(w, r, route, e)
	default:
		data, err := g.call(r, route, e)
		g.answer(w, e, data, err)
	}
}

// A countedBody is the body of a request that counts how much of it is read.
type countedBody struct {
	io.ReadCloser
	read int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, err
}

// call runs a unary method and encodes its reply, which is part of the execution.
func (g *gateway) call(r *http.Request, route *route, e *execution) ([]byte, error) {
	reply, err := g.server.call(r.Context(), e)
	if err != nil {
		return nil, err
	}
	return encodeReply(route, reply)
}

// answer ends a unary execution and sends its reply, or its error.
func (g *gateway) answer(w http.ResponseWriter, e *execution, data []byte, err error) {
	status := http.StatusOK
	if err != nil {
		st, _ := statusOf(err)
		status, data = httpStatus(st.Code()), errorBody(err)
	}
	e.sent = int64(len(data) + 1)
	e.end(err)
	g.write(w, status, data)
}

// route finds the binding of a request. Bindings with a suffix go first, since a variable may hold a colon.
func (g *gateway) route(r *http.Request) (found *route, values []string) {
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

// write sends a reply that is all there.
func (g *gateway) write(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	if _, err := w.Write(append(data, '\n')); err != nil {
		g.server.cfg.Log.Debug("client is gone", slog.Any("error", err))
	}
}

// encodeReply makes JSON of a reply, which may be a frame.
func encodeReply(route *route, reply any) ([]byte, error) {
	m, ok := reply.(proto.Message)
	if !ok {
		t, err := protoregistry.GlobalTypes.FindMessageByName(route.descriptor.Output().FullName())
		if err != nil {
			return nil, err
		}
		m = t.New().Interface()
		if err := reply.(*frame).decode(m); err != nil {
			return nil, err
		}
	}
	return protojson.Marshal(m)
}

// A jsonStream is a sender that writes replies as the elements of a JSON array.
type jsonStream struct {
	w     http.ResponseWriter
	route *route
	begun bool
	sent  int64 // bytes
}

// SendMsg implements sender.
func (j *jsonStream) SendMsg(m any) error {
	data, err := encodeReply(j.route, m)
	if err != nil {
		return err
	}
	lead := []byte(",\n")
	if !j.begun {
		j.begin(http.StatusOK)
		lead = []byte("[")
	}
	n, err := j.w.Write(append(lead, data...))
	j.sent += int64(n)
	if err != nil {
		return ignoreGone(err)
	}
	if f, ok := j.w.(http.Flusher); ok {
		f.Flush()
	}
	return nil
}

func (j *jsonStream) begin(status int) {
	j.begun = true
	j.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	j.w.WriteHeader(status)
}

// serveStream answers with an array; an error after its first element is an element of its own.
func (g *gateway) serveStream(w http.ResponseWriter, r *http.Request, route *route, e *execution) {
	j := &jsonStream{w: w, route: route}
	err := g.server.serve(r.Context(), e, j)
	closing := j.closing(err)
	e.sent = j.sent + int64(len(closing))
	e.end(err)
	if !j.begun {
		j.begin(httpStatus(codeOf(err)))
	}
	io.WriteString(w, closing)
}

// closing is the end of the array.
func (j *jsonStream) closing(err error) string {
	text := "]\n"
	if err != nil {
		text = string(errorBody(err)) + text
	}
	switch {
	case !j.begun:
		text = "[" + text
	case err != nil:
		text = ",\n" + text
	}
	return text
}

// fail answers a request that is no method's.
func (g *gateway) fail(w http.ResponseWriter, err error) {
	st, _ := statusOf(err)
	g.write(w, httpStatus(st.Code()), errorBody(err))
}

// errorBody is an error in the form of Google's APIs: {"error": {"code", "message", "status", "details"}}.
func errorBody(err error) []byte {
	st, _ := statusOf(err)
	type body struct {
		Code    int               `json:"code"`
		Message string            `json:"message"`
		Status  string            `json:"status"`
		Details []json.RawMessage `json:"details,omitempty"`
	}
	b := body{Code: httpStatus(st.Code()), Message: st.Message(), Status: code.Code(st.Code()).String()}
	for _, d := range st.Proto().GetDetails() {
		if detail, err := protojson.Marshal(d); err == nil {
			b.Details = append(b.Details, detail)
		}
	}
	data, jsonErr := json.Marshal(map[string]body{"error": b})
	if jsonErr != nil {
		return []byte(`{"error":{"code":500,"message":"An internal error occurred.","status":"INTERNAL"}}`)
	}
	return data
}

// ignoreGone is a write error as the end of the call: the client went away and nobody is left to be told.
func ignoreGone(err error) error {
	if err != nil {
		return status.Error(codes.Canceled, "the client went away")
	}
	return nil
}

// httpStatus is what https://cloud.google.com/apis/design/errors#handling_errors maps a code to.
func httpStatus(c codes.Code) int {
	switch c {
	case codes.OK:
		return http.StatusOK
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.NotFound:
		return http.StatusNotFound
	case codes.Aborted, codes.AlreadyExists:
		return http.StatusConflict
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Canceled:
		return 499
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// readBody reads the body of a request of permitted size.
func readBody(r *http.Request, limit int) ([]byte, error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, usererror.UndecodableRequest("The request body is not valid gzip.")
		}
		body = unzipped
	}
	data, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	switch {
	case err != nil && errors.Is(r.Context().Err(), context.Canceled):
		return nil, context.Canceled
	case err != nil:
		return nil, usererror.UndecodableRequest("The request body could not be read.")
	case len(data) > limit:
		return nil, usererror.RequestTooLarge(limit)
	}
	return data, nil
}
