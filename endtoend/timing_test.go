package endtoend_test

import (
	"context"
	"testing"

	"cloud.google.com/go/spanner"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// TestClientMetrics checks that the server sends the header server-timing, for which the official client asks, and that
// the client finds the latencies for its metrics in this header.
func TestClientMetrics(t *testing.T) {
	t.Setenv("SPANNER_DISABLE_AFE_SERVER_TIMING", "false")
	spanner.EnableOpenTelemetryMetrics()
	reader := metric.NewManualReader()
	_, c := clientOf(t, spanner.ClientConfig{OpenTelemetryMeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	ctx := context.Background()
	if _, err := c.Apply(ctx, []*spanner.Mutation{spanner.Insert("T", []string{"K", "V"}, []any{1, 10})}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Single().ReadRow(ctx, "T", spanner.Key{1}, []string{"V"}); err != nil {
		t.Fatal(err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		t.Fatal(err)
	}
	methods := map[string]bool{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					method, _ := p.Attributes.Value("grpc_client_method")
					methods[method.AsString()] = m.Name == "spanner/gfe_latency" && p.Count > 0
				}
			case metricdata.Sum[int64]:
				if m.Name == "spanner/gfe_header_missing_count" {
					t.Errorf("replies without the header: %+v", data.DataPoints)
				}
			}
		}
	}
	for _, method := range []string{"executeCreateSession", "ReadWithOptions"} {
		if !methods[method] {
			t.Errorf("no latency of %s in %v", method, methods)
		}
	}
}
