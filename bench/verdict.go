package bench

// The verdicts on a figure.
const (
	met         = "met"          // the whole interval lies within the target
	missed      = "missed"       // none of it does
	inNoise     = "in the noise" // some of it does, or there were too few turns for an interval
	notMeasured = "not measured" // the interval of a ratio spans a factor of widestRatio or more
)

// widestRatio is the factor from the lower to the upper end of an interval from which on a ratio says nothing.
const widestRatio = 10

// judge compares the interval of a figure with a target, which the figure shall not exceed, or not fall below if atLeast.
func judge(s *Spread, target float64, atLeast bool) string {
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
	return missed
}

// tooWide says whether the interval of a ratio spans a factor of widestRatio or more.
func (s *Spread) tooWide() bool { return s != nil && s.Turns > 1 && s.High >= widestRatio*s.Low }

// exactly is the spread of a count, which has no noise.
func exactly(v float64) *Spread { return &Spread{Median: v, Low: v, High: v, Turns: 1, Confidence: 1} }
