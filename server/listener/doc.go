// Package listener decides whom a listener serves: how many connections (connections.go), and requests from which web pages
// (origin.go). Both transports use it, each with the replies of its protocol.
//
// Imports of this module: usererror.
package listener
