// Package endtoend tests a whole server through the official Go client: contention, large rows, memory, spilling, row
// deletion policies, split points and the client's metrics. The server runs in the process of the test. The package has
// only tests. Package formats below it has the data directories of all released formats.
//
// Imports of this module: nothing.
package endtoend
