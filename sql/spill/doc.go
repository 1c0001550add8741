// Package spill keeps rows in temporary files, if a statement cannot keep them
// within its share of memory.
//
// A File belongs to one execution of a statement. It is divided into blocks. Each
// list of rows in it (a sorted run, a partition, a named subquery) is a list of
// blocks, so that a statement opens one file however many lists it makes. A block
// that has been read for the last time is used again.
//
//	block    checksum (4 bytes: CRC-32C of the rest, big endian), up to 65,532 bytes of rows
//	row      length (uvarint), then each value as an element of value/row.go
//
// A row may begin in one block and end in another.
//
// The package promises three things. When a Dir is opened, the files of earlier
// processes are gone, however these ended. All files together take at most half of
// the space that the disk would have without them, so that queries cannot stop
// commits. A read returns the bytes that were written, or an error.
//
// It leaves out durability (nothing is synced) and compression. Only one goroutine may use a File.
//
// Imports of this module: usererror, value.
package spill
