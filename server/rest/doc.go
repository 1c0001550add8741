// Package rest serves the services of a dispatcher over HTTP with JSON, according to their google.api.http annotations.
// It finds the route of a request (route.go), and decodes its body, query and path into a message (transcode.go). It
// describes errors of a request's JSON as Google's APIs do (jsoncheck.go), and sends the reply (gateway.go,
// transport.go, status.go).
//
// Imports of this module: server/listener, server/rpc, server/status, usererror.
package rest
