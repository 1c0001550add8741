// Package crossings is a random test of all features together. Wrong answers come from two features that were tested
// apart. So one run draws schemas, writes, schema changes and events of time, process and disk, and compares every
// reading with a plain model (model_test.go). A feature is a record (feature_test.go) that says how it takes part. The
// test counts the readings in which each pair of features has met. The package has nothing but the test.
//
// Imports of this module: nothing.
package crossings
