// Package crossings is a random test of all features together. Wrong answers lie where two features meet that were tested apart; so one run draws schemas,
// writes, schema changes, and what happens to time, process and disk, and compares every reading with a plain model (model_test.go). A feature is a record
// (feature_test.go), which says how it takes part; the test counts which two have met in a reading. The package has nothing but the test.
//
// Imports of this module: nothing.
package crossings
