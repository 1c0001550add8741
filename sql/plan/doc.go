// Package plan turns a resolved statement into a physical plan. The plan decides which index to read in which key ranges, how to join
// tables, and where to sort rows.
//
// A statement passes through these steps, each in the file of its name:
//
//	lower     tree.Scan        → relation (the logical plan: an algebra of its own)
//	rewrite   relation         → relation (filters move down, subqueries become joins, constants fold)
//	access    filter over scan → seeks of a table or an index
//	join      relations joined → order and method of the joins
//	barrier   a view           → what may move below it, and what stays above
//	physical  relation         → Node, columns become slots of flat rows
//	keyread   Node             → Plan.Read, when nothing but a key read is left
//
// All steps keep one rule: an expression that may fail does not move down into a view with definer's rights (barrier.go). Rewrites that
// push conditions down call leakproof first, and join ordering treats such a view as one relation.
//
// A Plan depends on the statement and the catalog, never on the values of parameters: the bounds of a seek are expressions that each run
// computes. A Plan is immutable once built and may be run by many goroutines at once.
//
// What it leaves out: statistics (costs are guessed from keys and predicates
// alone) and distribution (there is one server; Distributed Union in a printed
// plan marks where a partition could be cut).
//
// Imports of this module: schema, sql/fn, sql/fn/conversion, sql/fn/library, sql/fn/protobuf, sql/fn/utility, sql/tree, usererror, value.
package plan
