package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var readmeTransfer = regexp.MustCompile(`(?m)^    crowfoot ((?:import|export) .*)$`)

// TestReadmeTransfer runs the README's commands of import and export, as they are written there but for the port, one after the other.
func TestReadmeTransfer(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := readmeTransfer.FindAllStringSubmatch(string(readme), -1)
	if len(commands) < 2 {
		t.Fatalf("found %d commands", len(commands))
	}
	_, address := serve(t, "--in-memory", "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", "CREATE TABLE customer (c_custkey INT64 NOT NULL, c_name STRING(25)) PRIMARY KEY (c_custkey)"))
	dir := t.TempDir()
	var rows []byte
	for i := range 5000 {
		rows = fmt.Appendf(rows, "%d|Customer#%09d|\n", i, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "customer.tbl"), rows, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		cmd := exec.Command(os.Args[0], strings.Fields(strings.ReplaceAll(c[1], "127.0.0.1:9010", address))...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), runMain+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "ed 5000 rows in ") {
			t.Errorf("%s: %v\n%s", c[1], err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "customers", "manifest.json")); err != nil {
		t.Error(err)
	}
}
