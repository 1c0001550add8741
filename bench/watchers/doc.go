// Package watchers measures package watch: when changes are delivered, and whether any is lost or delivered twice. It
// also measures how much more expensive the commits to a table are if a change stream watches it.
//
// Imports of this module: bench, bench/harness, bench/report, resultset, watch.
package watchers
