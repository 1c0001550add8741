package memory

import (
	"fmt"
	"time"
)

// The errors of this package say why a request got no memory. Package usererror has the texts that users see.

// TooMuchError says that a request asked for memory that it can never have. With this memory it would hold Need bytes
// in all, but even if it ran alone it could have only Limit bytes.
type TooMuchError struct{ Need, Limit int64 }

func (e *TooMuchError) Error() string {
	return fmt.Sprintf("%d bytes of memory are more than the %d bytes of a request", e.Need, e.Limit)
}

// ExhaustedError says that a request needed Need more bytes, but other requests had taken the budget of Limit bytes.
// Waited is how long the request waited for memory; 0 if it did not wait. The request may succeed when it is sent again.
type ExhaustedError struct {
	Need, Limit int64
	Waited      time.Duration
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("no memory for %d more bytes after %v: others have the %d bytes of the budget", e.Need, e.Waited, e.Limit)
}

// SessionsError says that there is no memory for more sessions. The existing sessions take Used bytes.
type SessionsError struct{ Used int64 }

func (e *SessionsError) Error() string {
	return fmt.Sprintf("no memory for more sessions: those that exist take %d bytes", e.Used)
}
