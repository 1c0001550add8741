// Command write adds the data directory of a release to those in package formats. Run it when a release is made, in the
// root of the checkout:
//
//	go run ./endtoend/formats/write /path/of/crowfoot
//
// It lets the release's program write a data directory, kills the program twice, packs the directory, and stores the
// rows that a client reads from it.
//
// Imports of this module: endtoend/formats, kv.
package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/crowfoot-db/crowfoot/endtoend/formats"
	"github.com/crowfoot-db/crowfoot/kv"
)

// folder is the folder of the packed directories, relative to the root of the checkout.
const folder = "endtoend/formats/testdata"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./endtoend/formats/write PROGRAM, in the root of the checkout")
		os.Exit(64)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program string) error {
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("this is not the root of the checkout: %w", err)
	}
	scratch, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	data := filepath.Join(scratch, "data")
	// At the end, the data of the first step are in table files, because the second start of the program has moved them
	// there from the log. The data of the second step are in the log.
	for _, step := range []func(context.Context, *clients) error{fill, change} {
		if err := withServer(program, data, func() error {
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			defer c.close()
			return step(ctx, c)
		}); err != nil {
			return err
		}
	}
	mark, err := os.ReadFile(filepath.Join(data, "CROWFOOT"))
	if err != nil {
		return err
	}
	var format kv.Format
	if _, err := fmt.Sscanf(string(mark), "crowfoot data directory, format %d\n", &format); err != nil {
		return fmt.Errorf("the mark says %q: %w", mark, err)
	}
	if err := store(data, filepath.Join(folder, formats.File(format, "tgz"))); err != nil {
		return err
	}
	return withServer(program, data, func() error {
		text, err := formats.Dump(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, formats.File(format, "txt")), []byte(text), 0o644)
	})
}

// withServer starts the release's program on a data directory, sets SPANNER_EMULATOR_HOST to its address, calls f, and
// kills the program.
func withServer(program, data string, f func() error) error {
	cmd := exec.Command(program, "start", "--data", data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0",
		"--database", formats.Databases[0], "--database", formats.Databases[1])
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	var address, http string
	if _, err := fmt.Sscanf(line, "crowfoot: ready grpc=%s http=%s", &address, &http); err != nil {
		return fmt.Errorf("ready line %q: %w", line, err)
	}
	if err := os.Setenv("SPANNER_EMULATOR_HOST", address); err != nil {
		return err
	}
	return f()
}

// store packs a data directory into a file: a gzip-compressed tar archive.
func store(dir, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(packed)
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	for _, c := range []interface{ Close() error }{w, packed} {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return out.Close()
}
