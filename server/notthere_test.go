package server

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// notThere maps each feature that docs/limits.md lists as missing to a request that needs it. The request is a
// directive of the scripts of TestErrors, such as ddl, and the line below the directive. Missing methods of the API are
// not in this map.
var notThere = map[string][2]string{
	"CREATE SEARCH INDEX":                    {"ddl", "CREATE SEARCH INDEX I ON T(S)"},
	"ALTER SEARCH INDEX":                     {"ddl", "ALTER SEARCH INDEX I ADD COLUMN S"},
	"DROP SEARCH INDEX":                      {"ddl", "DROP SEARCH INDEX I"},
	"Type TOKENLIST":                         {"ddl", "ALTER TABLE T ADD COLUMN L TOKENLIST AS (TOKENIZE_FULLTEXT(S)) HIDDEN"},
	"Table option fulltext_dictionary_table": {"ddl", "CREATE TABLE U (K INT64) PRIMARY KEY (K), OPTIONS (fulltext_dictionary_table = true)"},
	"SEARCH":                                 {"sql", "SELECT K FROM T WHERE SEARCH(S, 'a')"},
	"SEARCH_NGRAMS":                          {"sql", "SELECT K FROM T WHERE SEARCH_NGRAMS(S, 'a')"},
	"SEARCH_SUBSTRING":                       {"sql", "SELECT K FROM T WHERE SEARCH_SUBSTRING(S, 'a')"},
	"SCORE":                                  {"sql", "SELECT SCORE(S, 'a') FROM T"},
	"SCORE_NGRAMS":                           {"sql", "SELECT SCORE_NGRAMS(S, 'a') FROM T"},
	"SNIPPET":                                {"sql", "SELECT SNIPPET(S, 'a') FROM T"},
	"TOKEN":                                  {"sql", "SELECT TOKEN(S) FROM T"},
	"TOKENIZE_BOOL":                          {"sql", "SELECT TOKENIZE_BOOL(TRUE)"},
	"TOKENIZE_FULLTEXT":                      {"sql", "SELECT TOKENIZE_FULLTEXT(S) FROM T"},
	"TOKENIZE_JSON":                          {"sql", "SELECT TOKENIZE_JSON(JSON '{}')"},
	"TOKENIZE_NGRAMS":                        {"sql", "SELECT TOKENIZE_NGRAMS(S) FROM T"},
	"TOKENIZE_NUMBER":                        {"sql", "SELECT TOKENIZE_NUMBER(K) FROM T"},
	"TOKENIZE_SUBSTRING":                     {"sql", "SELECT TOKENIZE_SUBSTRING(S) FROM T"},
	"TOKENLIST_CONCAT":                       {"sql", "SELECT TOKENLIST_CONCAT([S]) FROM T"},
	"DEBUG_TOKENLIST":                        {"sql", "SELECT DEBUG_TOKENLIST(S) FROM T"},
	"CREATE VECTOR INDEX":                    {"ddl", "CREATE VECTOR INDEX I ON T(V) OPTIONS (distance_type = 'COSINE')"},
	"DROP VECTOR INDEX":                      {"ddl", "DROP VECTOR INDEX I"},
	"CREATE MODEL":                           {"ddl", "CREATE MODEL M INPUT (X INT64) OUTPUT (Y INT64) REMOTE OPTIONS (endpoint = '//aiplatform')"},
	"ALTER MODEL":                            {"ddl", "ALTER MODEL M SET OPTIONS (default_batch_size = 1)"},
	"DROP MODEL":                             {"ddl", "DROP MODEL M"},
	"GRANT ON MODEL":                         {"ddl", "GRANT EXECUTE ON MODEL M TO ROLE R"},
	"ML.PREDICT":                             {"sql", "SELECT Y FROM ML.PREDICT(MODEL M, (SELECT 1 AS X))"},
	"CREATE PROPERTY GRAPH":                  {"ddl", "CREATE PROPERTY GRAPH G NODE TABLES (T)"},
	"DROP PROPERTY GRAPH":                    {"ddl", "DROP PROPERTY GRAPH G"},
	"GRAPH":                                  {"sql", "GRAPH G MATCH (n) RETURN n.K"},
	"GRAPH_TABLE":                            {"sql", "SELECT * FROM GRAPH_TABLE(G MATCH (n) RETURN n.K)"},
	"CREATE QUEUE":                           {"ddl", "CREATE QUEUE Q (K INT64, Payload STRING(MAX)) PRIMARY KEY (K)"},
	"ALTER QUEUE":                            {"ddl", "ALTER QUEUE Q SET OPTIONS (receive_mode = 'PULL')"},
	"DROP QUEUE":                             {"ddl", "DROP QUEUE Q"},
	"send":                                   {"commit", `{"send": {"queue": "Q", "key": ["1"], "payload": "a"}}`},
	"ack":                                    {"commit", `{"ack": {"queue": "Q", "key": ["1"]}}`},
	"MUTABLE_KEY_RANGE":                      {"ddl", "CREATE CHANGE STREAM C FOR ALL OPTIONS (partition_mode = 'MUTABLE_KEY_RANGE')"},
	"CREATE OR REPLACE SCHEMA":               {"ddl", "CREATE OR REPLACE SCHEMA X"},
	"ALTER SCHEMA":                           {"ddl", "ALTER SCHEMA X SET OPTIONS (a = 1)"},
	"A remote function":                      {"ddl", "CREATE FUNCTION F(x INT64) RETURNS INT64 NOT DETERMINISTIC LANGUAGE REMOTE OPTIONS (endpoint = 'https://x')"},
	"NOT DETERMINISTIC":                      {"ddl", "CREATE FUNCTION F(x INT64) RETURNS INT64 NOT DETERMINISTIC AS (x)"},
	"A function with SQL SECURITY DEFINER":   {"ddl", "CREATE FUNCTION F(x INT64) RETURNS INT64 SQL SECURITY DEFINER AS (x)"},
	"PostgreSQL":                             {"call", `CreateDatabase {"parent": "projects/p/instances/test", "createStatement": "CREATE DATABASE other", "databaseDialect": "POSTGRESQL"}`},
}

// TestNotThere sends a request for each feature that docs/limits.md lists as missing, and checks that the server
// answers UNIMPLEMENTED with the name that this page gives the feature. It also checks that the page lists each feature
// in notThere and each method of the API that the server does not implement.
func TestNotThere(t *testing.T) {
	h := newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, []string{
		"CREATE TABLE T (K INT64 NOT NULL, S STRING(MAX), V ARRAY<FLOAT32>) PRIMARY KEY (K)", "CREATE ROLE R",
	})
	s := &scripted{h, h.session(true)}
	named := namedNotThere(t)
	for _, name := range named {
		request, ok := notThere[name]
		if !ok {
			request = [2]string{"call", name + " {}"}
		}
		got := map[string]func(string) string{"ddl": s.ddl, "commit": s.commit, "sql": s.sql, "call": s.call}[request[0]](request[1])
		if text, is := strings.CutPrefix(got, codes.Unimplemented.String()+": "); !is || !strings.Contains(text, name) {
			t.Errorf("docs/limits.md says that there is no %s, but %s is answered: %s", name, request[1], got)
		}
	}
	for name := range notThere {
		if !slices.Contains(named, name) {
			t.Errorf("docs/limits.md does not name %s", name)
		}
	}
	for _, service := range apiServices {
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			if m.IsStreamingServer() || slices.Contains(named, string(m.Name())) {
				continue
			}
			if _, err := h.invoke(string(m.Name()), "{}"); status.Code(err) == codes.Unimplemented {
				t.Errorf("docs/limits.md does not name the method %s", m.Name())
			}
		}
	}
}

// namedNotThere returns the names of the features that docs/limits.md lists as missing.
func namedNotThere(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## What is not there\n")
	if !found {
		t.Fatal("docs/limits.md has no section about what is not there")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	_, list, _ := strings.Cut(section, "\n- ")
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	return names
}
