// Package transfer moves many rows. Import copies rows from a source into a table. Export copies rows from a database
// into files, and OpenFolder says what an import of these files must do. If Import or Export is started again after
// its process was killed, it continues where it stopped. Both report what is done and what is not. Both work with any
// Spanner endpoint, through the official client.
//
// An import writes mutations, with many rows in a commit and several commits at once. A commit is all or nothing. With
// the default mode InsertOrUpdate, sending a row twice has the same effect as sending it once. So an import that
// continues after its process was killed sends all rows again that may not have been committed. With Insert, a row
// whose key is already in the table is a bad row. When an import with Insert continues, it looks for the rows that it
// had sent before, and counts those that are in the table as its own. In both modes, when an import finishes, each row
// of its source is in the table or among the rejected rows.
//
// Imports of this module: arrowtype, avrotype, bulk, bulk/file.
package transfer
