// Package memory has the memory budget that the requests of a server share. Each request charges the memory that it keeps to an account of the
// budget (budget.go, account.go). A request for which there is no room waits a moment and is then refused with RESOURCE_EXHAUSTED. So many large
// requests at once do not take more memory than the process may have.
//
// The package also finds out how much memory the machine or container has (machine_linux.go), and divides the memory of the process into
// parts (parts.go).
//
// It promises that an account below FreeBytes uses no data that requests share, that small accounts find room while large ones have taken the
// rest, and that no request waits longer than MaxWait. It leaves out how much memory each kind of work needs: the packages that do the work
// charge it.
//
// Imports of this module: nothing.
package memory
