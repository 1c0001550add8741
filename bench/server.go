package bench

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

// server is a server that answers operations: the target, a control server, or the ceiling.
type server struct {
	address string          // HOST:PORT in plain text; "" for Cloud Spanner
	process *process        // nil if the run has not started the process
	cpu     meter           // nil if the run cannot see the process
	metrics string          // URL of the metrics for Prometheus; "" for none
	client  *spanner.Client // nil until connect
	// options are client options, in addition to those of the address.
	options []option.ClientOption
}

// start runs an executable as the server's process. "" is this very program.
func (s *server) start(ctx context.Context, executable string, args ...string) (err error) {
	if s.process, err = spawn(ctx, executable, args...); err != nil {
		return err
	}
	s.address, s.metrics = s.process.grpc, ""
	if s.process.http != "" {
		s.metrics = metricsURL(s.process.http)
	}
	if _, err := s.process.pid().cpu(); err == nil { // else the system is not Linux
		s.cpu = s.process.pid().cpu
	}
	return nil
}

// connect opens the client. It closes the one that was open before.
func (s *server) connect(ctx context.Context, database string) (err error) {
	s.disconnect()
	s.client, err = spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{
		DisableNativeMetrics: true,
		Logger:               log.New(io.Discard, "", 0), // only the run may write to the screen
	}, append(plainText(s.address), s.options...)...)
	return err
}

func (s *server) disconnect() {
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}

// stop disconnects and ends the process, if this run has started it.
func (s *server) stop() error {
	s.disconnect()
	if s.process == nil {
		return nil
	}
	return s.process.stop()
}

// ended returns a channel that closes when the server's process ends. It returns nil if there is no process.
func (s *server) ended() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.ended
}

// plainText returns the options that the client sets itself when SPANNER_EMULATOR_HOST names a server. A run may have
// clients of several servers, so it sets them for each client.
func plainText(address string) []option.ClientOption {
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
