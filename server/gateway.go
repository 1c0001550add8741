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

	"github.com/crowfoot-db/crowfoot/fault"
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
		g.fail(w, fault.NoRoute(r.Method, r.URL.Path))
		return
	}
	e := g.server.newExecution(route.method)
	e.timing = httpTiming{w.Header(), route.method.stream != nil}
	e.open(max(int(r.ContentLength), 0))
	if err := decodeHTTP(route, values, r, e.request); err != nil {
		e.end(err)
		g.fail(w, err)
		return
	}
	if route.method.stream != nil {
		g.serveStream(w, r, route, e)
		return
	}
	reply, err := g.server.call(r.Context(), e)
	e.end(err)
	if err == nil {
		err = g.write(w, route, reply)
	}
	if err != nil {
		g.fail(w, err)
	}
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

// write sends a unary reply.
func (g *gateway) write(w http.ResponseWriter, route *route, reply any) error {
	data, err := encodeReply(route, reply)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_, err = w.Write(append(data, '\n'))
	return ignoreGone(err)
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
	if _, err := j.w.Write(append(lead, data...)); err != nil {
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
	e.end(err)
	lead := ",\n"
	switch {
	case err == nil && j.begun:
		io.WriteString(w, "]\n")
		return
	case err == nil:
		j.begin(http.StatusOK)
		io.WriteString(w, "[]\n")
		return
	case !j.begun:
		st, _ := statusOf(err)
		j.begin(httpStatus(st.Code()))
		lead = "["
	}
	w.Write(append(append([]byte(lead), errorBody(err)...), "]\n"...))
}

// fail answers with an error.
func (g *gateway) fail(w http.ResponseWriter, err error) {
	st, _ := statusOf(err)
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(httpStatus(st.Code()))
	if _, err := w.Write(append(errorBody(err), '\n')); err != nil {
		g.server.cfg.Log.Debug("client is gone", slog.Any("error", err))
	}
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
			return nil, fault.UndecodableRequest("The request body is not valid gzip.")
		}
		body = unzipped
	}
	data, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	switch {
	case err != nil && errors.Is(r.Context().Err(), context.Canceled):
		return nil, context.Canceled
	case err != nil:
		return nil, fault.UndecodableRequest("The request body could not be read.")
	case len(data) > limit:
		return nil, fault.RequestTooLarge(limit)
	}
	return data, nil
}
