package server

import (
	"context"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// sqlText is a statement in a request: its SQL, and the values and declared types of its parameters.
type sqlText struct {
	sql    string
	params *structpb.Struct
	types  map[string]*spannerpb.Type
}

// prepare analyzes and plans the statement in the scope's schema, or returns the cached statement.
func (q sqlText) prepare(ctx context.Context, sc *scope, opts prepare.Options) (*prepare.Statement, error) {
	if strings.TrimSpace(q.sql) == "" {
		return nil, usererror.MissingField("sql")
	}
	declared, err := q.declared()
	if err != nil {
		return nil, err
	}
	stmt, err := sc.session.db.Prepare(ctx, sc.catalog, q.sql, declared, opts)
	if err != nil {
		return nil, sc.tooEarly(err, func(c *schema.Catalog) error {
			_, err := sc.session.db.Prepare(ctx, c, q.sql, declared, opts)
			return err
		})
	}
	return stmt, sc.allow(ctx, stmt.Needs)
}

// declared returns the types of the request's parameters by lower-case name. The type is nil for a parameter that has a
// value but no declared type.
func (q sqlText) declared() (map[string]*value.Type, error) {
	values := q.params.GetFields()
	if len(values) == 0 && len(q.types) == 0 {
		return nil, nil
	}
	declared := make(map[string]*value.Type, max(len(values), len(q.types)))
	for name := range values {
		declared[strings.ToLower(name)] = nil
	}
	for name, p := range q.types {
		if p.GetCode() == spannerpb.TypeCode_TYPE_CODE_UNSPECIFIED {
			continue
		}
		t, err := value.TypeFromProto(p)
		if err != nil {
			return nil, usererror.InvalidParamType(name, err)
		}
		declared[strings.ToLower(name)] = t
	}
	return declared, nil
}

// bind returns the values of the statement's parameters, in the order of the plan's parameters.
func (q sqlText) bind(stmt *prepare.Statement) ([]value.Value, error) {
	params := stmt.Plan.Params
	if len(params) == 0 {
		return nil, nil
	}
	values := make([]value.Value, len(params))
	for i, p := range params {
		if v, ok := stmt.Literal(i); ok {
			values[i] = v
			continue
		}
		given, ok := q.param(p.Name)
		if !ok {
			if !q.declares(p.Name) {
				return nil, usererror.UnboundParameter(p.Name)
			}
			values[i] = value.Null(p.Type.Kind) // a type without a value means NULL
			continue
		}
		v, err := value.FromWire(given, p.Type)
		if err == nil && v.IsPending() {
			err = errPendingParam
		}
		if err != nil {
			return nil, usererror.UnparsableParam(p.Name, p.Type.String(), err)
		}
		values[i] = v
	}
	return values, nil
}

// param returns the value of the parameter with this lower-case name. The request may spell the name in upper or lower
// case.
func (q sqlText) param(name string) (*structpb.Value, bool) {
	fields := q.params.GetFields()
	if v, ok := fields[name]; ok {
		return v, true
	}
	for given, v := range fields {
		if strings.EqualFold(given, name) {
			return v, true
		}
	}
	return nil, false
}

func (q sqlText) declares(name string) bool {
	for given := range q.types {
		if strings.EqualFold(given, name) {
			return true
		}
	}
	return false
}
