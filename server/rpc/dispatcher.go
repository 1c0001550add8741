package rpc

import (
	"log/slog"
	"time"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/stats/metrics"
)

// A Dispatcher holds the services of a server, and the state that all calls share: clock, log, accounts.
type Dispatcher struct {
	Services []Service

	clock   func() time.Time
	log     *slog.Logger
	account *cpu.Account
	budget  *memory.Budget
}

// NewDispatcher returns the dispatcher of services. Calls are counted in metrics, which may be nil. account measures
// their CPU time, and their memory is charged to budget.
func NewDispatcher(services []Service, clock func() time.Time, log *slog.Logger, account *cpu.Account, budget *memory.Budget, metrics *metrics.Methods) *Dispatcher {
	d := &Dispatcher{clock: clock, log: log, account: account, budget: budget}
	for _, s := range services {
		s = s.complete()
		for i := range s.Methods {
			m := &s.Methods[i]
			m.metrics, m.typical = metrics.Method(m.Name), new(cpu.Typical)
		}
		d.Services = append(d.Services, s)
	}
	return d
}

// Memory returns the budget of the server's requests.
func (d *Dispatcher) Memory() *memory.Budget { return d.budget }

// Begin prepares c as the call of method m, whose request the transport t is about to decode. c must be zero. The
// transport must call End.
func (d *Dispatcher) Begin(c *Call, m *Method, t Transport) {
	c.dispatcher, c.Method, c.transport = d, m, t
	c.Request = m.request()
	c.Cost.Prepare(d.clock, d.account)
	c.Memory, c.Rows = *d.budget.Open(memory.Request), *d.budget.Open(memory.Statement)
}
