package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// http makes a REST call and decodes the JSON of the reply.
func (h *harness) http(verb, path, body string) (int, map[string]any) {
	h.Helper()
	status, data := h.httpRaw(verb, path, body)
	reply := map[string]any{}
	if err := json.Unmarshal(data, &reply); err != nil {
		h.Fatalf("%s %s: %v in %s", verb, path, err, data)
	}
	return status, reply
}

func (h *harness) httpRaw(verb, path, body string) (int, []byte) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.ctx, verb, h.rest+path, strings.NewReader(body))
	h.ok(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl --data sends it
	reply, err := http.DefaultClient.Do(req)
	h.ok(err)
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	h.ok(err)
	return reply.StatusCode, data
}

func TestRestAdmin(t *testing.T) {
	h := newHarness(t)
	if status, reply := h.http("POST", "/v1/projects/p/instances", `{"instanceId":"rest","instance":{"config":"projects/p/instanceConfigs/emulator-config"}}`); status != 200 || reply["done"] != true {
		t.Errorf("create instance: %d %v", status, reply)
	}
	if status, reply := h.http("POST", "/v1/projects/p/instances/rest/databases", `{"createStatement":"CREATE DATABASE db"}`); status != 200 {
		t.Errorf("create database: %d %v", status, reply)
	}
	path := "/v1/projects/p/instances/rest/databases/db"
	status, op := h.http("PATCH", path+"/ddl", `{"statements":["CREATE TABLE T (K INT64) PRIMARY KEY (K)"],"operationId":"op"}`)
	if status != 200 {
		t.Errorf("update schema: %d %v", status, op)
	}
	if status, reply := h.http("GET", "/v1/"+op["name"].(string), ""); status != 200 || reply["name"] != op["name"] {
		t.Errorf("get operation: %d %v", status, reply)
	}
	if status, reply := h.http("PATCH", path+"?updateMask=enable_drop_protection", `{"enableDropProtection":true}`); status != 200 {
		t.Errorf("update database: %d %v", status, reply)
	}
	if _, reply := h.http("GET", path, ""); reply["enableDropProtection"] != true {
		t.Errorf("get database: %v", reply)
	}
	status, reply := h.http("DELETE", path, "")
	failure, _ := reply["error"].(map[string]any)
	if status != 400 || failure["status"] != "FAILED_PRECONDITION" || failure["code"] != 400.0 || failure["message"] == "" {
		t.Errorf("drop database: %d %v", status, reply)
	}
	if status, reply := h.http("GET", "/v1/projects/p/instances/rest/databases?pageSize=1&$alt=json", ""); status != 200 || len(reply["databases"].([]any)) != 1 {
		t.Errorf("list databases: %d %v", status, reply)
	}
}

func TestRestErrors(t *testing.T) {
	h := newHarness(t)
	for _, c := range []struct {
		verb, path, body string
		status           int
		code             string
	}{
		{"GET", "/v1/projects/p/instances/none", "", 404, "NOT_FOUND"},
		{"GET", "/nowhere", "", 404, "NOT_FOUND"},
		{"GET", "/v1/projects/p/instances?pageSize=x", "", 400, "INVALID_ARGUMENT"},
		{"GET", "/v1/projects/p/instances?nonsense=x", "", 400, "INVALID_ARGUMENT"},
		{"POST", "/v1/projects/p/instances", "{", 400, "INVALID_ARGUMENT"},
		{"POST", "/v1/projects/p/instances", `{"instanceId":"test","instance":{"config":"projects/p/instanceConfigs/emulator-config"}}`, 409, "ALREADY_EXISTS"},
		{"GET", "/v1/projects/p/instances/test/backups", "", 501, "UNIMPLEMENTED"},
	} {
		status, reply := h.http(c.verb, c.path, c.body)
		failure, _ := reply["error"].(map[string]any)
		if status != c.status || failure["status"] != c.code {
			t.Errorf("%s %s: %d %v", c.verb, c.path, status, reply)
		}
	}
	_, reply := h.http("GET", "/v1/projects/p/instances/none", "")
	details, _ := json.Marshal(reply)
	if !bytes.Contains(details, []byte("google.rpc.ResourceInfo")) {
		t.Errorf("no ResourceInfo in %s", details)
	}
}

func TestRestData(t *testing.T) {
	h := newHarness(t)
	_, ses := h.http("POST", "/v1/"+testDatabase+"/sessions", "{}")
	path := "/v1/" + ses["name"].(string)
	if status, reply := h.http("POST", path+":commit", `{"singleUseTransaction":{"readWrite":{}},"mutations":[
		{"insert":{"table":"Singers","columns":["SingerId","Name"],"values":[["1","Marc"],["2",null]]}}]}`); status != 200 || reply["commitTimestamp"] == nil {
		t.Errorf("commit: %d %v", status, reply)
	}
	status, reply := h.http("POST", path+":executeSql", `{"sql":"SELECT Name FROM Singers WHERE SingerId = @id","params":{"id":"1"},"paramTypes":{"id":{"code":"INT64"}}}`)
	if rows, _ := reply["rows"].([]any); status != 200 || len(rows) != 1 || rows[0].([]any)[0] != "Marc" {
		t.Errorf("executeSql: %d %v", status, reply)
	}
	for _, call := range []string{":streamingRead", ":executeStreamingSql"} {
		status, data := h.httpRaw("POST", path+call, `{"table":"Singers","columns":["Name"],"keySet":{"all":true}}`)
		if call == ":executeStreamingSql" {
			status, data = h.httpRaw("POST", path+call, `{"sql":"SELECT Name FROM Singers ORDER BY SingerId"}`)
		}
		var parts []struct{ Values []any }
		if err := json.Unmarshal(data, &parts); err != nil || status != 200 || len(parts) != 1 || len(parts[0].Values) != 2 || parts[0].Values[1] != nil {
			t.Errorf("%s: %d %s", call, status, data)
		}
	}
	status, data := h.httpRaw("POST", path+":executeStreamingSql", `{"sql":"SELECT nonsense"}`)
	if status != 400 || !bytes.HasPrefix(data, []byte(`[{"error":`)) {
		t.Errorf("error of a stream: %d %s", status, data)
	}
	if status, _ := h.httpRaw("DELETE", path, ""); status != 200 {
		t.Errorf("delete session: %d", status)
	}
	if status, data := h.httpRaw("GET", "/healthz", ""); status != 200 || string(data) != "ok\n" {
		t.Errorf("healthz: %d %s", status, data)
	}
}

// TestRestNames: unknown names and values in a REST request are refused with the error texts of Google's APIs.
func TestRestNames(t *testing.T) {
	h := newHarness(t)
	_, ses := h.http("POST", "/v1/"+testDatabase+"/sessions", "{}")
	path := "/v1/" + ses["name"].(string)
	const (
		payload   = "Invalid JSON payload received. "
		parameter = ": Cannot bind query parameter. "
	)
	for _, c := range []struct{ path, body, text string }{
		{path + ":commit", `{"singleUseTransaction":{"readWrite":{}},"mutation":[]}`, payload + `Unknown name "mutation": Cannot find field.`},
		{path + ":commit", `{"mutations":null,"singleUseTransaction":null,"mutation":[]}`, payload + `Unknown name "mutation": Cannot find field.`},
		{path + ":commit", `{"mutations":[{"insert":{"table":"Singers"}},{"insert":{"tabel":"Singers"}}]}`, payload + `Unknown name "tabel" at 'mutations[1].insert': Cannot find field.`},
		{path + ":commit", `{"mutations":[{"insert":{"columns":["A",5]}}]}`, `Invalid value at 'mutations[0].insert.columns[1]' (TYPE_STRING), 5`},
		{path + ":commit", `{"maxCommitDelay":"soon"}`, `Invalid value at 'max_commit_delay' (type.googleapis.com/google.protobuf.Duration), "soon"`},
		{path + ":executeSql", `{"sql":"SELECT 1","parms":{}}`, payload + `Unknown name "parms": Cannot find field.`},
		{path + ":executeSql", `{"sql":"SELECT 1","queryMode":"PROFFILE"}`, `Invalid value at 'query_mode' (type.googleapis.com/google.spanner.v1.ExecuteSqlRequest.QueryMode), "PROFFILE"`},
		{path + ":executeSql", `{"sql":"SELECT @a","params":{"a":"1"},"paramTypes":{"b":{"code":"INT64"},"a":{"code":"INT46"}}}`,
			`Invalid value at 'param_types[1].value.code' (type.googleapis.com/google.spanner.v1.TypeCode), "INT46"`},
		{path + ":executeSql", `{"sql":"SELECT 1","paramTypes":{"a":` + strings.Repeat(`{"arrayElementType":`, 20) + `{"cod":1}` + strings.Repeat("}", 20) + `}}`,
			payload + `Unknown name "cod" at 'param_types[0].value` + strings.Repeat(".array_element_type", 20) + `': Cannot find field.`},
		{path + ":executeSql?querymode=PLAN", `{"sql":"SELECT 1"}`, payload + `Unknown name "querymode"` + parameter + `Field 'querymode' could not be found in request message.`},
		{path + ":executeSql?queryOptions.optimizer=1", `{"sql":"SELECT 1"}`, payload + `Unknown name "queryOptions.optimizer"` + parameter + `Field 'optimizer' could not be found in request message.`},
		{path + ":executeSql?sql.text=1", `{}`, payload + `Unknown name "sql.text"` + parameter + `Field 'text' could not be found in request message.`},
		{path + ":executeSql?queryOptions=1", `{}`, payload + `Unknown name "queryOptions"` + parameter + `'queryOptions' is a message type. Parameters can only be bound to primitive types.`},
		{path + ":executeSql?queryMode=FAST", `{}`, `Invalid value at 'query_mode' (type.googleapis.com/google.spanner.v1.ExecuteSqlRequest.QueryMode), "FAST"`},
		{"/v1/" + testDatabase + "/sessions", `{"session":{"labels":{"a":"b","c":5}}}`, `Invalid value at 'session.labels[1].value' (TYPE_STRING), 5`},
		{"/v1/" + testDatabase + "/sessions", `{"session":{"label":{}}}`, payload + `Unknown name "label" at 'session': Cannot find field.`},
	} {
		status, reply := h.http("POST", c.path, c.body)
		failure, _ := reply["error"].(map[string]any)
		if status != 400 || failure["status"] != "INVALID_ARGUMENT" || failure["message"] != c.text {
			t.Errorf("%s %s:\n%d %v, want %s", c.path, c.body, status, failure["message"], c.text)
		}
	}
	for _, body := range []string{"[1]", `{"sql":`, `{"sql":"a","sql":"b"}`, `{"keySet":3}`, strings.Repeat(`{"paramTypes":`, 100_000), `{"paramTypes":{"a":` + strings.Repeat(`{"arrayElementType":`, 1_000_000)} {
		if status, reply := h.http("POST", path+":executeSql", body); status != 400 {
			t.Errorf("%.40s: %d %v", body, status, reply)
		}
	}
	standard := "?$alt=json&alt=json&fields=*&key=k&prettyPrint=false&quotaUser=me&$.xgafv=1&upload_protocol=raw&queryMode=PLAN"
	status, reply := h.http("POST", path+":executeSql"+standard, `{"sql":"SELECT 1","paramTypes":null}`)
	if stats, _ := reply["stats"].(map[string]any); status != 200 || stats["queryPlan"] == nil {
		t.Errorf("standard parameters: %d %v", status, reply)
	}
}

// A slowBody is the body of a request that arrives slowly. Each Read calls the function arrive, which moves the test's
// clock.
type slowBody struct {
	io.Reader
	arrive func()
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.arrive()
	return b.Reader.Read(p)
}

// TestSlowUpload: the latency of a request does not include the time in which its client sends it.
func TestSlowUpload(t *testing.T) {
	var passed atomic.Int64
	begin := time.Now()
	h := newHarnessAt(t, func() time.Time { return begin.Add(time.Duration(passed.Load())) })
	body := &slowBody{strings.NewReader("{}"), func() { passed.Add(int64(time.Minute)) }}
	reply := httptest.NewRecorder()
	h.server.http.Handler.ServeHTTP(reply, httptest.NewRequestWithContext(h.ctx, http.MethodPost, "http://localhost/v1/"+testDatabase+"/sessions", body))
	timing := strings.Join(reply.Header().Values("Server-Timing"), ", ")
	if reply.Code != http.StatusOK || !strings.Contains(timing, "total; dur=0.000") {
		t.Errorf("answered %d, server-timing %q", reply.Code, timing)
	}
}
