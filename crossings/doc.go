// Package crossings is a random test of all features together. Wrong answers often come from a combination of two
// features that were only tested separately. So each run makes random schemas, writes and schema changes, and random
// events such as restarts and full disks. It compares every answer with a simple model (model_test.go). Each feature
// has a record (feature_test.go) that says how the feature takes part in the test. For each pair of features, the test
// counts the requests for rows in which both took part. The package contains only this test.
//
// Imports of this module: nothing.
package crossings
