// Package endtoend tests a whole server through the official Go client: contention, large rows, memory, spilling, row
// deletion policies, split points and the client's metrics. The server runs in the process of the test. Package formats
// below it keeps the data directories of all released formats. The package has nothing but tests.
//
// Imports of this module: nothing.
package endtoend
