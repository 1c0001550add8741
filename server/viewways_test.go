package server

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/known/structpb"
)

// Ways to run a query. DML, which the test rolls back, is run in the first two ways only.
const (
	bySQL = iota
	byParameters
	byProfile
	byPlan
	byPartitions
	byREST
	byFlight
	byPrepared
	hiddenWays
)

// A hiddenAsker holds the session and the Flight SQL client that send queries, both with a role or both without one.
type hiddenAsker struct {
	session   string
	flightSQL *flightClient
}

// hiddenLiteral matches a literal that a parameter can replace.
var hiddenLiteral = regexp.MustCompile(`(DATE )?'(?:[^'\\]|\\.)*'|\b\d{3,}\b`)

// parametersOf replaces literals of a query by parameters, and returns the new SQL and the parameters' values.
func parametersOf(sql string) (text string, values []any) {
	text = hiddenLiteral.ReplaceAllStringFunc(sql, func(literal string) string {
		var v any
		switch n, err := strconv.ParseInt(literal, 10, 64); {
		case err == nil:
			v = n
		case literal[0] != '\'' || strings.Contains(literal, `\`):
			return literal
		default:
			v = literal[1 : len(literal)-1]
		}
		values = append(values, v)
		return fmt.Sprint("@p", len(values))
	})
	return text, values
}

// run runs a query, or DML that it then rolls back. It returns the sorted rows in the result rows, and the rest of the
// reply, such as statistics, in beside.
func (w *hiddenWorld) run(by int, who hiddenAsker, sql string) (rows, beside string, err error) {
	req := &spannerpb.ExecuteSqlRequest{Session: who.session, Sql: sql, Seqno: 1}
	if by == byParameters {
		req.Params, req.ParamTypes = &structpb.Struct{Fields: map[string]*structpb.Value{}}, map[string]*spannerpb.Type{}
		text, values := parametersOf(sql)
		for i, v := range values {
			code := spannerpb.TypeCode_STRING
			if _, ok := v.(int64); ok {
				code = spannerpb.TypeCode_INT64
			}
			name := fmt.Sprint("p", i+1)
			req.Params.Fields[name], req.ParamTypes[name] = structpb.NewStringValue(fmt.Sprint(v)), &spannerpb.Type{Code: code}
		}
		req.Sql = text
	}
	var list []string
	switch by {
	case byProfile:
		req.QueryMode = spannerpb.ExecuteSqlRequest_PROFILE
	case byPlan:
		req.QueryMode = spannerpb.ExecuteSqlRequest_PLAN
	case byPartitions:
		req.Transaction = byID(w.begin(who.session, readOnly()))
		parts, err := w.data.PartitionQuery(w.ctx, &spannerpb.PartitionQueryRequest{Session: who.session, Transaction: req.Transaction, Sql: sql})
		if err != nil {
			rows, beside, failed := w.run(bySQL, who, sql)
			return rows, beside + err.Error(), failed // expected, because most queries cannot be divided
		}
		for _, p := range parts.Partitions {
			req.PartitionToken = p.PartitionToken
			rs, err := w.data.ExecuteSql(w.ctx, req)
			if err != nil {
				return "", "", err
			}
			list = append(list, strings.SplitAfter(textOfRows(rs), "\n")...)
		}
		return sorted(list), "", nil
	case byREST:
		return w.runREST(who, sql)
	case byFlight:
		list, err = who.flightSQL.rows(sql)
		return sorted(list), "", err
	case byPrepared:
		list, err = w.runPrepared(who, sql)
		return sorted(list), "", err
	}
	if !strings.Contains(sql, "SELECT") || strings.Contains(sql, "THEN RETURN") {
		id := w.begin(who.session, readWrite())
		defer w.data.Rollback(w.ctx, &spannerpb.RollbackRequest{Session: who.session, TransactionId: id})
		req.Transaction = byID(id)
	}
	rs, err := w.data.ExecuteSql(w.ctx, req)
	return sorted(strings.SplitAfter(textOfRows(rs), "\n")), prototext.Format(rs.GetStats()), err
}

func sorted(rows []string) string {
	slices.Sort(rows)
	return strings.Join(rows, "")
}

func (w *hiddenWorld) runREST(who hiddenAsker, sql string) (rows, beside string, err error) {
	body, err := json.Marshal(map[string]string{"sql": sql})
	w.ok(err)
	code, reply := w.http("POST", "/v1/"+who.session+":executeSql", string(body))
	if code != 200 {
		var c codes.Code
		failed := reply["error"].(map[string]any)
		w.ok(json.Unmarshal([]byte(strconv.Quote(failed["status"].(string))), &c))
		return "", fmt.Sprint(reply), status.Error(c, failed["message"].(string))
	}
	all, _ := reply["rows"].([]any)
	var list []string
	for _, row := range all {
		list = append(list, fmt.Sprintln(row))
	}
	return sorted(list), "", nil
}

// runPrepared runs a prepared statement over Flight SQL, with parameters instead of literals.
func (w *hiddenWorld) runPrepared(who hiddenAsker, sql string) ([]string, error) {
	text, values := parametersOf(sql)
	p, err := who.flightSQL.Prepare(who.flightSQL.ctx, text)
	if status.Code(err) == codes.InvalidArgument { // the server cannot infer the types of the parameters
		values = nil
		p, err = who.flightSQL.Prepare(who.flightSQL.ctx, sql)
	}
	if err != nil {
		return nil, err
	}
	defer p.Close(who.flightSQL.ctx)
	if len(values) > 0 {
		var fields []arrow.Field
		var columns []arrow.Array
		for i, v := range values {
			var b array.Builder = array.NewStringBuilder(memory.DefaultAllocator)
			if _, ok := v.(int64); ok {
				b = array.NewInt64Builder(memory.DefaultAllocator)
			}
			w.ok(b.AppendValueFromString(fmt.Sprint(v)))
			fields, columns = append(fields, arrow.Field{Name: fmt.Sprint("p", i+1), Type: b.Type()}), append(columns, b.NewArray())
		}
		p.SetParameters(array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, 1))
	}
	info, err := p.Execute(w.ctx)
	if err != nil {
		return nil, err
	}
	return who.flightSQL.read(info)
}
