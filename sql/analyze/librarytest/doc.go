// Package librarytest checks the source of GoogleSQL's library without linking it. sql/analyze uses unexported
// functions and a variable of the library through go:linkname. When a new version of the library renames one of them,
// every program and test that contains sql/analyze fails to link with "relocation target ... not defined". The tests
// here do not import sql/analyze, so they still run, and tell what has changed and what to do.
//
// Imports of this module: nothing.
package librarytest
