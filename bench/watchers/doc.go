// Package watchers measures package watch: when changes are delivered, and whether any is lost or delivered twice. It also
// measures what a change stream costs the commits of its table.
//
// Imports of this module: bench, bench/harness, bench/report, resultset, watch.
package watchers
