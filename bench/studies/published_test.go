package studies

import (
	"math"
	"testing"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// TestPublished checks the published ratios. Each must follow from the two values that the report prints, and these
// values must be those of the study.
func TestPublished(t *testing.T) {
	s := bench.Defaults()
	figures := append(accessFigures(s), writesFigures(s)...)
	want := map[string]float64{
		"SQL / READ CPU, one key":                             0.155 / 0.149,
		"SQL / READ CPU, range of ten":                        0.305 / 0.169,
		"SQL / READ CPU, ten scattered keys over four splits": 1.532 / (4 * 0.139),
		"SQL CPU: ten scattered keys / one key":               1.532 / 0.155,
		"READ CPU: ten scattered keys / one key":              4 * 0.139 / 0.149,
		"DML / mutation, 1 row per commit":                    12.3 / 3.7,
		"DML / mutation, 4 rows by 4 statements":              50 / 4.6,
	}
	for _, f := range figures {
		got := f.Metric.Compare(report.IfPublished(f.StudyLeft), report.IfPublished(f.StudyRight))
		ratio, ok := want[f.Name]
		if !ok && got == nil {
			continue
		}
		if got == nil || math.Abs(*got-ratio) > 1e-9 || f.Basis == "" {
			t.Errorf("%s: %v, want %.4f, basis %q", f.Name, got, ratio, f.Basis)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}
