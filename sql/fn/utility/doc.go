// Package utility has GoogleSQL's functions on UUIDs, sequences, hashes, network addresses, compression and
// statistical distributions.
//
// Imports of this module: sql/fn, stats/distribution, usererror, value.
package utility
