//go:build !race

package txn

const raceDetector = false
