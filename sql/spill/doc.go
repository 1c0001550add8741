// Package spill stores rows in temporary files when a statement cannot hold them within its share of memory.
//
// A File belongs to one execution of a statement. It is divided into blocks. Each list of rows in it (a sorted run, a
// partition, a named subquery) is a list of blocks, so that a statement opens only one file for all of its lists. A
// block is reused after it has been read for the last time.
//
//	block    checksum (4 bytes: CRC-32C of all bytes after it, big endian), up to 65,532 bytes of rows
//	row      length (uvarint), then each value as value.AppendElement encodes it
//
// A row may begin in one block and end in another.
//
// The package guarantees three things. Open removes the files of earlier processes, even of those that crashed. All
// files together take at most half of the space that would be free on the disk without them, so that queries cannot
// stop commits. A read returns the bytes that were written, or an error.
//
// Files are not durable (nothing is synced) and not compressed. Only one goroutine may use a File.
//
// Imports of this module: usererror, value.
package spill
