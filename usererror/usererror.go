// Package usererror is the catalogue of errors that users see. Each error has a constructor, with Cloud Spanner's
// canonical code and a text of whole sentences. A file has the errors of one area (sql.go, ddl.go, rows.go, ...).
// Packages kv and memory have typed errors instead; the function As converts these to errors for users. If an error
// that As cannot convert reaches the server, that is a bug. The server then answers INTERNAL and does not send the text
// of the error.
//
// If Cloud Spanner's code and text for an error are known, the error here has the same ones, because clients recognise
// some errors by their code or text.
//
// Imports of this module: kv, memory.
package usererror

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
)

// Error is an error whose code and text users see.
type Error struct {
	Code    codes.Code
	Message string
	// Resource, if set, is sent as a google.rpc.ResourceInfo. Clients recognise some errors by the resource type in it.
	Resource *Resource
	// Constraint says that a write breaks a constraint of a table. If a DML statement fails with such an error, its
	// transaction can only be rolled back. After other errors the transaction continues as if the statement had not
	// run.
	Constraint bool
	// TooLarge says that a transaction would exceed the limit for writes, so that several smaller transactions could do
	// the same work.
	TooLarge bool
	// RetryAfter is how long the client should wait before it tries again. After ABORTED it runs the transaction again,
	// and after RESOURCE_EXHAUSTED it sends the request again.
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

// violation makes an error for a write that breaks a constraint.
func violation(code codes.Code, format string, args ...any) *Error {
	e := newError(code, format, args...)
	e.Constraint = true
	return e
}

// quoting sets the place of e to the place of cause, if cause has one, and returns e. Constructors call quoting if the
// message of e quotes cause. Both errors then point to the same position in the SQL.
func (e *Error) quoting(cause error) *Error {
	var of *Error
	if errors.As(cause, &of) {
		e.Place = of.Place
	}
	return e
}

// IsConstraint reports whether err is an Error with Constraint set.
func IsConstraint(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Constraint
}

// IsTooLarge reports whether err is an Error with TooLarge set.
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

// CodeOf returns the canonical code of err: OK if err is nil, the code of the *Error that As returns for err, or
// INTERNAL if As returns none.
func CodeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if e, ok := As(err); ok {
		return e.Code
	}
	return codes.Internal
}

// Text returns the message of err for a user, without an excerpt of the SQL. The message is that of the *Error which As
// returns for err or, if As returns none, the text of err itself. err must not be nil.
func Text(err error) string {
	if e, ok := As(err); ok {
		return e.Message
	}
	return err.Error()
}

// As returns the *Error that err is or wraps. If there is no *Error, but err is or wraps a typed error of package kv or
// memory, As converts the typed error to an *Error. For any other err, and for nil, As returns false.
func As(err error) (*Error, bool) {
	if err == nil {
		return nil, false
	}
	var e *Error
	if errors.As(err, &e) {
		return e, true
	}
	if e = ofStorage(err); e == nil {
		e = ofMemory(err)
	}
	return e, e != nil
}
