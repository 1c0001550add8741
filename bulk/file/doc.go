// Package file reads and writes the files of package bulk: text (CSV and TPC-H's .tbl), JSON lines, Apache Parquet, Apache Arrow's IPC files and Apache
// Avro's container files.
//
// Text is parsed from its bytes into columns by a parser of our own, without an object for a row or a value in between. Segments of a text file are ranges
// of bytes that begin at a row. A row of CSV may have line ends within quotes: where files are cut, the quotes before a cut are counted first, which tells whether it is
// within quotes. So in CSV a quote must stand around a field, or twice within one; a file with quotes that stand elsewhere is refused where they stand, and read
// with TextOptions.NoQuotes. In TBL a line end is the end of a row; \n, \| and \\ stand for the characters themselves, as other databases write them, and \N for NULL.
// In CSV a field without anything in it is NULL, and "" is the empty string. ARRAYs are JSON.
//
// Malformed text is an error that names file and line, or with Options.Reject a row that is left out. Malformed files of the other formats are
// errors that name the file and end the reading of it: no panic of a library leaves this package.
//
// Imports of this module: arrowmessage, arrowtype, bulk.
package file
