package harness

import (
	"context"
	"io"
	"log"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Server is a server that answers operations: the target, a control server, or the ceiling (a server that does nothing
// but gRPC).
type Server struct {
	Address string          // HOST:PORT, for connections without TLS; "" for Cloud Spanner
	Process *Process        // nil if the run has not started the process
	CPU     CPUMeter        // nil if the run cannot see the process
	metrics string          // URL of the metrics for Prometheus; "" for none
	Client  *spanner.Client // nil until Connect is called
	// Options are client options that are used in addition to those for the address.
	Options []option.ClientOption
}

// Start runs an executable as the server's process. If executable is "", it is this very program.
func (s *Server) Start(ctx context.Context, executable string, args ...string) (err error) {
	if s.Process, err = StartProcess(ctx, executable, args...); err != nil {
		return err
	}
	s.Address, s.metrics = s.Process.GRPC, ""
	if s.Process.HTTP != "" {
		s.metrics = MetricsURL(s.Process.HTTP)
	}
	if _, err := s.Process.PID().CPU(); err == nil { // else the system is not Linux
		s.CPU = s.Process.PID().CPU
	}
	return nil
}

// Connect opens the server's client for a database. It closes the client that was open before.
func (s *Server) Connect(ctx context.Context, database string) (err error) {
	s.Disconnect()
	s.Client, err = spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{
		DisableNativeMetrics: true,
		Logger:               log.New(io.Discard, "", 0), // only the run may write to the screen
	}, append(PlainTextOptions(s.Address), s.Options...)...)
	return err
}

func (s *Server) Disconnect() {
	if s.Client != nil {
		s.Client.Close()
		s.Client = nil
	}
}

// Stop disconnects and ends the process, if this run has started it.
func (s *Server) Stop() error {
	s.Disconnect()
	if s.Process == nil {
		return nil
	}
	return s.Process.Stop()
}

// Ended returns a channel that closes when the server's process ends. It returns nil if the run did not start a
// process.
func (s *Server) Ended() <-chan struct{} {
	if s.Process == nil {
		return nil
	}
	return s.Process.Ended
}

// PlainTextOptions returns the options that the official client uses when SPANNER_EMULATOR_HOST names a server. A run
// may have clients of several servers, so it cannot use that variable, and sets the options for each client.
func PlainTextOptions(address string) []option.ClientOption {
	if address == "" {
		return nil
	}
	return []option.ClientOption{
		option.WithEndpoint("passthrough:///" + address),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithoutAuthentication(),
		internaloption.SkipDialSettingsValidation(),
	}
}
