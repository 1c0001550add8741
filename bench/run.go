package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

// run is the state of a run of one or more benchmarks.
type run struct {
	Settings
	target *target
	report *Report
	screen *screen
	began  time.Time
	// figures are the published figures and the targets, by benchmark.
	figures map[string][]Figure
	control *controlServer // of another executable; nil for none
	// intervalEnd is the end of the interval of the server's statistics that awaitInterval has chosen.
	intervalEnd time.Time
	// asked identifies the calls of a measure's path in the server's statistics.
	asked map[*Measure][]asked
	// intervals are the ends of the intervals of the server's statistics into which all operations of a measure fell.
	intervals map[*Measure]time.Time
}

// ErrPartial marks the errors of runs that ended early. Their reports hold the measurements up to that point.
var ErrPartial = errors.New("the results are partial")

// Run measures the benchmarks one after the other. It reports on the screen and in the files that the settings name.
// If the run fails, it still reports its measurements.
func Run(ctx context.Context, s Settings, benchmarks ...Benchmark) (results *Report, err error) {
	if err := s.check(); err != nil {
		return nil, usage(err)
	}
	for _, b := range benchmarks {
		if b.check != nil {
			if err := b.check(s); err != nil {
				return nil, usage(err)
			}
		}
	}
	files, err := s.create()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	r := &run{Settings: s, began: time.Now(), screen: newScreen(s.Progress), figures: map[string][]Figure{},
		asked: map[*Measure][]asked{}, intervals: map[*Measure]time.Time{}}
	r.screen.note("starting")
	// The control executable writes the tables and rows, because the newer program must be able to read its format.
	if r.target, err = open(ctx, s.Endpoint, s.Control, delayedBy(s.RTT)...); err != nil {
		return nil, orInterrupt(ctx, err)
	}
	defer func() { err = errors.Join(err, r.target.close()) }()
	defer func() {
		if r.control != nil {
			err = errors.Join(err, r.control.close())
		}
	}()
	for _, b := range benchmarks {
		if b.close != nil {
			defer func() { err = errors.Join(err, b.close()) }()
		}
	}
	r.report = newReport(r.began, s, r.target, benchmarks)
	if err = r.measure(ctx, benchmarks); err != nil {
		err = orInterrupt(ctx, err)
		r.report.Partial = oneLine(err)
		err = fmt.Errorf("%w (%w)", err, ErrPartial)
	} else {
		r.serverStatistics(ctx)
	}
	r.screen.finish()
	r.report.complete(r.figures)
	return r.report, errors.Join(err, r.report.Text(s.Out), files.write(r.report))
}

// orInterrupt returns err, or "interrupted" if the context was cancelled and so caused err.
func orInterrupt(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// measure prepares all benchmarks and then runs them. It prepares all first so that the screen knows the length of
// the run.
func (r *run) measure(ctx context.Context, benchmarks []Benchmark) error {
	prepared := make([][]experiment, len(benchmarks))
	for i, b := range benchmarks {
		r.screen.note("preparing " + b.name)
		var err error
		if prepared[i], err = b.prepare(ctx, r); err != nil {
			return fmt.Errorf("prepare %s: %w", b.name, err)
		}
		if b.figures != nil {
			r.figures[b.name] = b.figures(r.Settings)
		}
	}
	if r.Control != "" {
		if err := r.startControl(ctx, benchmarks, prepared); err != nil {
			return err
		}
	}
	for i := range prepared {
		r.screen.plan(r.length(prepared[i]))
	}
	for i, b := range benchmarks {
		for _, e := range prepared[i] {
			for _, clients := range r.clientsOf(e) {
				if err := r.experiment(ctx, b.name, e, clients); err != nil {
					return err
				}
			}
		}
		if b.after == nil {
			continue
		}
		if err := b.after(ctx, r); err != nil {
			return fmt.Errorf("after %s: %w", b.name, err)
		}
	}
	return nil
}

// startControl starts the control server from the other executable, which has written the data. It starts the target
// again from this program. The experiments and figures are replaced by comparisons of the two servers.
func (r *run) startControl(ctx context.Context, benchmarks []Benchmark, prepared [][]experiment) (err error) {
	if r.target.executable, err = r.target.copyOfProgram(); err != nil {
		return err
	}
	if r.control, err = r.target.control(ctx, r.Control); err != nil {
		return err
	}
	r.fact("beside a control server of %s, on a copy of the data that it has made", r.Control)
	for i, b := range benchmarks {
		prepared[i] = besideControl(prepared[i], &r.control.server)
		r.figures[b.name] = controlFigures(prepared[i])
	}
	return nil
}

// length returns the total length of all turns. The unit is the measured time of one path.
func (r *run) length(experiments []experiment) (total float64) {
	for _, e := range experiments {
		for round := range r.Rounds + 1 {
			total += float64(len(r.clientsOf(e))*len(e.paths)) * r.roundLength(round)
		}
	}
	return total
}

// roundLength returns the length of one turn of a path in a round, in the same unit. Round 0 warms up.
func (r *run) roundLength(round int) float64 {
	if round == 0 {
		return 1. / warmUpShare
	}
	return 1 / float64(r.Rounds)
}

// clientsOf returns the numbers of clients with which an experiment runs. It runs only once if every path sets its
// own number.
func (r *run) clientsOf(e experiment) []int {
	for _, p := range e.paths {
		if p.clients == 0 {
			return r.Clients
		}
	}
	return r.Clients[:1]
}

// experiment lets the paths take turns: A B C, C B A, and so on. A steady change of the machine then affects all
// paths alike.
func (r *run) experiment(ctx context.Context, benchmark string, e experiment, clients int) error {
	loads := make([]*load, len(e.paths))
	if err := r.enterInterval(ctx, e); err != nil {
		return err
	}
	first := r.begin(benchmark, e, clients)
	for i, p := range e.paths {
		m := r.report.Measures[first+i]
		loads[i] = r.load(p, m)
		m.metered = loads[i].cpu != nil
	}
	r.screen.experiment(benchmark, r.report.Measures[first:])
	defer r.correct(first)
	defer r.leaveInterval(first, e)
	for round := range r.Rounds + 1 { // round 0 warms up
		for k := range loads {
			i := k
			if round%2 == 0 {
				i = len(loads) - 1 - k
			}
			m := r.report.Measures[first+i]
			if m.Failed != "" {
				continue
			}
			err := r.runRound(ctx, e.paths[i], first+i, loads[i], round)
			switch {
			case err == nil:
			case e.paths[i].peer && ctx.Err() == nil && !errors.Is(err, errServerEnded):
				m.fail(err)
				r.fact(failure+"%s, %s: %s", m.Title, m.Path, m.Failed)
			default:
				return fmt.Errorf("%s, %s: %w", m.Title, m.Path, err)
			}
		}
	}
	return nil
}

// load returns the load of a path on its server.
func (r *run) load(p path, m *Measure) *load {
	l := &load{op: p.op, tag: m.Tag, clients: m.Clients, rate: m.Rate, between: p.withBetween}
	on := r.serverOf(p)
	l.client, l.cpu, l.server = on.client, on.cpu, on.ended()
	l.own = p.client
	return l
}

// serverOf returns the server that a path uses.
func (r *run) serverOf(p path) *server {
	switch {
	case p.local:
		return new(server) // no client and no process
	case p.on != nil:
		return p.on
	}
	return &r.target.server
}

// runRound runs one path for one turn.
func (r *run) runRound(ctx context.Context, p path, measure int, l *load, round int) error {
	m := r.report.Measures[measure]
	warm := round == 0
	l.lasts, l.count = r.Each/time.Duration(r.Rounds), int64(r.Count/r.Rounds)
	if warm {
		l.lasts, l.count = r.Each/warmUpShare, int64(r.Count/warmUpShare)
	}
	if m.Rate > 0 {
		l.count = 0 // an open loop stops by time
	}
	l.issued.Store(0)
	if !warm {
		m.begin()
	}
	before, err := r.serverOf(p).counts(ctx)
	if err != nil {
		return err
	}
	ended := p.runBeside(ctx)
	err = l.run(ctx, func(w window) {
		if !warm {
			m.add(w)
		}
		r.screen.window(m, round, r.Rounds, r.roundLength(round), w)
	})
	err = errors.Join(err, ended())
	if !warm {
		m.Unsent += l.unsent()
	}
	if err != nil {
		return err
	}
	r.screen.turnEnds(m, round, r.Rounds, r.roundLength(round))
	after, err := r.serverOf(p).counts(ctx)
	if err == nil && !warm {
		m.count(before, after)
	}
	return err
}

// runBeside starts the path's beside function. ended stops it and waits until it returns.
func (p *path) runBeside(ctx context.Context) (ended func() error) {
	if p.beside == nil {
		return func() error { return nil }
	}
	stop, result := make(chan struct{}), make(chan error, 1)
	go func() { result <- p.beside(ctx, stop) }()
	return func() error {
		close(stop)
		return <-result
	}
}

// correct computes the corrected latencies of all measures from position first on.
func (r *run) correct(first int) {
	for _, m := range r.report.Measures[first:] {
		if m.Rate == 0 { // the latencies of an open loop need no correction
			m.correct()
		}
	}
}

// fact adds a line to the report and shows it on the screen at once.
func (r *run) fact(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	r.report.Facts = append(r.report.Facts, text)
	r.screen.note(text)
}

func newReport(began time.Time, s Settings, t *target, benchmarks []Benchmark) *Report {
	r := &Report{Heading: newHeading(began, t.what, t.database), Settings: s, about: map[string]string{}, studies: map[string]*Study{}, ownGrids: map[string]func(*Report) []grid{}, published: map[Ref]Averages{}}
	for _, b := range benchmarks {
		r.Benchmarks = append(r.Benchmarks, b.name)
		r.about[b.name], r.studies[b.name] = b.about, b.study
		if b.grids != nil {
			r.ownGrids[b.name] = b.grids
		}
		maps.Copy(r.published, b.published)
	}
	return r
}

// begin adds empty measures for the paths of an experiment, and notes the pairs to compare. It returns the position
// of the first measure.
func (r *run) begin(benchmark string, e experiment, clients int) int {
	first := len(r.report.Measures)
	at := map[string]int{}
	for _, p := range e.paths {
		at[p.name] = len(r.report.Measures)
		n := clients
		if p.clients > 0 {
			n = p.clients
		}
		m := &Measure{
			Benchmark: benchmark, Experiment: e.name, Title: e.title, Path: p.name, Method: p.method, Clients: n, Size: e.size,
			Rate: cmp.Or(e.rate, r.Rate), group: first, Codec: p.codec, Copy: p.copy, parallel: p.parallel,
		}
		if !e.untagged {
			m.Tag = tag(fmt.Sprint("c", n), benchmark, e.name, p.name)
		}
		r.asked[m] = p.asked
		r.report.Measures = append(r.report.Measures, m)
	}
	for _, pair := range e.pairs {
		r.report.compare(at[pair[0]], at[pair[1]])
	}
	return first
}
