// Package usererror is the catalogue of errors that users see: one constructor
// each, holding Cloud Spanner's canonical code and a whole sentence. A file is
// one area (sql.go, ddl.go, rows.go, ...). What is not a *usererror.Error when it
// reaches the server is a bug and is answered INTERNAL without its text.
//
// Codes and wordings follow Spanner's; clients match on some of them.
//
// Imports of this module: nothing.
package usererror

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
)

// Error is an error meant for the user.
type Error struct {
	Code    codes.Code
	Message string
	// Resource, if set, is sent as google.rpc.ResourceInfo. Clients match on its type.
	Resource *Resource
	// Constraint says that a row to be written breaks a constraint of its table. If a DML statement ends with such an error its transaction
	// can only be rolled back; after other errors the transaction goes on without the statement.
	Constraint bool
	// TooLarge says that a transaction would write more than one may. In parts, the same work can be done.
	TooLarge bool
	// RetryAfter, for ABORTED, is how long the client should wait before it runs the transaction again; for RESOURCE_EXHAUSTED, before it
	// sends the request again.
	RetryAfter time.Duration
	// Syntax, if set, is why a DDL statement does not parse.
	Syntax string
	// Place, if set, is where in the user's statement the error is.
	Place *Place
}

// Resource names what an error is about.
type Resource struct{ Type, Name string }

func (e *Error) Error() string { return e.Message }

// newError makes an error. Only the constructors of this package call it.
func newError(code codes.Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// violation makes an error of a row that may not be written.
func violation(code codes.Code, format string, args ...any) *Error {
	e := newError(code, format, args...)
	e.Constraint = true
	return e
}

// quoting is the error with the place of another, whose message it quotes.
func (e *Error) quoting(cause error) *Error {
	var of *Error
	if errors.As(cause, &of) {
		e.Place = of.Place
	}
	return e
}

// IsConstraint says whether an error is that of a constraint.
func IsConstraint(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Constraint
}

// IsTooLarge says whether an error is that of a transaction that would write too much.
func IsTooLarge(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.TooLarge
}

// tooLarge makes an error of a transaction that would write too much.
func tooLarge(format string, args ...any) *Error {
	e := newError(codes.InvalidArgument, format, args...)
	e.TooLarge = true
	return e
}

// CodeOf is the canonical code of an error: OK for nil, that of the *Error in
// its chain, else INTERNAL.
func CodeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return codes.Internal
}
