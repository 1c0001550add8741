package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"
)

// The profiles of CPU time that a run keeps, for go tool pprof.
const (
	serverProfile = "server.pprof"
	clientProfile = "client.pprof"
)

// profile keeps profiles of this program and of the server for a time, in a directory, and returns when they are complete.
func (s *server) profile(ctx context.Context, dir string, lasts time.Duration) (err error) {
	if s.process == nil || s.process.http == "" {
		return errors.New("only the embedded server can be profiled")
	}
	own, err := os.Create(filepath.Join(dir, clientProfile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	if err := pprof.StartCPUProfile(own); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", s.process.http, max(1, lasts.Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("profile the server: %s", reply.Status)
	}
	file, err := os.Create(filepath.Join(dir, serverProfile))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, reply.Body)
	return errors.Join(err, file.Close())
}
