package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Runner is the state of a run of one or more benchmarks.
type Runner struct {
	bench.Settings
	Target  *Target
	Results *report.Report
	Screen  *Screen
	began   time.Time
	// figures holds the published figures and Crowfoot's targets, by benchmark.
	figures map[string][]report.Figure
	control *ControlServer // runs another executable, with which the target is compared; nil for none
	// intervalEnd is the end of the interval of the server's statistics for which awaitInterval has waited.
	intervalEnd time.Time
	// asked holds, for each measure, the keys under which the server's statistics list the measured calls.
	asked map[*report.Measure][]StatisticsKey
	// intervals holds, for a measure, the end of the interval of the server's statistics into which all its operations
	// fell. It has no entry for a measure whose operations fell into several intervals.
	intervals map[*report.Measure]time.Time
}

// ErrPartial marks the error of a run that ended early. The report of such a run holds the measurements up to that
// point.
var ErrPartial = errors.New("the results are partial")

// Run measures the benchmarks one after the other. It reports on the screen and in the files that the settings name.
// If the run fails, it still reports the measurements made so far.
func Run(ctx context.Context, s bench.Settings, benchmarks ...Benchmark) (results *report.Report, err error) {
	if err := s.Check(); err != nil {
		return nil, bench.AsUsageError(err)
	}
	for _, b := range benchmarks {
		if b.Check != nil {
			if err := b.Check(s); err != nil {
				return nil, bench.AsUsageError(err)
			}
		}
	}
	files, err := s.Create()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	r := &Runner{Settings: s, began: time.Now(), Screen: NewScreen(s.Progress), figures: map[string][]report.Figure{},
		asked: map[*report.Measure][]StatisticsKey{}, intervals: map[*report.Measure]time.Time{}}
	r.Screen.Note("starting")
	// The control executable starts the target first and writes the tables and rows. This program then reads the data
	// that the control executable has written, and not the reverse, because the control executable is usually older: a
	// newer program must be able to read older data.
	if r.Target, err = OpenTarget(ctx, s.Endpoint, s.Control, delayedBy(s.RTT)...); err != nil {
		return nil, OrInterrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, r.Target.Close()) }()
	defer func() {
		if r.control != nil {
			err = errors.Join(err, r.control.Close())
		}
	}()
	for _, b := range benchmarks {
		if b.Close != nil {
			defer func() { err = errors.Join(err, b.Close()) }()
		}
	}
	r.Results = newReport(r.began, s, r.Target, benchmarks)
	if err = r.measure(ctx, benchmarks); err != nil {
		err = OrInterrupted(ctx, err)
		r.Results.Partial = report.OneLine(err)
		err = fmt.Errorf("%w (%w)", err, ErrPartial)
	} else {
		r.serverStatistics(ctx)
	}
	r.Screen.Finish()
	r.Results.Complete(r.figures)
	return r.Results, errors.Join(err, r.Results.Text(s.Out), files.Write(r.Results))
}

// OrInterrupted returns the error "interrupted" if the context was cancelled, because the cancellation is then the
// cause of err. Otherwise it returns err.
func OrInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// measure prepares all benchmarks and then runs them. It prepares all of them first, so that the screen can show how
// much of the whole run is over.
func (r *Runner) measure(ctx context.Context, benchmarks []Benchmark) error {
	prepared := make([][]Experiment, len(benchmarks))
	for i, b := range benchmarks {
		r.Screen.Note("preparing " + b.Name)
		var err error
		if prepared[i], err = b.Prepare(ctx, r); err != nil {
			return fmt.Errorf("prepare %s: %w", b.Name, err)
		}
		if b.Figures != nil {
			r.figures[b.Name] = b.Figures(r.Settings)
		}
	}
	if r.Control != "" {
		if err := r.startControl(ctx, benchmarks, prepared); err != nil {
			return err
		}
	}
	for i := range prepared {
		r.Screen.plan(r.length(prepared[i]))
	}
	for i, b := range benchmarks {
		for _, e := range prepared[i] {
			for _, clients := range r.clientsOf(e) {
				if err := r.experiment(ctx, b.Name, e, clients); err != nil {
					return err
				}
			}
		}
		if b.After == nil {
			continue
		}
		if err := b.After(ctx, r); err != nil {
			return fmt.Errorf("after %s: %w", b.Name, err)
		}
	}
	return nil
}

// startControl starts the control server from the other executable, which has written the data, and starts the target
// again from this program. It replaces the experiments and figures by comparisons of the two servers.
func (r *Runner) startControl(ctx context.Context, benchmarks []Benchmark, prepared [][]Experiment) (err error) {
	if r.Target.executable, err = r.Target.copyOfProgram(); err != nil {
		return err
	}
	if r.control, err = r.Target.StartControl(ctx, r.Control); err != nil {
		return err
	}
	r.Fact("beside a control server of %s, on a copy of the data that it has made", r.Control)
	for i, b := range benchmarks {
		prepared[i] = besideControl(prepared[i], &r.control.Server)
		r.figures[b.Name] = controlFigures(prepared[i])
	}
	return nil
}

// length returns the total length of all turns, including the warm-ups. The length 1 stands for the whole measured time
// of one path at one number of clients.
func (r *Runner) length(experiments []Experiment) (total float64) {
	for _, e := range experiments {
		for round := range r.Rounds + 1 {
			total += float64(len(r.clientsOf(e))*len(e.Paths)) * r.roundLength(round)
		}
	}
	return total
}

// roundLength returns the length of one turn of a path in a round, as a fraction of the path's whole measured time.
// Round 0 is the warm-up.
func (r *Runner) roundLength(round int) float64 {
	if round == 0 {
		return 1. / bench.WarmUpShare
	}
	return 1 / float64(r.Rounds)
}

// clientsOf returns a list of numbers of clients: the experiment runs once with each number. If every path sets a
// number of its own, the list has only one element, so that the experiment runs only once.
func (r *Runner) clientsOf(e Experiment) []int {
	for _, p := range e.Paths {
		if p.Clients == 0 {
			return r.Clients
		}
	}
	return r.Clients[:1]
}

// experiment lets the paths take turns in the order A B C, C B A, and so on. So a steady change of the machine's speed
// affects all paths alike.
func (r *Runner) experiment(ctx context.Context, benchmark string, e Experiment, clients int) error {
	loads := make([]*LoadGenerator, len(e.Paths))
	if err := r.enterInterval(ctx, e); err != nil {
		return err
	}
	first := r.begin(benchmark, e, clients)
	for i, p := range e.Paths {
		m := r.Results.Measures[first+i]
		loads[i] = r.load(p, m)
		m.Metered = loads[i].cpu != nil
	}
	r.Screen.experiment(benchmark, r.Results.Measures[first:])
	defer r.correct(first)
	defer r.leaveInterval(first, e)
	for round := range r.Rounds + 1 { // round 0 warms up
		for k := range loads {
			i := k
			if round%2 == 0 {
				i = len(loads) - 1 - k
			}
			m := r.Results.Measures[first+i]
			if m.Failed != "" {
				continue
			}
			err := r.runRound(ctx, e.Paths[i], first+i, loads[i], round)
			switch {
			case err == nil:
			case e.Paths[i].Foreign && ctx.Err() == nil && !errors.Is(err, ErrServerEnded):
				m.Fail(err)
				r.Fact(report.FailurePrefix+"%s, %s: %s", m.Title, m.Path, m.Failed)
			default:
				return fmt.Errorf("%s, %s: %w", m.Title, m.Path, err)
			}
		}
	}
	return nil
}

// load returns a LoadGenerator that repeats the path's operation. The operation uses the client of the path's server,
// and the LoadGenerator reads the CPU time of that server.
func (r *Runner) load(p Path, m *report.Measure) *LoadGenerator {
	l := &LoadGenerator{Operation: p.Operation, tag: m.Tag, Clients: m.Clients, Rate: m.Rate, between: p.CountsBetween}
	on := r.serverOf(p)
	l.Client, l.cpu, l.ServerEnded = on.Client, on.CPU, on.Ended()
	l.own = p.ClientCPU
	return l
}

// serverOf returns the server that a path uses.
func (r *Runner) serverOf(p Path) *Server {
	switch {
	case p.Local:
		return new(Server) // no client and no process
	case p.Server != nil:
		return p.Server
	}
	return &r.Target.Server
}

// runRound runs one path for one turn.
func (r *Runner) runRound(ctx context.Context, p Path, measure int, l *LoadGenerator, round int) error {
	m := r.Results.Measures[measure]
	warm := round == 0
	l.Duration, l.count = r.Each/time.Duration(r.Rounds), int64(r.Count/r.Rounds)
	if warm {
		l.Duration, l.count = r.Each/bench.WarmUpShare, int64(r.Count/bench.WarmUpShare)
	}
	if m.Rate > 0 {
		l.count = 0 // an open loop stops by time
	}
	l.issued.Store(0)
	if !warm {
		m.BeginTurn()
	}
	before, err := r.serverOf(p).counts(ctx)
	if err != nil {
		return err
	}
	ended := p.runBeside(ctx)
	err = l.Run(ctx, func(w report.Window) {
		if !warm {
			m.Add(w)
		}
		r.Screen.window(m, round, r.Rounds, r.roundLength(round), w)
	})
	err = errors.Join(err, ended())
	if !warm {
		m.Unsent += l.unsent()
	}
	if err != nil {
		return err
	}
	r.Screen.turnEnds(m, round, r.Rounds, r.roundLength(round))
	after, err := r.serverOf(p).counts(ctx)
	if err == nil && !warm {
		m.AddCalls(before, after)
	}
	return err
}

// runBeside starts the path's Beside function, if the path has one. The returned function stops the Beside function,
// waits until it returns, and returns its error.
func (p *Path) runBeside(ctx context.Context) (ended func() error) {
	if p.Beside == nil {
		return func() error { return nil }
	}
	stop, result := make(chan struct{}), make(chan error, 1)
	go func() { result <- p.Beside(ctx, stop) }()
	return func() error {
		close(stop)
		return <-result
	}
}

// correct computes the latencies that are corrected for coordinated omission, for all measures from the given index on.
func (r *Runner) correct(first int) {
	for _, m := range r.Results.Measures[first:] {
		if m.Rate == 0 { // the latencies of an open loop need no correction
			m.Correct()
		}
	}
}

// Fact adds a line to the report's facts and shows it on the screen at once.
func (r *Runner) Fact(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	r.Results.Facts = append(r.Results.Facts, text)
	r.Screen.Note(text)
}

func newReport(began time.Time, s bench.Settings, t *Target, benchmarks []Benchmark) *report.Report {
	r := &report.Report{Heading: report.NewHeading(began, t.Description, t.DatabaseName), Settings: s, About: map[string]string{}, Studies: map[string]*report.Study{}, OwnGrids: map[string]func(*report.Report) []report.Grid{}, Published: map[report.Ref]report.Averages{}}
	for _, b := range benchmarks {
		r.Benchmarks = append(r.Benchmarks, b.Name)
		r.About[b.Name], r.Studies[b.Name] = b.About, b.Study
		if b.Grids != nil {
			r.OwnGrids[b.Name] = b.Grids
		}
		maps.Copy(r.Published, b.Published)
	}
	return r
}

// begin adds empty measures for the paths of an experiment, and records the pairs to compare. It returns the index of
// the first measure.
func (r *Runner) begin(benchmark string, e Experiment, clients int) int {
	first := len(r.Results.Measures)
	at := map[string]int{}
	for _, p := range e.Paths {
		at[p.Name] = len(r.Results.Measures)
		n := clients
		if p.Clients > 0 {
			n = p.Clients
		}
		m := &report.Measure{
			Benchmark: benchmark, Experiment: e.Name, Title: e.Title, Path: p.Name, Method: p.Method, Clients: n, Size: e.Size,
			Rate: cmp.Or(e.Rate, r.Rate), Group: first, Codec: p.Codec, Copy: p.Copy, Parallel: p.Parallel,
		}
		if !e.Untagged {
			m.Tag = Tag(fmt.Sprint("c", n), benchmark, e.Name, p.Name)
		}
		r.asked[m] = p.StatisticsKeys
		r.Results.Measures = append(r.Results.Measures, m)
	}
	for _, pair := range e.Pairs {
		r.Results.Compare(at[pair[0]], at[pair[1]])
	}
	return first
}
