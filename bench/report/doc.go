// Package report holds the results of a run and shows them: as text, as a page and as JSON.
//
// It owns measures, their comparisons with published figures and targets, the spread of a comparison over the turns and
// the verdict on it. It knows no benchmark: the tables and figures of one come from outside.
//
// Imports of this module: bench.
package report
