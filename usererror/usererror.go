// Package usererror is the catalogue of errors that users see. Each has a constructor, with Cloud Spanner's canonical
// code and a whole sentence. A file holds one area (sql.go, ddl.go, rows.go, ...). If any other error than a
// *usererror.Error reaches the server, that is a bug, and the server answers INTERNAL without its text.
//
// Codes and texts follow Spanner's. Clients match on some of them.
//
// Imports of this module: kv, memory.
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
	// Constraint says that a row to be written breaks a constraint of its table. If a DML statement fails with such an
	// error, its transaction can only be rolled back. After other errors the transaction continues without the
	// statement.
	Constraint bool
	// TooLarge says that a transaction would exceed the limit for writes. Several smaller transactions can do the same
	// work.
	TooLarge bool
	// RetryAfter is how long the client should wait before it tries again. For ABORTED it runs the transaction again,
	// and for RESOURCE_EXHAUSTED it sends the request again.
	RetryAfter time.Duration
	// Syntax, if set, is the reason why a DDL statement does not parse.
	Syntax string
	// Place, if set, is the position of the error in the user's statement.
	Place *Place
}

// Resource names the resource that an error is about.
type Resource struct{ Type, Name string }

func (e *Error) Error() string { return e.Message }

// newError makes an error. Only the constructors of this package call it.
func newError(code codes.Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// violation makes an error for a row that breaks a constraint.
func violation(code codes.Code, format string, args ...any) *Error {
	e := newError(code, format, args...)
	e.Constraint = true
	return e
}

// quoting returns e with the place of cause, whose message e quotes.
func (e *Error) quoting(cause error) *Error {
	var of *Error
	if errors.As(cause, &of) {
		e.Place = of.Place
	}
	return e
}

// IsConstraint reports whether err has Constraint set.
func IsConstraint(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Constraint
}

// IsTooLarge reports whether err has TooLarge set.
func IsTooLarge(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.TooLarge
}

// tooLarge makes an error for a transaction that exceeds the limit for writes.
func tooLarge(format string, args ...any) *Error {
	e := newError(codes.InvalidArgument, format, args...)
	e.TooLarge = true
	return e
}

// CodeOf returns the canonical code of an error: OK for nil, the code of the *Error in its chain, or INTERNAL if there
// is none.
func CodeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if e, ok := As(err); ok {
		return e.Code
	}
	return codes.Internal
}

// As returns the error for users in the chain of err, if there is one. The packages below table do not know users: their
// typed errors get a text here.
func As(err error) (*Error, bool) {
	var e *Error
	if errors.As(err, &e) {
		return e, true
	}
	if e = ofStorage(err); e == nil {
		e = ofMemory(err)
	}
	return e, e != nil
}
