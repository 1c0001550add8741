package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// ControlServer is a second server that answers the same requests as the target, on equal data. It differs from the
// target in one thing: the executable or a flag. The run compares the cost of both servers turn by turn.
type ControlServer struct {
	Server
	data string // folder of its data
}

// StartControl stops the target, copies its data, starts the target again and starts a control server on the copy. The
// control server runs the executable ("" is this very program) with the additional flags. Both servers begin with cold
// caches.
func (t *Target) StartControl(ctx context.Context, executable string, flags ...string) (*ControlServer, error) {
	if err := t.Stop(); err != nil {
		return nil, err
	}
	c := &ControlServer{Server: Server{Options: t.Options}, data: filepath.Join(t.Root, "control")}
	if err := os.RemoveAll(c.data); err != nil { // an earlier run that was killed may have left it
		return nil, err
	}
	if err := duplicate(t.Data(), c.data); err != nil {
		return nil, fmt.Errorf("duplicate the data: %w", err)
	}
	if err := t.StartServer(ctx); err != nil {
		return c, fmt.Errorf("start again on the data: %w", err)
	}
	if err := t.Connect(ctx); err != nil {
		return c, err
	}
	if err := c.Start(ctx, executable, append(t.startArguments(c.data), flags...)...); err != nil {
		return c, fmt.Errorf("start the control server: %w", err)
	}
	return c, c.Connect(ctx, t.DatabaseName)
}

// Close stops the control server and removes its data.
func (c *ControlServer) Close() error { return errors.Join(c.Stop(), os.RemoveAll(c.data)) }

// copyOfProgram copies this program's executable to the target's folder, so that the servers run from the copy. The
// clients run in this program itself. A server that runs from the same file as the clients finds code that it shares
// with them in the processor's caches. In a measurement, such a server was 7% cheaper than a server that runs from a
// copy. With the copies, neither the target nor the control server has this advantage.
func (t *Target) copyOfProgram() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	name := filepath.Join(t.Root, "crowfoot-under-test")
	if err := os.RemoveAll(name); err != nil { // an earlier run that was killed may have left it
		return "", err
	}
	if err := copyFile(program, name); err != nil {
		return "", err
	}
	return name, os.Chmod(name, 0o700)
}

// maxRegression is the highest ratio that a release may have: the cost of the target divided by the cost of the control
// server.
const maxRegression = 1.03

// besideControl returns the experiments with only the target's paths, each followed by the same path on the control
// server c. It drops paths of other servers, paths without a server, and paths with a Beside function, because the run
// compares only the two servers.
func besideControl(list []Experiment, c *Server) (out []Experiment) {
	for _, e := range list {
		both := e
		both.Paths, both.Pairs = nil, nil
		for _, p := range e.Paths {
			if p.Server != nil || p.Local || p.Beside != nil {
				continue
			}
			old := p.As(p.Name+onControl, c)
			both.Paths = append(both.Paths, p, old)
			both.Pairs = append(both.Pairs, [2]string{p.Name, old.Name})
		}
		if len(both.Paths) > 0 {
			out = append(out, both)
		}
	}
	return out
}

// onControl is the end of the names of paths on the control server.
const onControl = ", control"

// controlFigures returns figures that compare the two paths of each pair that besideControl made. They compare server
// CPU and latency.
func controlFigures(list []Experiment) (figures []report.Figure) {
	for _, e := range list {
		for _, pair := range e.Pairs {
			for _, metric := range []report.Metric{report.ServerCPU, report.MedianLatency} {
				figures = append(figures, report.Figure{
					Name: fmt.Sprintf("%s, %s: %s, this / control", e.Title, pair[0], metric), Metric: metric,
					Left: report.RefTo(e.Name, pair[0]), Right: report.RefTo(e.Name, pair[1]), Target: maxRegression,
				})
			}
		}
	}
	return figures
}

// tableSuffix is the end of the names of the engine's table files. The engine never changes such a file. So a copy of
// the data does not need copies of these files, but only hard links to them.
const tableSuffix = ".sst"

// duplicate copies a directory. For table files it makes hard links, and copies all other files.
func duplicate(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case filepath.Ext(name) == tableSuffix:
			return os.Link(name, target)
		}
		return copyFile(name, target)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
