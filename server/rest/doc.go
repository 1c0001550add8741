// Package rest serves the services of a dispatcher over HTTP with JSON, as their google.api.http annotations say: routes (route.go), a
// request's body, query and path into its message (transcode.go), what is wrong with JSON in the words of Google's APIs (jsoncheck.go),
// and the way of the reply (gateway.go, transport.go, status.go).
//
// Imports of this module: server/listener, server/rpc, server/status, usererror.
package rest
