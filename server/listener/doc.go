// Package listener says whom a listener lets in: how many connections it holds (connections.go), and requests from
// which web pages it answers (origin.go). Both transports ask it, each in the words of its protocol.
//
// Imports of this module: usererror.
package listener
