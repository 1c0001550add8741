package bench

// metricsURL is where a server that listens for HTTP at an address has its metrics for Prometheus.
func metricsURL(address string) string { return "http://" + address + "/metrics" }
