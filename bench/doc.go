// Package bench re-runs published comparisons of access paths with the official
// Go client, against a server in a process of its own or any endpoint that speaks
// Cloud Spanner's API, and runs workloads from a user's files the same way.
//
// It owns how things are compared and shown. A benchmark is a list of experiments;
// an experiment is a list of paths, ways to the same result, that take turns in
// rounds, A B A B, so that a noisy machine is fair to all:
//
//	Run          opens the target, prepares, measures, reports
//	  Benchmark  Access, Writes, Points, Own: each lists its experiments
//	  load       clients that repeat one operation, in a closed or an open loop
//	  screen     what is seen meanwhile
//	  Report     what was seen: as text, as a page, as JSON
//
// It promises that a run that fails or is interrupted still reports what it had
// seen, marked as partial.
//
// It leaves out what only the server knows: the server's CPU comes from the
// operating system if its process is on this machine, else from SPANNER_SYS, else
// nobody knows it and the report says so.
//
// Imports of this module: nothing.
package bench
