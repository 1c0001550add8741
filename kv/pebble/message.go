package pebble

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// logEvery is how often messages of one kind are logged: Pebble tries what failed again and again, and says so each time.
const logEvery = 10 * time.Second

// seldom logs the messages of one kind. What it leaves out it counts.
type seldom struct {
	mu      sync.Mutex
	last    time.Time
	leftOut int
}

// The kinds of messages.
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

// messages is Pebble's logger: it passes on what an operator must know.
type messages struct{ fail func(error) }

func (messages) Infof(string, ...any) {}

func (messages) Errorf(format string, args ...any) {
	errorLog.log(slog.LevelError, "storage: "+fmt.Sprintf(format, args...))
}

// Fatalf is for what Pebble cannot go on after. Errors of the file system do not come so far: see guardedFS.
func (m messages) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	m.fail(err)
	panic(err)
}

// background logs the error of a flush, a compaction or another job. Pebble names the file in it.
func (messages) background(err error) {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		err = info.Details
	}
	errorLog.log(slog.LevelError, "storage: work in the background failed, and is tried again: "+err.Error())
}
