// Package arrowmessage reads Apache Arrow's messages from untrusted streams and files
// (https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc). Arrow's own
// reader trusts the numbers in a message: it allocates as many children, buffers and bytes as the message claims, and
// checks offsets only when a value is read. This package compares every number with the bytes that exist before it
// allocates anything of that size. Its files check:
//
//	flatbuffer.go   the metadata: tables, vectors and strings lie within it, and are not shared without limit
//	schema.go       columns: types that Crowfoot reads, with possible widths, precisions and scales
//	batch.go        arrays: lengths, bitmaps, offsets, views and indices refer to existing values
//	compression.go  buffers: decompression yields exactly the size that the buffer claims, which was charged before
//	decoder.go      a stream: its schema, dictionaries and batches
//	file.go         a file: its footer, and the messages to which it refers
//
// The package promises that the values of a batch can be read without further checks, because none is out of bounds.
// (It does not check that texts are UTF-8.) Before it allocates memory in addition to the messages themselves, it
// charges its caller for that memory. A message may refer to the same part of itself several times. The package
// therefore limits how many bytes it reads. In the metadata it reads at most four times as many bytes as the metadata
// have, and in the buffers at most as many bytes as the body has. The error for a bad message is a *FormatError.
//
// The package does not support unions and run-end encoded columns, because Spanner has no types for them. Nor does it
// support messages from machines that are not little-endian.
//
// Imports of this module: nothing.
package arrowmessage
