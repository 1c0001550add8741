package cpu

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// A Task is one kind of background work of the server, such as the collection of old versions. Its CPU time is
// measured, and is not shared out among executions.
type Task struct {
	Name    string
	account *Account
	used    atomic.Int64         // CPU time in nanoseconds
	from    func() time.Duration // returns the CPU time of a task made by TaskFrom; nil for a task that Do measures
}

// Task returns the task with this name. It creates the task if there is none.
func (a *Account) Task(name string) *Task {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tasks {
		if t.Name == name {
			return t
		}
	}
	t := &Task{Name: name, account: a}
	a.tasks = append(a.tasks, t)
	return t
}

// TaskFrom creates a task whose CPU time another package measures. used() returns the CPU time so far.
func (a *Account) TaskFrom(name string, used func() time.Duration) { a.Task(name).from = used }

// Tasks returns all tasks in the order of their creation.
func (a *Account) Tasks() []*Task {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.tasks)
}

// Used returns the CPU time of the task since the process began.
func (t *Task) Used() time.Duration {
	if t.from != nil {
		return t.from()
	}
	return time.Duration(t.used.Load())
}

// Do runs f and measures its CPU time as work of the task. The context that f gets contains the meter, so Waiting and
// Lap work as in an execution. A nil Task measures nothing.
func (t *Task) Do(ctx context.Context, f func(context.Context)) {
	if t == nil {
		f(ctx)
		return
	}
	m := Meter{Account: t.account, task: t}
	m.Start()
	defer m.Pause()
	f(With(ctx, &m))
}
