// Package retrieval compares all ways to read a whole table: the official Go client, clients of our own, Flight SQL,
// files, other databases, and libraries of Java and Python. It also measures how many streams a server can have open.
//
// Imports of this module: bench, bench/harness, bench/report, bench/studies, bench/tpch, bulk, bulk/file.
package retrieval
