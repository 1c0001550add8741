// Package arrowmessage reads Apache Arrow's messages, of streams and of files, that come from outside
// (https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc). Arrow's own reader believes what a message says of itself:
// it makes room for as many children, buffers and bytes as are claimed, and looks at offsets only when a value is taken. Here every number is compared with the bytes
// that are there before anything is made by it:
//
//	flatbuffer.go   the metadata: tables, vectors and strings lie within it, and are not referred to again and again
//	schema.go       columns: types that Crowfoot reads, of widths, precisions and scales that exist
//	batch.go        arrays: lengths, bitmaps, offsets, views and indices lead to values that are there
//	compression.go  buffers: what they are to become is charged before it is made, and is then what comes out
//	decoder.go      a stream: its schema, dictionaries and batches
//	file.go         a file: its footer, and the messages that it names
//
// It promises that a batch can be read without a check: no value of it is out of bounds. (That a text is UTF-8 is not looked at.) What it takes beside the messages
// themselves is charged to its caller, before it is taken; it works through a message once, whatever the message says. What is wrong with a message is a *FormatError.
//
// It leaves out unions and run-end encoded columns, for which Spanner has no types, and messages of other than little-endian machines.
//
// Imports of this module: nothing.
package arrowmessage
