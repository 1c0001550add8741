// Package file reads and writes the files of package bulk: text (CSV and TPC-H's .tbl), JSON lines, Apache Parquet,
// Apache Arrow's IPC files and Apache Avro's container files.
//
// A parser of our own converts text to columns, without allocating an object for a row or a value. Segments of a text
// file are ranges of bytes that begin at a row. A row of CSV may have line ends within quotes. When the reader divides
// a file, it counts the quotes before a cut to find out whether the cut is within quotes. To make this possible, a
// quote in CSV must enclose a field, or be doubled within a field. A row with other quotes is an error, and a file with
// such rows must be read with TextOptions.NoQuotes. In CSV an empty field is NULL, and "" is the empty string. In TBL
// each line end ends a row; \n, \| and \\ stand for a line end, a | and a backslash, as in the files of other
// databases, and \N stands for NULL. In both formats, ARRAYs are JSON.
//
// A malformed row of text gives an error that names the file and the line; with Options.Reject, the row is left out
// instead. A malformed file of another format gives an error that names the file, and its reader stops. If a library
// panics, this package returns an error.
//
// Imports of this module: arrowmessage, arrowtype, avrotype, bulk.
package file
