// Package cpu measures the CPU time of executions by the clocks of threads (Meter),
// adds it up for the process, and deals out what no execution is measured for (Account).
//
// Imports of this module: stats/stripe.
package cpu
