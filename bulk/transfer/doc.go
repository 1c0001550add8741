// Package transfer moves many rows: Import from a source into a table, Export from a database into files, and OpenFolder tells what an import of such files has to do. Import and Export go on where
// they were when they are started again after a kill, and say what is in and what is not. They work on any Spanner endpoint, through the official client.
//
// An import writes with mutations, many rows a commit and several commits at once. A commit is all or nothing. With the mode InsertOrUpdate, the default, a row that is
// sent twice is the same row, so an import that goes on after a kill sends again what may not have been committed: each row is in at least once, which is once.
// With Insert a row whose key is there already is a bad row; when such an import goes on, rows that were on their way when it was killed and are there are
// taken as its own. So either way a finished import has each row of its source in the table or among the rejected.
//
// Imports of this module: arrowtype, bulk, bulk/file.
package transfer
