package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

var (
	readmeFile    = regexp.MustCompile(`(?s)    cat > (\S+) <<'END'\n(.*?)\n    END\n`)
	readmeStart   = regexp.MustCompile(`(?m)^    (?:go run \./cmd/)?crowfoot (start .*)$`)
	readmeRequest = regexp.MustCompile(`(?m)(^    (db=.*|session=.*|curl .*|  .*)\n)+`)
)

// TestReadme follows the README in an empty folder: it starts the servers one after the other, each twice, as it is written there, but for the
// ports, and makes the request of the last one.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	dir := t.TempDir()
	t.Chdir(dir)
	env := []string{"CROWFOOT_GRPC=127.0.0.1:0", "CROWFOOT_HTTP=127.0.0.1:0"}
	starts := readmeStart.FindAllStringSubmatchIndex(readme, -1)
	if len(starts) < 2 {
		t.Fatalf("found %d commands", len(starts))
	}
	for i, at := range starts {
		for _, file := range readmeFile.FindAllStringSubmatch(readme[:at[0]], -1) {
			if err := os.WriteFile(file[1], []byte(strings.ReplaceAll(file[2], "\n    ", "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := strings.Fields(readme[at[2]:at[3]])[1:]
		for again := range 2 {
			cmd, _, address := startCommand(t, env, args...)
			if i == len(starts)-1 && again == 0 {
				readmeQuery(t, readme, address)
			}
			cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := os.Stat("crowfoot-data"); err != nil {
		t.Error(err)
	}
}

// readmeQuery runs the README's request in a shell.
func readmeQuery(t *testing.T, readme, address string) {
	t.Helper()
	begin := strings.Index(readme, "    db=http")
	script := readmeRequest.FindString(readme[max(begin, 0):])
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("the request is not made: ", err)
		return
	}
	out, err := exec.Command("sh", "-c", strings.ReplaceAll(script, "127.0.0.1:9020", address)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "SingersByName") {
		t.Errorf("%s gives %v, %s", script, err, out)
	}
}
