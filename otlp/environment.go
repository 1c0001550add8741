package otlp

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// protocol is the protocol by which metrics are sent to a collector. "" means that nothing is sent.
type protocol string

const (
	overGRPC protocol = "grpc"
	overHTTP protocol = "http/protobuf" // the default of OpenTelemetry's specification
)

// wanted returns the protocol that the environment variables ask for. It follows
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ and
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/ with two exceptions. If neither an endpoint nor
// OTEL_METRICS_EXPORTER is set, nothing is sent; by the specification, metrics would be sent to localhost. And a value
// that OpenTelemetry's exporters would log and ignore is an error.
func wanted() (protocol, error) {
	asked, err := asked()
	if !asked || err != nil {
		return "", err
	}
	if err := checkEndpoints(); err != nil {
		return "", err
	}
	name, value := first("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	switch p := protocol(value); p {
	case "":
		return overHTTP, nil
	case overGRPC, overHTTP:
		return p, nil
	}
	return "", fmt.Errorf("%s is %q: want %s or %s", name, value, overGRPC, overHTTP)
}

// asked reports whether the environment variables ask for metrics to be sent.
func asked() (bool, error) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	var exporters []string
	for name := range strings.SplitSeq(env("OTEL_METRICS_EXPORTER"), ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
		case "otlp", "none":
			exporters = append(exporters, name)
		default:
			return false, fmt.Errorf("OTEL_METRICS_EXPORTER is %q: want otlp or none (Prometheus finds the metrics at /metrics in any case)", name)
		}
	}
	if len(exporters) > 0 {
		return slices.Contains(exporters, "otlp"), nil
	}
	_, endpoint := first(endpoints...)
	return endpoint != "", nil
}

var endpoints = []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

func checkEndpoints() error {
	for _, name := range endpoints {
		value := env(name)
		if value == "" {
			continue
		}
		u, err := url.Parse(value)
		if err != nil || !slices.Contains([]string{"http", "https"}, strings.ToLower(u.Scheme)) || u.Hostname() == "" {
			return fmt.Errorf("%s is %q: want a URL such as http://localhost:4318", name, value)
		}
	}
	return nil
}

// first returns the name and the value of the first of the given environment variables that is set.
func first(names ...string) (name, value string) {
	for _, name := range names {
		if value := env(name); value != "" {
			return name, value
		}
	}
	return "", ""
}

func env(name string) string { return strings.TrimSpace(os.Getenv(name)) }
