package report

// The verdicts on a figure.
const (
	met         = "met"          // the whole interval meets the target
	Missed      = "missed"       // no part of the interval meets the target
	inNoise     = "in the noise" // a part of the interval meets the target, or there were too few turns for an interval
	notMeasured = "not measured" // the interval of a ratio spans a factor of widestRatio or more
)

// widestRatio limits the width of a ratio's interval. If the upper end is at least that many times the lower end, the
// ratio counts as not measured.
const widestRatio = 10

// Judge returns the verdict on a figure with the spread s. If atLeast is set, the target is a minimum, otherwise a
// maximum.
func Judge(s *Spread, target float64, atLeast bool) string {
	if !s.sure() {
		return inNoise
	}
	best, worst := s.Low, s.High
	if atLeast {
		best, worst = worst, best
	}
	within := func(v float64) bool { return v == target || v < target == !atLeast }
	switch {
	case within(worst):
		return met
	case within(best):
		return inNoise
	}
	return Missed
}

// tooWide reports whether the interval of a ratio spans a factor of widestRatio or more.
func (s *Spread) tooWide() bool { return s != nil && s.Turns > 1 && s.High >= widestRatio*s.Low }

// Exactly returns the spread of a count. Both ends of its interval are the value v, because counts have no noise.
func Exactly(v float64) *Spread { return &Spread{Median: v, Low: v, High: v, Turns: 1, Confidence: 1} }
