package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

const (
	// probeShare is how much shorter than a run a probe of the capacity is, probePolls how many polls it has at least.
	probeShare = 6
	probePolls = 10
	// leastProbe is the rate of the first probe, in rows per second, if the load has less: any machine holds it.
	leastProbe = 500
	// faster is by how much each probe is faster than the last until one is not held; then probeSteps probes halve the distance between the fastest that
	// was held and the slowest that was not.
	faster     = 2
	probeSteps = 3
	// slower is by how much each run of full length is slower than the one before that did not hold, or the other way round; capacityRuns how many there
	// may be.
	slower       = 0.93
	capacityRuns = 8
)

// capacity looks for the most rows per second that the watchers hold without a growing lag. Runs of full length alone are reported, each with what it was
// limited by.
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
			w.screen.note(fmt.Sprintf("probe of %s for %v: %s", r.Name, lasts, r.heldText()))
			w.report.Results = w.report.Results[:len(w.report.Results)-1]
		}
		return r.Held, nil
	})
	if err == nil && !found {
		w.fact("the limit is beyond these %d runs", capacityRuns)
	}
	return err
}

// searchRate finds the highest rate that is held, from a first one on: short probes find about which that is, and full runs go up from there as long as they
// hold it, or down until they do.
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

// tryRate runs so many transactions a second for a time.
func (w *watchRun) tryRate(ctx context.Context, rate float64, lasts time.Duration) (*WatchResult, error) {
	e := w.experiment(w.Watching)
	e.load.Transactions, e.lasts, e.published = rate, lasts, nil
	e.name = fmt.Sprintf("%.0f rows/s", e.load.asked())
	results, err := w.one(ctx, e)
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// busy is the CPU time that the server and this program have used until a moment.
type busy struct {
	at          time.Time
	server, own time.Duration
	known       bool // that of the server
}

func (t *target) busy() busy {
	b := busy{at: time.Now(), own: ownCPU()}
	if t.server.cpu != nil {
		used, err := t.server.cpu()
		b.server, b.known = used, err == nil
	}
	return b
}

// Cores are how many cores were busy, on average, while a load lasted.
type Cores struct {
	Server float64 `json:"server"`
	Own    float64 `json:"this_program"` // which writes and watches
}

// since is nil if the CPU time of the server is not known.
func (b busy) since(before busy) *Cores {
	if !b.known || !before.known {
		return nil
	}
	lasted := b.at.Sub(before.at).Seconds()
	return &Cores{(b.server - before.server).Seconds() / lasted, (b.own - before.own).Seconds() / lasted}
}

// busyShare is the share of the machine's cores from which on they are the limit.
const busyShare = 0.9

// limitText says what kept the rate from being higher: transactions that were sent late, watchers that did not get on, and whose CPU was busy.
func (r *WatchResult) limitText() string {
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
