package grpc

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// healthInterval is how often the health is checked for clients that watch it.
const healthInterval = time.Second

// health implements grpc.health.v1.Health: https://github.com/grpc/grpc/blob/master/doc/health-checking.md. All
// services have the same health. The service named "" is the whole server.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	services []string
	serving  func() bool
	stopping <-chan struct{} // closed when the server begins to stop
}

// RegisterHealth registers gRPC's own services: grpc.health.v1, and both versions of grpc.reflection. Call it before
// Serve. The server is healthy while serving returns true and the channel stopping is not closed.
func (s *Server) RegisterHealth(serving func() bool, stopping <-chan struct{}) {
	h := &health{services: []string{""}, serving: serving, stopping: stopping}
	for name := range s.server.GetServiceInfo() {
		h.services = append(h.services, name)
	}
	grpc_health_v1.RegisterHealthServer(s.server, h)
	reflection.Register(s.server)
}

func (h *health) status() grpc_health_v1.HealthCheckResponse_ServingStatus {
	if h.stopped() || !h.serving() {
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_SERVING
}

func (h *health) stopped() bool {
	select {
	case <-h.stopping:
		return true
	default:
		return false
	}
}

// Check implements grpc_health_v1.HealthServer.
func (h *health) Check(_ context.Context, req *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if !slices.Contains(h.services, req.Service) {
		return nil, grpcstatus.Errorf(codes.NotFound, "unknown service %q", req.Service)
	}
	return &grpc_health_v1.HealthCheckResponse{Status: h.status()}, nil
}

// List implements grpc_health_v1.HealthServer.
func (h *health) List(context.Context, *grpc_health_v1.HealthListRequest) (*grpc_health_v1.HealthListResponse, error) {
	reply := &grpc_health_v1.HealthListResponse{Statuses: map[string]*grpc_health_v1.HealthCheckResponse{}}
	status := h.status()
	for _, name := range h.services {
		reply.Statuses[name] = &grpc_health_v1.HealthCheckResponse{Status: status}
	}
	return reply, nil
}

// Watch implements grpc_health_v1.HealthServer. When the server stops, it sends NOT_SERVING and ends the stream.
func (h *health) Watch(req *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer) error {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	known := slices.Contains(h.services, req.Service)
	sent := grpc_health_v1.HealthCheckResponse_UNKNOWN
	for {
		status := grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
		if known {
			status = h.status()
		}
		if status != sent {
			if err := stream.Send(&grpc_health_v1.HealthCheckResponse{Status: status}); err != nil {
				return err
			}
			sent = status
		}
		if h.stopped() {
			return grpcstatus.Error(codes.Unavailable, usererror.ServerStopping().Error())
		}
		select {
		case <-tick.C:
		case <-h.stopping:
		case <-stream.Context().Done():
			return grpcstatus.FromContextError(stream.Context().Err()).Err()
		}
	}
}
