// Package grpc serves the services of a dispatcher over gRPC. It is the only package of the server that uses gRPC's
// library. Its files:
//
//   - service.go describes the services to the library, and runs a request from its receipt to its end,
//   - transport.go is the transport of one request,
//   - codec.go writes encoded rows to the wire unchanged,
//   - inbound.go follows the frames of a connection on their way to the library,
//   - upload.go charges for messages before they arrive,
//   - holding.go charges for headers and replies that the library holds in memory,
//   - health.go serves gRPC's own services, health and reflection,
//   - server.go sets the options of the listener.
//
// Imports of this module: memory, server/listener, server/rpc, server/status, usererror.
package grpc
