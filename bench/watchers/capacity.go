package watchers

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

const (
	// A probe is a short run, which lasts 1/probeShare of a full run but at least probePolls polls.
	probeShare = 6
	probePolls = 10
	// leastProbe is the lowest rate at which the first probe may run, in rows per second. The watchers can keep up with
	// it on any machine.
	leastProbe = 500
	// faster is the factor between the rates of two successive probes, as long as the watchers hold the rate, which
	// means that they do not fall behind (Result.Held). Once the watchers have not held a rate, the limit lies between
	// the highest rate held and the lowest rate not held. The search then halves the interval between these two rates
	// probeSteps times.
	faster     = 2
	probeSteps = 3
	// slower is the ratio of the lower to the higher rate of two successive full runs. If the watchers held the rate of
	// the first full run, the next runs have higher rates until one is not held. Otherwise the next runs have lower
	// rates until one is held. capacityRuns is the largest number of full runs.
	slower       = 0.93
	capacityRuns = 8
)

// capacity searches for the most rows per second at which the watchers' lag does not grow. It reports only the full
// runs, and for each of them the resource that limited it.
func (w *watchRun) capacity(ctx context.Context) error {
	probe := min(max(w.Each/probeShare, probePolls*w.PollInterval), w.Each)
	found, err := searchRate(max(w.Transactions, leastProbe/float64(w.Mutations)), func(rate float64, full bool) (bool, error) {
		lasts := probe
		if full {
			lasts = w.Each
		}
		r, err := w.tryRate(ctx, rate, lasts)
		switch {
		case err != nil:
			return false, err
		case full:
			w.fact("%s for %v: %s; %s", r.Name, lasts, r.heldText(), r.limitText())
		default:
			w.screen.Note(fmt.Sprintf("probe of %s for %v: %s", r.Name, lasts, r.heldText()))
			w.report.Results = w.report.Results[:len(w.report.Results)-1]
		}
		return r.Held, nil
	})
	if err == nil && !found {
		w.fact("the limit is beyond these %d runs", capacityRuns)
	}
	return err
}

// searchRate searches for the highest rate that the watchers hold. Short probes find this rate roughly. The parameter
// first is the rate of the first probe. Then full runs begin at the rate that the probes have found. If the watchers
// hold it, further full runs use higher and higher rates until one is not held. Otherwise further full runs use lower
// and lower rates until one is held. The result found is false if capacityRuns full runs were too few for that.
func searchRate(first float64, try func(rate float64, full bool) (held bool, err error)) (found bool, err error) {
	rate, held, missed := first, 0., 0.
	for step := 0; step < probeSteps; {
		ok, err := try(rate, false)
		switch {
		case err != nil:
			return false, err
		case ok:
			held = rate
		default:
			missed = rate
		}
		if missed == 0 {
			rate *= faster
			continue
		}
		rate = (held + missed) / 2
		step++
	}
	up := false
	for run := range capacityRuns {
		ok, err := try(rate, true)
		if err != nil {
			return false, err
		}
		if run == 0 {
			up = ok
		}
		switch {
		case ok != up:
			return true, nil
		case up:
			rate /= slower
		default:
			rate *= slower
		}
	}
	return false, nil
}

// tryRate runs an experiment. The parameter rate is its number of transactions per second, and lasts is its duration.
func (w *watchRun) tryRate(ctx context.Context, rate float64, lasts time.Duration) (*Result, error) {
	e := w.experiment(w.Watching)
	e.load.Transactions, e.lasts, e.published = rate, lasts, nil
	e.name = fmt.Sprintf("%.0f rows/s", e.load.asked())
	results, err := w.one(ctx, e)
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// busy holds the CPU time that the server and this program have used up to a moment.
type busy struct {
	at          time.Time
	server, own time.Duration
	known       bool // true if the server's CPU time could be read
}

func busyOf(t *harness.Target) busy {
	b := busy{at: time.Now(), own: harness.OwnCPU()}
	if t.Server.CPU != nil {
		used, err := t.Server.CPU()
		b.server, b.known = used, err == nil
	}
	return b
}

// Cores holds the average numbers of busy cores during a load.
type Cores struct {
	Server float64 `json:"server"`
	Own    float64 `json:"this_program"` // cores of this program, which writes and watches
}

// since returns the average numbers of cores that were busy between the moments of before and b. It returns nil if the
// server's CPU time is unknown.
func (b busy) since(before busy) *Cores {
	if !b.known || !before.known {
		return nil
	}
	lasted := b.at.Sub(before.at).Seconds()
	return &Cores{(b.server - before.server).Seconds() / lasted, (b.own - before.own).Seconds() / lasted}
}

// busyShare is the share of the machine's cores above which limitText says that busy cores limited the rate.
const busyShare = 0.9

// limitText says what limited the rate: writers that sent transactions late, slow watchers, or busy cores.
func (r *Result) limitText() string {
	text := fmt.Sprintf("a watcher was reading for %.0f%% of the time", 100*min(r.Reading, 1))
	if r.Late > r.Watching.PollInterval.Seconds()/2 || r.Unsent > 0 {
		text = fmt.Sprintf("the writers were %.1f s late in the end: they were the limit (-u, -m), not the watchers", r.Late)
	}
	if r.Cores == nil {
		return text
	}
	cores := float64(runtime.NumCPU())
	text += fmt.Sprintf("; of %.0f cores the server had %.2f and this program, which writes and watches, %.2f", cores, r.Cores.Server, r.Cores.Own)
	if r.Cores.Server+r.Cores.Own > busyShare*cores {
		text += ": CPU was the limit"
	}
	return text
}
