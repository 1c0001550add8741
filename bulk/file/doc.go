// Package file reads and writes the files of package bulk: text (CSV and TPC-H's .tbl), JSON lines, Apache Parquet, Apache Arrow's IPC files and Apache
// Avro's container files.
//
// A parser of our own converts text to columns, without allocating an object for a row or a value. Segments of a text file are ranges of bytes
// that begin at a row. A row of CSV may have line ends within quotes. To divide a file, the reader counts the quotes before a cut, which tells
// whether the cut is within quotes. So in CSV a quote must enclose a field, or be doubled within one. A row with other quotes is an error, and
// its file must be read with TextOptions.NoQuotes. In TBL each line end ends a row. \n, \| and \\ stand for the characters themselves, as in the
// files of other databases, and \N for NULL. In CSV an empty field is NULL, and "" is the empty string. ARRAYs are JSON.
//
// Malformed text is an error that names file and line; with Options.Reject, the row is left out instead. A malformed file of another format is an
// error that names the file, and its reader stops. No panic of a library leaves this package.
//
// Imports of this module: arrowmessage, arrowtype, bulk.
package file
