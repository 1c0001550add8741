package pebble

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// logEvery is the least time between two logged messages of one kind. Without it the log would fill up, because Pebble
// retries failed work again and again, with a message each time.
const logEvery = 10 * time.Second

// seldom logs messages of one kind, at most one in each interval of logEvery. It counts the messages that it does not
// log.
type seldom struct {
	mu      sync.Mutex
	last    time.Time
	leftOut int
}

// errorLog is for messages about errors. fullLog is for messages that the store refuses writes, or accepts them again.
var errorLog, fullLog seldom

func (s *seldom) log(level slog.Level, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.last.IsZero() || now.Sub(s.last) >= logEvery {
		var more []any
		if s.leftOut > 0 {
			more = []any{slog.Int("messages_left_out", s.leftOut)}
		}
		slog.Log(context.Background(), level, text, more...)
		s.last, s.leftOut = now, 0
		return
	}
	s.leftOut++
}

// messages is Pebble's logger. It logs errors and drops informational messages.
type messages struct{ fail func(error) }

func (messages) Infof(string, ...any) {}

func (messages) Errorf(format string, args ...any) {
	errorLog.log(slog.LevelError, "storage: "+fmt.Sprintf(format, args...))
}

// Fatalf makes the store fail and panics. Pebble calls it for errors after which it cannot continue. Errors of the
// file system do not lead here, because guardedFS hides them.
func (m messages) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	m.fail(err)
	panic(err)
}

// background logs the error of a flush, a compaction or another background job. The error text names the file.
func (messages) background(err error) {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		err = info.Details
	}
	errorLog.log(slog.LevelError, "storage: work in the background failed, and is tried again: "+err.Error())
}
