// Package memory is the budget of memory that the requests of a server share: what each of them keeps in memory is charged to an account of
// the budget (budget.go, account.go), and one for which there is no room waits a moment and is then refused with RESOURCE_EXHAUSTED. So many
// large requests at once do not take more memory than the process may have.
//
// The package also knows how much memory the machine or container has (machine_linux.go), and divides what the process may take into
// parts (parts.go).
//
// It promises that an account below FreeBytes touches nothing that requests share, that small accounts find room while large ones have
// taken the rest, and that no request waits longer than MaxWait. It leaves out what each kind of work takes: the packages that do
// the work charge it.
//
// Imports of this module: usererror.
package memory
