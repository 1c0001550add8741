//go:build race

package txn

// raceDetector makes everything some ten times slower, and turns on Pebble's own checks.
const raceDetector = true
