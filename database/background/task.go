package background

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"

	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Task is the status of one kind of background work, as SPANNER_SYS.TASKS shows it. It is not stored, so it is empty
// after a restart.
type Task struct {
	mu        sync.Mutex
	processed time.Time // all work that was due at this time has been done
	status    string    // name of the status code with which the last run ended, such as OK
}

// Ran records that the work has run once, and that this run ended with err. If err is nil, the run has done all work
// that was due at the time which the parameter at holds.
func (t *Task) Ran(at time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.processed = at
	}
	t.status = statusName(err)
}

func statusName(err error) string {
	if errors.Is(err, context.Canceled) {
		return code.Code_CANCELLED.String()
	}
	return code.Code(usererror.CodeOf(err)).String()
}

// Row returns the task's row of SPANNER_SYS.TASKS. undeletable is the number of expired rows that could not be deleted;
// it is 0 for tasks that delete no rows.
func (t *Task) Row(name string, undeletable int64) stats.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return stats.Task{Name: name, Processed: t.processed, Status: t.status, Undeletable: undeletable}
}
