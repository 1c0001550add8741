package report

import "fmt"

// headlines returns a sentence for each study that the run has repeated. The sentence compares the study's result with
// ours.
func (r *Report) headlines() (list []string) {
	for _, name := range r.Benchmarks {
		study := r.Studies[name]
		if study == nil || study.Sentence == "" {
			continue
		}
		var published, ours span
		for _, f := range r.Figures {
			// The study used one number of clients, which is the first number in the settings. Figures at other numbers
			// of clients cannot be compared with the study.
			if f.Benchmark != name || !f.Summed || f.Ours == nil || f.Study == nil || f.Clients != r.Settings.Clients[0] || f.Verdict() == notMeasured {
				continue
			}
			published.add(*f.Study)
			if f.Spread.sure() {
				ours.add(f.Spread.Median)
			} else {
				ours.add(*f.Ours)
			}
		}
		if ours.n > 0 {
			list = append(list, fmt.Sprintf(study.Sentence, published.text(), ours.text())+r.network())
		}
	}
	return list
}

// network returns a sentence about the delay that the run adds between client and server; "" if it adds none.
func (r *Report) network() string {
	if r.Settings.RTT == 0 {
		return ""
	}
	return fmt.Sprintf(" The round trip between client and server takes %v more than on one machine.", r.Settings.RTT)
}

// span is the range of n values, given by the smallest and the largest.
type span struct {
	low, high float64
	n         int
}

func (s *span) add(v float64) {
	if s.n == 0 {
		s.low, s.high = v, v
	}
	s.low, s.high, s.n = min(s.low, v), max(s.high, v), s.n+1
}

func (s span) text() string {
	low, high := fmt.Sprintf("%.2f", s.low), fmt.Sprintf("%.2f", s.high)
	if low == high {
		return low
	}
	return low + " to " + high
}
