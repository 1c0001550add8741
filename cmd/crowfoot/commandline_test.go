package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runCrowfoot runs crowfoot with arguments and environment variables, and waits until the command ends. The results are
// the command's standard output, its standard error and its exit status.
func runCrowfoot(t *testing.T, env []string, args ...string) (out, errOut string, status int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), runMain+"=1"), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withoutLog removes the log lines from a server's standard error.
func withoutLog(errOut string) string {
	return regexp.MustCompile(`(?m)^time=.*\n`).ReplaceAllString(errOut, "")
}

// TestRefusals runs command lines that must fail. Each must print one line to standard error and exit with a status
// other than 0.
func TestRefusals(t *testing.T) {
	foreign := filepath.Dir(writeFile(t, "notes.txt", "mine"))
	unfinished := writeFile(t, "unfinished.sql", "CREATE TABLE A (K INT64) PRIMARY KEY (K);\n\nCREATE TABLE B (\n  K INT64\n  V INT64) PRIMARY KEY (K)")
	twice := writeFile(t, "twice.sql", "CREATE TABLE A (K INT64) PRIMARY KEY (K);\n-- again\n  CREATE TABLE A (K INT64) PRIMARY KEY (K);")
	open := writeFile(t, "open.sql", "CREATE TABLE A (K INT64)\n  PRIMARY KEY ('K")
	database := []string{"--database", crashDatabase, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"}
	for _, c := range []struct {
		env    []string
		args   []string
		want   string
		status int
	}{
		{nil, []string{"start", "--data", foreign}, "not a Crowfoot data directory", exitFailure},
		{nil, []string{"start", "--data", filepath.Join(foreign, "notes.txt")}, "it is a file, want a directory", exitUsage},
		{nil, []string{"start", "--data", ""}, `--data is "": want a directory`, exitUsage},
		{nil, []string{"start", "--in-memory", "--database", "nonsense"}, `--database is "nonsense": want projects/P/instances/I/databases/D`, exitUsage},
		{nil, append([]string{"start", "--ddl", filepath.Join(foreign, "missing.sql")}, database...), "missing.sql: no such file", exitUsage},
		{nil, append([]string{"start", "--in-memory", "--ddl", unfinished}, database...), "unfinished.sql:5:3: syntax error: ", exitFailure},
		{nil, append([]string{"start", "--in-memory", "--ddl", twice}, database...), "twice.sql:3:16: Duplicate name in schema: A.", exitFailure},
		{nil, append([]string{"start", "--in-memory", "--ddl", open}, database...), "open.sql:2:16: syntax error: ", exitFailure},
		{nil, []string{"start", "--in-memory", "--grpc", "127.0.0.1:none"}, `--grpc is "127.0.0.1:none": want HOST:PORT`, exitUsage},
		{nil, []string{"start", "--in-memory", "--grpc", "127.0.0.1:99999"}, `--grpc is "127.0.0.1:99999": want HOST:PORT`, exitUsage},
		{[]string{"CROWFOOT_HTTP=foo"}, []string{"start", "--in-memory"}, `CROWFOOT_HTTP is "foo": want HOST:PORT`, exitUsage},
		{nil, []string{"start", "--in-memory", "--cors-origin", "foo"}, `--cors-origin is "foo": foo is not an origin`, exitUsage},
		{nil, []string{"start", "--in-memory", "--http-host", "http://x"}, `--http-host is "http://x": want a host name alone`, exitUsage},
		{nil, []string{"start", "--in-memory", "--ddl", twice}, "--ddl needs --database", exitUsage},
		{[]string{"CROWFOOT_DDL=" + twice}, []string{"start", "--in-memory"}, "CROWFOOT_DDL needs --database", exitUsage},
		{nil, append([]string{"start", "--proto-descriptors-file", "shop.pb"}, database...), "--proto-descriptors-file needs --ddl", exitUsage},
		{nil, append([]string{"start", "--in-memory", "--ddl", twice, "--proto-descriptors-file", "missing.pb"}, database...), "missing.pb: no such file", exitUsage},
		{nil, []string{"start", "--in-memory", "--data", "d"}, "--in-memory and --data contradict", exitUsage},
		{[]string{"CROWFOOT_IN_MEMORY=true", "CROWFOOT_DATA=d"}, []string{"start"}, "CROWFOOT_IN_MEMORY and CROWFOOT_DATA contradict", exitUsage},
		{[]string{"CROWFOOT_LOG_LEVEL=loud"}, []string{"start"}, `CROWFOOT_LOG_LEVEL is "loud": want one of error, warn, info, debug`, exitUsage},
		{[]string{"CROWFOOT_IN_MEMORY=maybe"}, []string{"start"}, `CROWFOOT_IN_MEMORY is "maybe": want true or false`, exitUsage},
		{nil, []string{"start", "--statistics=maybe"}, `--statistics is "maybe": want true or false`, exitUsage},
		{nil, []string{"start", "--log-level", "loud"}, `--log-level is "loud": want one of error, warn, info, debug`, exitUsage},
		{nil, []string{"start", "--in-memory", "--memory", "1MiB"}, "want a size of at least 512MiB, such as 2GiB: a number of bytes, or with the unit MiB, GiB or TiB", exitUsage},
		{nil, []string{"start", "--in-memory", "extra"}, `start takes no argument "extra"`, exitUsage},
		{nil, []string{"start", "--dta", "d"}, "unknown flag: --dta", exitUsage},
		{nil, []string{"strat"}, `unknown command "strat"; did you mean start?`, exitUsage},
		{nil, []string{"strat", "--help"}, `unknown command "strat"; did you mean start?`, exitUsage},
		{nil, []string{"bench", "acess", "-h"}, `unknown command "bench acess"; did you mean access?`, exitUsage},
		{nil, []string{"help", "strat"}, `unknown command "strat"; did you mean start?`, exitUsage},
		{nil, []string{"bench", "acess"}, `unknown command "bench acess"; did you mean access?`, exitUsage},
		{nil, []string{"bench", "points", "--clients", "many"}, "want numbers like 1,8,32", exitUsage},
		{nil, []string{"bench", "points", "--seconds", "-1"}, "want seconds from 0", exitUsage},
		{nil, []string{"bench", "own"}, "own needs at least one file", exitUsage},
		{nil, []string{"bench", "own", "--sql", "missing.sql"}, "missing.sql: no such file", exitUsage},
		{nil, []string{"bench", "own", "--rows", "5", "--sql", writeFile(t, "a.sql", "SELECT 1")}, "--rows has no effect without --load", exitUsage},
		{nil, []string{"bench", "own", "--sql", writeFile(t, "a.sql", "SELECT 1")}, "the embedded server has no tables", exitUsage},
		{nil, []string{"bench", "access", "--rows", "-5"}, "--rows must be positive", exitUsage},
		{nil, []string{"bench", "access", "--rows", "5"}, "--keys must be positive and at most --rows", exitUsage},
		{nil, []string{"bench", "access", "--interval", "minute"}, "--interval has no effect without --study", exitUsage},
		{nil, []string{"bench", "access", "--seconds", "5", "--count", "5000"}, "--seconds has no effect beside --count", exitUsage},
		{nil, []string{"bench", "access", "--pid", "5"}, "--pid has no effect without --endpoint", exitUsage},
		{nil, []string{"bench", "access", "--rounds", "0"}, "--rounds must be positive", exitUsage},
		{nil, []string{"bench", "access", "--clients", "0"}, "--clients must be from 1", exitUsage},
		{nil, []string{"bench", "access", "--endpoint", "127.0.0.1:1"}, "--endpoint needs --database", exitUsage},
		{nil, []string{"bench", "writes", "--batch", "0"}, "--batch needs positive numbers", exitUsage},
		{nil, []string{"bench", "writes", "--columnar", "--control", "crowfoot"}, "--columnar takes no --control", exitUsage},
		{nil, []string{"bench", "retrieval", "-n", "0"}, "--readers must be from 1", exitUsage},
		{nil, []string{"bench", "retrieval", "--table", "lineitem"}, "--table must be customer or orders", exitUsage},
		{nil, []string{"bench", "retrieval", "--java", "java"}, "--java has no effect without --jars", exitUsage},
		{nil, []string{"bench", "points", "--database", crashDatabase}, "takes no --database", exitUsage},
		{nil, []string{"bench", "schema", "--database", crashDatabase}, "takes no --database", exitUsage},
		{nil, []string{"bench", "memory", "--heavy", "-1"}, "--heavy is -1: want from 1", exitUsage},
		{nil, []string{"bench", "memory", "--for", "0s"}, "--for is 0s: want more than 0", exitUsage},
		{nil, []string{"bench", "memory", "--kinds", "none"}, `--kinds has "none": want of `, exitUsage},
		{nil, []string{"bench", "memory", "--memory", "2"}, `--memory is "2": want a size such as 2GiB`, exitUsage},
		{nil, []string{"bench", "streams", "--rows", "0"}, "--rows is 0: want at least 1", exitUsage},
		{nil, []string{"bench", "soak", "--for", "1m"}, "has room for fewer than three lives", exitUsage},
		{nil, []string{"import", "a.parquet", "--table", "T", "--database", crashDatabase, "--no-header"}, "--no-header has no effect on files of the format parquet", exitUsage},
		{nil, []string{"import", "a.jsonl", "--table", "T", "--database", crashDatabase, "--null", "x"}, "--null has no effect on files of the format jsonl", exitUsage},
		{nil, []string{"import", "a.csv", "--table", "T", "--database", crashDatabase, "--rejects", "x"}, "--rejects has no effect without --max-rejects", exitUsage},
		{nil, []string{"import"}, "import needs at least one file", exitUsage},
		{nil, []string{"import", "a.csv"}, "import needs --table TABLE", exitUsage},
		{nil, []string{"import", "a.csv", "--table", "T"}, "import needs --database projects/P/instances/I/databases/D", exitUsage},
		{nil, []string{"import", "a.csv", "--table", "T", "--format", "xls"}, `--format is "xls": want one of csv, tbl`, exitUsage},
		{nil, []string{"import", "a.csv", "--table", "T", "--mode", "x"}, `--mode is "x": want one of insert-or-update, insert, replace`, exitUsage},
		{nil, []string{"import", "nothing-*.csv", "--table", "T", "--database", crashDatabase}, "no file matches nothing-*.csv", exitFailure},
		{nil, []string{"export"}, "export needs --to DIR", exitUsage},
		{nil, []string{"export", "--to", "x", "--format", "xls"}, `--format is "xls"`, exitUsage},
		{nil, []string{"export", "--to", "x", "--at", "noon", "--database", crashDatabase}, `--at is "noon": want a timestamp`, exitUsage},
		{nil, []string{"watch"}, "watch needs --database projects/P/instances/I/databases/D", exitUsage},
		{nil, []string{"watch", "--database", "d"}, `--database is "d": want projects/P/instances/I/databases/D`, exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--limit", "0"}, "--limit is 0: want at least 1", exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--interval", "0s"}, "--interval is 0s: want more than 0", exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--interval", "1s", "--max-interval", "10ms"}, "--max-interval is 10ms: want at least --interval, 1s", exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--prune", "-1s"}, "--prune is -1s: want an age", exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--prune", "24h", "--change-sets", "CHANGE_SETS"}, "--prune and --change-sets contradict each other: the tables that are watched have no commit timestamp to prune", exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--change-sets", "a,b,c,d,e"}, `--change-sets is "a,b,c,d,e": want at most four names`, exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--stream", "S", "--from", "beginning"}, "--from is beginning: a change stream has the changes of its retention period only", exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--stream", "S", "--hint", "@{FORCE_INDEX=I}"}, "--stream and --hint contradict each other", exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--hint", "T=FORCE_INDEX"}, `--hint is "T=FORCE_INDEX": want [TABLE=]@{HINT=VALUE}`, exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--repository", "none/x"}, `--repository is "none/x": there is no directory none`, exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--from", "yesterday"}, `--from is "yesterday": want now, beginning, or a timestamp`, exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--repository", "spanner:d"}, `--repository is "spanner:d": want a file, spanner, spanner:projects/P`, exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--exec-acknowledges"}, "--exec-acknowledges needs --exec", exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--exec", "cat", "--post", "http://x"}, "--exec and --post contradict each other", exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--post", "x"}, `--post is "x": want a URL`, exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--post", "http://x", "--post-mode", "b"}, `--post-mode is "b": want structured or binary`, exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--post", "http://x", "--post-header", "b"}, `--post-header is "b": want NAME: VALUE`, exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--post", "http://x", "--post-connections", "0"}, "--post-connections is 0: want at least 1", exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--pubsub-topic", "t", "--pubsub-format", "xml"}, `--pubsub-format is "xml": want json or avro`, exitUsage},
		{nil, []string{"watch", "--database", crashDatabase, "--shard-column", "S", "--shard-interval", "x"}, `--shard-interval is "x": want one of `, exitUsage},
		{[]string{"CROWFOOT_WATCH_LIMIT=x"}, []string{"watch", "--database", crashDatabase}, `CROWFOOT_WATCH_LIMIT is "x": `, exitUsage},
		{nil, []string{"bench", "watch", "-w", "0"}, "-w must be a positive number", exitUsage},
		{nil, []string{"bench", "watch", "-m", "0"}, "-m must be from 1", exitUsage},
		{nil, []string{"bench", "watch", "--numWatchers", "38"}, "-n must be at most 37 watchers, not 38", exitUsage},
		{nil, []string{"bench", "watch", "--disableShardProvider", "-n", "2"}, "--disable-shard-provider goes with one watcher", exitUsage},
		{nil, []string{"bench", "watch", "-p", "PT"}, "want a duration like 1.5s or PT1.5S", exitUsage},
		{nil, []string{"bench", "watch", "--matrix", "--capacity"}, "--matrix does not go with --capacity", exitUsage},
		{nil, []string{"bench", "watch", "-i", "i"}, "--instance needs --database", exitUsage},
		{nil, []string{"man"}, "man takes one argument", exitUsage},
	} {
		out, errOut, status := runCrowfoot(t, c.env, c.args...)
		if c.status == exitFailure {
			errOut = withoutLog(errOut)
		}
		lines := 1
		if strings.HasSuffix(errOut, " ^\n") { // two more lines show the wrong line of SQL, and a caret below the error
			lines = 3
		}
		if !strings.Contains(errOut, c.want) || strings.Count(errOut, "\n") != lines || !strings.HasPrefix(errOut, "crowfoot: ") || out != "" || status != c.status {
			t.Errorf("%v %v: status %d, %q, and on standard output %q; want status %d and one line that says %q", c.env, c.args, status, errOut, out, c.status, c.want)
		}
	}
	if _, errOut, _ := runCrowfoot(t, nil, "start", "--data", filepath.Join(foreign, "new"), "--grpc", "foo"); errOut == "" {
		t.Error("an address that is none is taken")
	}
	entries, err := os.ReadDir(foreign)
	if text, textErr := os.ReadFile(filepath.Join(foreign, "notes.txt")); err != nil || len(entries) != 1 || string(text) != "mine" || textErr != nil {
		t.Errorf("the foreign directory has now %v, %v, and the file %q, %v", entries, err, text, textErr)
	}
}

// TestPortInUse checks that a second server cannot listen on the address of the first.
func TestPortInUse(t *testing.T) {
	_, _, address := startAt(t, nil)
	_, errOut, status := runCrowfoot(t, nil, "start", "--in-memory", "--grpc", "127.0.0.1:0", "--http", address)
	if !strings.HasPrefix(errOut, "crowfoot: --http is ") || !strings.Contains(errOut, address+": bind: address already in use\n") || strings.Count(errOut, "\n") != 1 || status != exitFailure {
		t.Errorf("status %d, %q", status, errOut)
	}
}

// TestDataInUse checks that a second server cannot open the data directory of the first.
func TestDataInUse(t *testing.T) {
	data := t.TempDir()
	startServer(t, "--data", data)
	_, errOut, status := runCrowfoot(t, nil, "start", "--data", data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
	errOut = withoutLog(errOut)
	if !strings.Contains(errOut, data) || strings.Count(errOut, "\n") != 1 || status != exitFailure {
		t.Errorf("status %d, %q", status, errOut)
	}
}

// TestHelp checks all ways to ask for help, for the version and for shell completions. Each must print its answer to
// standard output and succeed. If crowfoot, or crowfoot bench, is run without a command, it must list its commands on
// standard error and fail.
func TestHelp(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"help"}, "start "},
		{[]string{"-h"}, "start "},
		{[]string{"--help"}, "start "},
		{[]string{"help", "start"}, "--in-memory "},
		{[]string{"start", "-h"}, "--in-memory "},
		{[]string{"start", "-help"}, "--in-memory "},
		{[]string{"help", "bench"}, "points "},
		{[]string{"bench", "--help"}, "points "},
		{[]string{"help", "bench", "points"}, "--rounds "},
		{[]string{"bench", "own", "-h"}, "@id INT64 1..100000"},
		{[]string{"completion", "zsh"}, "#compdef crowfoot"},
		{[]string{"watch", "-h"}, "--commit-timestamp-column "},
		{[]string{"version"}, "crowfoot "},
		{[]string{"--version"}, "crowfoot "},
		{[]string{cobra.ShellCompRequestCmd, "start", "--log-l"}, "--log-level"},
		{[]string{cobra.ShellCompRequestCmd, "start", "--log-level", ""}, "debug"},
		{[]string{cobra.ShellCompRequestCmd, "help", "bench", ""}, "points"},
	} {
		out, errOut, status := runCrowfoot(t, nil, c.args...)
		if !strings.Contains(out, c.want) || status != 0 {
			t.Errorf("%v: status %d, %q, %q; want %q", c.args, status, out, errOut, c.want)
		}
	}
	for _, args := range [][]string{nil, {"bench"}} {
		out, errOut, status := runCrowfoot(t, nil, args...)
		if out != "" || !strings.Contains(errOut, "Commands:") || status != exitUsage {
			t.Errorf("%v without a command: status %d, %q, %q", args, status, out, errOut)
		}
	}
}

// eachCommand calls visit for c and all commands below it that users see.
func eachCommand(c *cobra.Command, visit func(c *cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			eachCommand(sub, visit)
		}
	}
}

// TestVariables checks that every flag has an environment variable of its own, and that the help names the variable.
func TestVariables(t *testing.T) {
	form := regexp.MustCompile(`^CROWFOOT_[A-Z_]+$`)
	var variables []string
	eachCommand(newRoot(), func(c *cobra.Command) {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			name := variableOf(f)
			if !form.MatchString(name) || !strings.Contains(f.Usage, "["+name+"]") || slices.Contains(names, name) {
				t.Errorf("%s --%s has the variable %q and says %q", c.CommandPath(), f.Name, name, f.Usage)
			}
			names = append(names, name)
		})
		variables = append(variables, names...)
	})
	for _, want := range []string{"CROWFOOT_DATA", "CROWFOOT_IN_MEMORY", "CROWFOOT_GRPC", "CROWFOOT_DATABASE", "CROWFOOT_LOG_LEVEL", "CROWFOOT_BENCH_ENDPOINT"} {
		if !slices.Contains(variables, want) {
			t.Errorf("no flag has the variable %s", want)
		}
	}
}

// TestManual checks that the manual pages contain every command and every flag.
func TestManual(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if out, errOut, status := runCrowfoot(t, nil, "man", dir); status != 0 || out != "" || errOut != "" {
		t.Fatalf("status %d, %q, %q", status, out, errOut)
	}
	eachCommand(newRoot(), func(c *cobra.Command) {
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(string(page), "--"+f.Name) || !strings.Contains(string(page), variableOf(f)) {
				t.Errorf("the page of %s does not tell of --%s", c.CommandPath(), f.Name)
			}
		})
	})
}

func TestDoubleDashes(t *testing.T) {
	got := doubleDashes([]string{"start", "-data", "d", "-statistics=false", "-h", "--ddl", "a-b.sql", "--rate", "-1", "-"})
	want := []string{"start", "--data", "d", "--statistics=false", "-h", "--ddl", "a-b.sql", "--rate", "-1", "-"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
