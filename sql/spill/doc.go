// Package spill keeps rows in temporary files: those that a statement cannot
// keep within its share of memory.
//
// A File belongs to one execution of a statement. It is parted in blocks, and
// each list of rows in it (a sorted run, a partition, a named subquery) is a list of blocks, so
// that a statement opens one file however many lists it makes. A block that is read for the last
// time is given out again.
//
//	block    checksum (4 bytes: CRC-32C of the rest, big endian), up to 65,532 bytes of rows
//	row      length (uvarint), then each value as an element of value/row.go
//
// A row may begin in one block and end in another.
//
// Promises: the files of a process that has ended, however it ended, are gone when a Dir is opened. All
// files together take at most half of the space that the disk would have without them, so
// that queries cannot stop commits. What was read is what was written, or an error.
//
// What it leaves out: durability (nothing is synced), compression, and use by several goroutines: a File belongs to one.
//
// Imports of this module: usererror, value.
package spill
