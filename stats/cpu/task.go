package cpu

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// A Task is one kind of work that the server does in the background, such as the collection of old versions. What it uses is measured, and is
// no part of what executions share.
type Task struct {
	Name    string
	account *Account
	used    atomic.Int64         // nanoseconds
	from    func() time.Duration // see TaskFrom; nil for a task that is measured by Do
}

// Task finds or makes the task of a name.
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

// TaskFrom makes a task that another package measures: used is asked for its CPU time so far.
func (a *Account) TaskFrom(name string, used func() time.Duration) { a.Task(name).from = used }

// Tasks are all tasks, in the order in which they were made.
func (a *Account) Tasks() []*Task {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.tasks)
}

// Used is the CPU time of the task since the process began.
func (t *Task) Used() time.Duration {
	if t.from != nil {
		return t.from()
	}
	return time.Duration(t.used.Load())
}

// Do measures f as work of the task. The context that f gets lets waits within it pause the measurement, and long work
// tell how far it is, as with an execution. A nil Task measures nothing.
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
