// Package grpc serves the services of a dispatcher over gRPC, and is the only package of the server that knows gRPC's library: service
// descriptors and a request's way through them (service.go), the transport of one request (transport.go), the codec by which
// encoded rows reach the wire as they are (codec.go), the frames of a connection on their way to the library (inbound.go), the charge for
// messages before they arrive (upload.go) and for what the library holds of headers and replies (holding.go), gRPC's own
// services, health and reflection (health.go), and the options of the listener (server.go).
//
// Imports of this module: memory, server/listener, server/rpc, server/status, usererror.
package grpc
