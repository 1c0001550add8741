// Package plan turns a resolved statement into a physical plan. The plan decides which index to read in which key
// ranges, how to join tables, and where to sort rows.
//
// A statement passes through these steps. The code of each step is in the file of the same name. Two parts of the
// rewrite step have files of their own: fold.go folds constants, and subquery.go makes joins from subqueries.
//
//	lower     tree.Scan        → relation (the logical plan, an algebra of its own)
//	rewrite   relation         → relation (filters move down, subqueries become joins, constants are folded)
//	access    filter over scan → seeks of a table or an index
//	join      relations joined → order and method of the joins
//	barrier   a view           → what may move below it, and what stays above
//	physical  relation         → Node; columns become slots of flat rows
//	keyread   Node             → Plan.Read, if the whole plan is one key read
//
// All steps keep one rule: an expression that can fail does not move down into a view with definer's rights
// (barrier.go). Rewrites that push conditions down first check them with the function leakproof. The ordering of joins
// treats such a view as one relation.
//
// A Plan depends on the statement and the catalog, never on the values of parameters: the bounds of a seek are
// expressions that each run computes. A Plan is immutable once built, so many goroutines can run it at once.
//
// The planner has no statistics: it guesses costs from keys and conditions alone. It plans for one server. The
// Distributed Union in a printed plan only marks where a query could be divided into partitions.
//
// Imports of this module: schema, sql/fn, sql/fn/conversion, sql/fn/library, sql/fn/protobuf, sql/fn/utility, sql/tree, usererror, value.
package plan
