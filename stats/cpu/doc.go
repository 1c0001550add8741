// Package cpu measures the CPU time of executions by the clocks of threads (Meter). It adds this time up for the process, and
// divides the remaining CPU time of the process among the executions (Account).
//
// Imports of this module: stats/stripe.
package cpu
