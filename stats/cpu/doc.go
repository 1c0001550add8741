// Package cpu measures the CPU time of executions by the clocks of threads (Meter). It adds up this time for the whole
// process, and shares out the remaining CPU time of the process among the executions (Account).
//
// Imports of this module: stats/stripe.
package cpu
