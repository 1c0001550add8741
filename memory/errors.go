package memory

import (
	"fmt"
	"time"
)

// The errors of this package say why a request got no memory. Package usererror has their texts for users.

// TooMuchError says that a request has so far needed Need bytes, which is more than the Limit bytes that it could have
// if it ran alone.
type TooMuchError struct{ Need, Limit int64 }

func (e *TooMuchError) Error() string {
	return fmt.Sprintf("%d bytes of memory are more than the %d bytes of a request", e.Need, e.Limit)
}

// ExhaustedError says that a request needed Need more bytes while other requests had reserved the budget of Limit bytes.
// It had waited for Waited. The same request may succeed later.
type ExhaustedError struct {
	Need, Limit int64
	Waited      time.Duration
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("no memory for %d more bytes after %v: others have the %d bytes of the budget", e.Need, e.Waited, e.Limit)
}

// SessionsError says that there is no memory for more sessions. Those that exist take Used bytes.
type SessionsError struct{ Used int64 }

func (e *SessionsError) Error() string {
	return fmt.Sprintf("no memory for more sessions: those that exist take %d bytes", e.Used)
}
