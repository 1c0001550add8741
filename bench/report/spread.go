package report

import (
	"fmt"
	"math"
	"slices"
)

// Spread describes how much a ratio differs from turn to turn. It consists of the median over the turns and an
// interval around the median. Both ends of the interval are order statistics. For every distribution, the interval
// contains the true median with a probability of at least 95%. It is the interval of the sign test (W. J. Conover,
// Practical Nonparametric Statistics, 3.2). Fewer than six turns are too few for 95%. The interval then goes from the
// smallest to the largest value, and Confidence is the probability that it contains the true median.
type Spread struct {
	Median     float64 `json:"median"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Turns      int     `json:"turns"`
	Confidence float64 `json:"confidence"` // probability that the true median lies from Low to High
}

// wantedConfidence is the probability with which an interval should contain the true median.
const wantedConfidence = 0.95

// SpreadOf computes the spread of values, one for each turn. It returns nil if there are no values.
func SpreadOf(values []float64) *Spread {
	n := len(values)
	if n == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	s := &Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Turns: n}
	rank := 1
	for confidenceOf(n, rank+1) >= wantedConfidence {
		rank++
	}
	s.Low, s.High, s.Confidence = sorted[rank-1], sorted[n-rank], max(0, confidenceOf(n, rank))
	return s
}

// confidenceOf returns the probability that the median of a distribution lies between the rank-th smallest and the
// rank-th largest of n independent values. It is 1 - 2 P(fewer than rank of n fair coins show heads).
func confidenceOf(n, rank int) float64 {
	below, term := 0.0, math.Pow(0.5, float64(n)) // term is C(n, i) / 2^n
	for i := range rank {
		below += term
		term *= float64(n-i) / float64(i+1)
	}
	return 1 - 2*below
}

// sure reports whether there were enough turns for an interval with a confidence of 95%.
func (s *Spread) sure() bool { return s != nil && s.Confidence >= wantedConfidence }

// text formats the median and the interval.
func (s *Spread) text() string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", s.Median, s.Low, s.High)
}

// spreadLegend explains the columns "over turns".
func spreadLegend(rounds int) string {
	text := "over turns: median of the ratios of the turns, [interval] that holds it with 95% (order statistics)"
	if c := confidenceOf(rounds, 1); c < wantedConfidence {
		text = fmt.Sprintf("over turns: median of the ratios of the turns, [smallest, largest]: %s are too few for an interval of 95%%", Plural(rounds, "turn"))
	}
	return text
}

// spreadAlone returns the spread of the metric over a measure's turns.
func (k Metric) spreadAlone(m *Measure) *Spread {
	var values []float64
	for _, t := range m.Turns {
		if v := t.of(k); v != nil {
			values = append(values, *v)
		}
	}
	return SpreadOf(values)
}

// spreadOf compares two measures turn by turn. It pairs turns with the same number. If the measures took turns with
// each other, such turns also lie close together in time.
func (k Metric) spreadOf(left, right *Measure) *Spread {
	var values []float64
	for i := range min(len(left.Turns), len(right.Turns)) {
		l, r := left.Turns[i].of(k), right.Turns[i].of(k)
		if v := k.Compare(l, r); v != nil {
			values = append(values, *v)
		}
	}
	return SpreadOf(values)
}
