// Package operators has GoogleSQL's operators on numbers, bits and truth values, comparisons, and conditional
// expressions. Kernels compute the most frequent operators for many rows in one loop.
//
// Imports of this module: sql/fn, sql/tree, usererror, value.
package operators
