// Package transfer moves many rows. Import copies rows from a source into a table, and Export from a database into files. OpenFolder says what an
// import of such files must do. Import and Export continue where they were when they are started again after a kill, and report what is done and
// what is not. They work on any Spanner endpoint, through the official client.
//
// An import writes mutations, with many rows in a commit and several commits at once. A commit is all or nothing. With the default mode
// InsertOrUpdate, sending a row twice has the same effect as sending it once. So an import that continues after a kill sends all rows again that
// may not have been committed. With Insert, a row whose key is already in the table is a bad row. When such an import continues, it finds the
// rows that it had sent before the kill, and counts those in the table as its own. In both modes, when an import finishes, each row of its source
// is in the table or among the rejected rows.
//
// Imports of this module: arrowtype, bulk, bulk/file.
package transfer
