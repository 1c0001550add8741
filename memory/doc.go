// Package memory has the memory budget that the requests of a server share. Each request charges the memory that it
// takes to an account of the budget (budget.go, account.go). If the budget does not have the memory, the request waits
// for a short time and is then refused with RESOURCE_EXHAUSTED. Thus the process does not exceed its memory even when
// many large requests run at once.
//
// The package also finds out how much memory the machine or container has (machine_linux.go), and divides the memory of
// the process among its uses (parts.go).
//
// The package promises that requests contend for no shared data while their accounts hold at most FreeBytes, that small
// accounts get memory when large ones have taken all that they may take, and that no request waits longer than MaxWait.
// Other packages decide how much memory they charge for their work.
//
// Imports of this module: nothing.
package memory
