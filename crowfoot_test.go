package crowfoot_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot"
)

const name = "projects/p/instances/i/databases/d"

// client starts a server with one table and connects the official client to it.
func client(t *testing.T) (*crowfoot.Server, *spanner.Client) {
	t.Helper()
	s := crowfoot.ForTest(t, name, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	c, err := spanner.NewClientWithConfig(context.Background(), name, spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return s, c
}

func TestForTest(t *testing.T) {
	s, c := client(t)
	ctx := context.Background()
	if _, err := c.Apply(ctx, []*spanner.Mutation{spanner.Insert("T", []string{"K", "V"}, []any{1, 10})}); err != nil {
		t.Fatal(err)
	}
	row, err := c.Single().ReadRow(ctx, "T", spanner.Key{1}, []string{"V"})
	if err != nil {
		t.Fatal(err)
	}
	var v int64
	if err := row.Column(0, &v); err != nil || v != 10 {
		t.Errorf("read %d, %v", v, err)
	}
	reply, err := http.Get("http://" + s.HTTP + "/v1/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		t.Errorf("REST answers %s", reply.Status)
	}
	shown, err := http.Get("http://" + s.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Body.Close()
	text, err := io.ReadAll(shown.Body)
	for _, want := range []string{"crowfoot_storage_log_written_bytes_total ", "crowfoot_storage_writable 1\n", "crowfoot_storage_refused_commits_total 0\n", "crowfoot_memory_limit_bytes "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s: %v", want, err)
		}
	}
}
