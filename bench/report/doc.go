// Package report holds the results of a run and shows them: as text, as a page and as JSON.
//
// It holds measures, compares them with published figures and with targets, and computes the spread of a comparison
// over the turns and a verdict. It does not know the benchmarks: each benchmark passes in its own tables and figures.
//
// Imports of this module: bench.
package report
