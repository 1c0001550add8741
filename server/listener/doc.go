// Package listener decides whom a listener serves: how many connections (connections.go), and web pages of which
// origins (origin.go). The gRPC and the HTTP listener both use it, and send the refusals in their own protocols.
//
// Imports of this module: usererror.
package listener
