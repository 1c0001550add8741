package status

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestStatuses: an error for users keeps its code, text and details even if other errors wrap it, and an error that is
// not for users becomes INTERNAL.
func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		err     error
		code    codes.Code
		text    string
		details int
	}{
		{nil, codes.OK, "", 0},
		{errors.New("open /data: no such file"), codes.Internal, "An internal error occurred.", 0},
		{fmt.Errorf("commit: %w", usererror.DatabaseNotFound("d")), codes.NotFound, "Database not found: d", 1},
		{usererror.Wounded(time.Millisecond), codes.Aborted, usererror.Wounded(0).Message, 1},
		{fmt.Errorf("wait: %w", context.Canceled), codes.Canceled, "The request was cancelled.", 0},
		{context.DeadlineExceeded, codes.DeadlineExceeded, "Deadline exceeded.", 0},
		{usererror.Transport(codes.Unavailable, "bad \xff text"), codes.Unavailable, "bad \uFFFD text", 0},
	} {
		st := Of(c.err)
		if codes.Code(st.Code) != c.code || Code(c.err) != c.code || st.Message != c.text || len(st.Details) != c.details {
			t.Errorf("%v is %v", c.err, st)
		}
		if forUser := c.err != nil && c.code != codes.Internal; IsForUser(c.err) != forUser {
			t.Errorf("%v is for users: %v", c.err, !forUser)
		}
	}
}
