// Package formats has a data directory of every released format of the store. Its folder testdata has, for each format,
// the packed directory (tgz), and the schema and rows that a client read from it (txt). Its test opens each directory
// with this release. The command in folder write adds a directory when a release is made.
//
// Imports of this module: kv.
package formats
