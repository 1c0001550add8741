package formats

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/crowfoot-db/crowfoot/kv"
)

// Databases are the names of the databases in each data directory. The second database is empty.
var Databases = []string{"projects/p/instances/i/databases/music", "projects/p/instances/other/databases/small"}

// File returns the name of a file in testdata for a format. The file with the ending tgz is the packed directory, and
// the file with the ending txt has its schema and rows as text.
func File(f kv.Format, ending string) string { return fmt.Sprintf("%d.%s", f, ending) }

// Unpack calls write with the name and the content of each file in a packed data directory.
func Unpack(file string, write func(name string, text []byte) error) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	packed, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := write(h.Name, text); err != nil {
			return err
		}
	}
}
