package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var rewriteReference = flag.Bool("rewrite-reference", false, "write the pages of docs/reference")

// TestFlagReference checks that docs/reference/flags.md lists all commands and flags.
func TestFlagReference(t *testing.T) {
	var page strings.Builder
	page.WriteString(`# Commands and flags

This page lists what ` + "`crowfoot help`" + ` says about each command and flag. A test makes it from the code.
Where a flag is not given, its environment variable sets it. A list has commas.
`)
	eachCommand(newRoot(), func(c *cobra.Command) {
		if c.HasSubCommands() {
			return
		}
		fmt.Fprintf(&page, "\n## %s\n\n%s.\n", c.CommandPath(), c.Short)
		if usage := c.UseLine(); usage != c.CommandPath() && usage != c.CommandPath()+" [flags]" {
			fmt.Fprintf(&page, "Usage: `%s`\n", usage)
		}
		rows := 0
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			if rows++; rows == 1 {
				page.WriteString("\n| flag | variable | default | |\n|---|---|---|---|\n")
			}
			value, usage := pflag.UnquoteUsage(f)
			usage = strings.TrimSuffix(usage, " ["+variableOf(f)+"]")
			name, byDefault := strings.TrimSpace("--"+f.Name+" "+value), ""
			if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" && f.DefValue != "0" {
				byDefault = "`" + f.DefValue + "`"
			}
			fmt.Fprintf(&page, "| `%s` | `%s` | %s | %s |\n", name, variableOf(f), byDefault, inTable(usage))
		})
	})
	compareReference(t, "flags.md", page.String())
}

// TestMetricReference checks that docs/reference/metrics.md lists all metrics of a server that keeps its data on disk
// and has a columnar copy.
func TestMetricReference(t *testing.T) {
	ddl := writeFile(t, "schema.sql", "CREATE TABLE A (K STRING(36)) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')")
	_, grpc, httpAddress := serveBoth(t, "--data", filepath.Join(t.TempDir(), "data"), "--database", crashDatabase, "--ddl", ddl)
	client := connect(t, grpc)
	defer client.Close()
	if _, err := client.Apply(context.Background(), []*spanner.Mutation{spanner.Insert("A", []string{"K"}, []any{"a"})}); err != nil {
		t.Fatal(err)
	}
	var families map[string]*dto.MetricFamily
	for families["crowfoot_columnar_oldest_chunk_timestamp_seconds"] == nil { // waits until the table has been copied
		reply, err := http.Get("http://" + httpAddress + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err = parser.TextToMetricFamilies(reply.Body)
		reply.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	list := slices.SortedFunc(func(yield func(*dto.MetricFamily) bool) {
		for name, f := range families {
			if strings.HasPrefix(name, "crowfoot_") && !yield(f) {
				return
			}
		}
	}, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	var page strings.Builder
	page.WriteString(`# Metrics

This page lists the metrics of ` + "`/metrics`" + `. A test makes it from a server. Besides these there are
those of Prometheus' library about the process and about Go: ` + "`process_...` and `go_...`" + `.

| metric | type | labels | |
|---|---|---|---|
`)
	for _, f := range list {
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), inTable(f.GetHelp()))
	}
	compareReference(t, "metrics.md", page.String())
}

// inTable escapes a text for a cell of a Markdown table.
func inTable(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// compareReference checks that a page of docs/reference is the page that the test has generated from the code.
func compareReference(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "reference", name)
	if *rewriteReference {
		if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/reference/%s is not what the code makes; go test ./cmd/crowfoot -run Reference -rewrite-reference writes it", name)
	}
}
