package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// connector opens connections of Google's driver for database/sql, which GORM uses. Each call is passed to the
// driver's library.
type connector struct {
	library *library
	pool    int64
}

// openDatabase opens a database with a connection string of the driver.
func openDatabase(l *library, connection string) (*sql.DB, error) {
	pool, err := l.createPool(connection)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(&connector{l, pool}), nil
}

func (c *connector) Connect(context.Context) (driver.Conn, error) {
	id, _, err := c.library.call("CreateConnection", c.pool)
	if err != nil {
		return nil, err
	}
	return &connection{c, id}, nil
}

func (c *connector) Driver() driver.Driver { return nil }

// Close closes the driver's pool. sql.DB.Close calls it.
func (c *connector) Close() error {
	_, _, err := c.library.call("ClosePool", c.pool)
	return err
}

type connection struct {
	*connector
	id int64
}

func (c *connection) Close() error {
	_, _, err := c.library.call("CloseConnection", c.pool, c.id)
	return err
}

// CheckNamedValue converts a value to a type that the function parameters can encode.
func (c *connection) CheckNamedValue(v *driver.NamedValue) error {
	if value, ok := v.Value.(driver.Valuer); ok && !isNilPointer(v.Value) {
		var err error
		if v.Value, err = value.Value(); err != nil {
			return err
		}
	}
	switch value := v.Value.(type) {
	case spannerValue:
		return nil
	case float32:
		v.Value = spannerValue{structpb.NewNumberValue(float64(value)), &spannerpb.Type{Code: spannerpb.TypeCode_FLOAT32}}
		return nil
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
	v.Value = value
	return err
}

func isNilPointer(v any) bool {
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

func (c *connection) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	params, types, err := parameters(args)
	if err != nil {
		return nil, err
	}
	id, _, err := c.library.send("Execute", c.pool, c.id, &spannerpb.ExecuteSqlRequest{Sql: query, Params: params, ParamTypes: types})
	if err != nil {
		return nil, err
	}
	r := &rows{connection: c, id: id}
	_, answer, err := c.library.call("Metadata", c.pool, c.id, id)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if err := proto.Unmarshal(answer, &r.metadata); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (c *connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	r := result.(*rows)
	defer r.Close()
	row := make([]driver.Value, len(r.Columns()))
	for len(row) > 0 {
		if err := r.Next(row); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	_, answer, err := c.library.call("ResultSetStats", c.pool, c.id, r.id)
	if err != nil {
		return nil, err
	}
	var stats spannerpb.ResultSetStats
	if err := proto.Unmarshal(answer, &stats); err != nil {
		return nil, err
	}
	return driver.RowsAffected(stats.GetRowCountExact() + stats.GetRowCountLowerBound()), nil
}

func (c *connection) BeginTx(_ context.Context, options driver.TxOptions) (driver.Tx, error) {
	request := &spannerpb.TransactionOptions{}
	switch sql.IsolationLevel(options.Isolation) {
	case sql.LevelRepeatableRead:
		request.IsolationLevel = spannerpb.TransactionOptions_REPEATABLE_READ
	case sql.LevelSerializable:
		request.IsolationLevel = spannerpb.TransactionOptions_SERIALIZABLE
	}
	if options.ReadOnly {
		request.Mode = &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: &spannerpb.TransactionOptions_ReadOnly{
			TimestampBound: &spannerpb.TransactionOptions_ReadOnly_Strong{Strong: true}}}
	}
	_, _, err := c.library.send("BeginTransaction", c.pool, c.id, request)
	return c, err
}

func (c *connection) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *connection) Commit() error {
	_, _, err := c.library.call("Commit", c.pool, c.id)
	return err
}

func (c *connection) Rollback() error {
	_, _, err := c.library.call("Rollback", c.pool, c.id)
	return err
}

// write writes mutations. If the connection has a transaction, they belong to it; otherwise they are committed at
// once.
func (c *connection) write(mutations ...*spannerpb.Mutation) error {
	_, _, err := c.library.send("WriteMutations", c.pool, c.id, &spannerpb.BatchWriteRequest_MutationGroup{Mutations: mutations})
	return err
}

// batch runs statements in one request. All of them must be DML, or all DDL.
func (c *connection) batch(statements ...string) error {
	request := &spannerpb.ExecuteBatchDmlRequest{}
	for _, s := range statements {
		request.Statements = append(request.Statements, &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: s})
	}
	_, _, err := c.library.send("ExecuteBatch", c.pool, c.id, request)
	return err
}

// Prepare only stores the text of the statement, because the driver does not prepare statements at the server.
func (c *connection) Prepare(query string) (driver.Stmt, error) { return &statement{c, query}, nil }

type statement struct {
	*connection
	query string
}

func (s *statement) Close() error  { return nil }
func (s *statement) NumInput() int { return -1 }

func (s *statement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.connection.ExecContext(ctx, s.query, args)
}

func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.connection.QueryContext(ctx, s.query, args)
}

func (s *statement) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s *statement) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

type rows struct {
	*connection
	id       int64
	metadata spannerpb.ResultSetMetadata
}

func (r *rows) Columns() []string {
	names := make([]string, len(r.metadata.GetRowType().GetFields()))
	for i, f := range r.metadata.GetRowType().GetFields() {
		names[i] = f.Name
	}
	return names
}

func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	return r.metadata.RowType.Fields[i].Type.Code.String()
}

func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	return scanTypes[r.metadata.RowType.Fields[i].Type.Code]
}

func (r *rows) Close() error {
	_, _, err := r.library.call("CloseRows", r.pool, r.connection.id, r.id)
	return err
}

func (r *rows) Next(row []driver.Value) error {
	answer, err := r.library.next(r.pool, r.connection.id, r.id)
	if err != nil {
		return err
	}
	if len(answer) == 0 {
		return io.EOF
	}
	var list structpb.ListValue
	if err := proto.Unmarshal(answer, &list); err != nil {
		return err
	}
	for i, v := range list.Values {
		if row[i], err = decode(v, r.metadata.RowType.Fields[i].Type); err != nil {
			return fmt.Errorf("column %s: %w", r.metadata.RowType.Fields[i].Name, err)
		}
	}
	return nil
}
