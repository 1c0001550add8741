package schema

import (
	"math"
	"testing"
	"time"
)

// TestRowDeletionLimit checks that Limit counts a day as 24 hours in any time zone, and that no number of days
// overflows.
func TestRowDeletionLimit(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2030, 3, 11, 12, 0, 0, 0, zone) // a day after daylight saving time began
	for days, want := range map[int64]time.Time{
		0:  now,
		2:  now.Add(-48 * time.Hour),
		30: now.Add(-30 * 24 * time.Hour),
	} {
		if got := (&RowDeletionPolicy{Days: days}).Limit(now); !got.Equal(want) {
			t.Errorf("%d days: %v, not %v", days, got, want)
		}
	}
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, days := range []int64{maxPolicyDays, math.MaxInt64} {
		if got := (&RowDeletionPolicy{Days: days}).Limit(last); got.After(first) {
			t.Errorf("%d days: rows before %v expire", days, got)
		}
	}
}
