// Package otlp sends a process's metrics to an OpenTelemetry collector, with OpenTelemetry's own exporters. The metrics
// are those that Prometheus gets from /metrics, with the same names and labels.
//
// OpenTelemetry's environment variables say where and how metrics are sent; without these variables nothing is sent
// (environment.go). A collector that cannot be reached does not disturb the server: the exporter logs that it could not
// send. No count is lost, because counts are cumulative and the next message includes them.
//
// Traces and logs are not sent.
//
// Imports of this module: nothing.
package otlp

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Exporter sends metrics until it is closed. The methods of a nil Exporter do nothing.
type Exporter struct {
	provider *metric.MeterProvider
	log      *slog.Logger
}

// Start begins to send the metrics every OTEL_METRIC_EXPORT_INTERVAL milliseconds, or every 60,000 milliseconds if this
// variable is not set. From then on, errors of OpenTelemetry's library anywhere in the process go to log. If the
// environment does not ask for metrics to be sent, Start returns nil and changes nothing.
func Start(metrics prometheus.Gatherer, log *slog.Logger) (*Exporter, error) {
	protocol, err := wanted()
	if protocol == "" || err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("OpenTelemetry", slog.Any("error", err)) }))
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	ctx := context.Background()
	exporter, err := newExporter(ctx, protocol)
	if err != nil {
		return nil, fmt.Errorf("export metrics by OTLP: %w", err)
	}
	from, err := describe(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(metrics))))
	return &Exporter{metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(from)), log}, nil
}

// newExporter makes an exporter for a protocol. The exporter reads its other settings from the environment, and
// connects when it first sends something.
func newExporter(ctx context.Context, p protocol) (metric.Exporter, error) {
	if p == overGRPC {
		return otlpmetricgrpc.New(ctx)
	}
	return otlpmetrichttp.New(ctx)
}

// describe returns the OpenTelemetry resource, which names the service that sends the metrics. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES override its attributes.
func describe(ctx context.Context) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "crowfoot")),
		resource.WithFromEnv())
}

// Close sends the metrics a last time and stops the exporter. It gives up when ctx ends.
func (x *Exporter) Close(ctx context.Context) {
	if x == nil {
		return
	}
	if err := x.provider.Shutdown(ctx); err != nil {
		x.log.Warn("last metrics not sent", slog.Any("error", err))
	}
}
