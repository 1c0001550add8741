package report

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine describes the machine and the program with which the figures were measured.
type Machine struct {
	System  string `json:"system"`
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Memory  string `json:"memory"`
	Go      string `json:"go"`
	Commit  string `json:"commit"`         // of this program
	Client  string `json:"spanner_client"` // version of the official client
	GRPC    string `json:"grpc"`
	Command string `json:"command"`
}

const unknown = "unknown"

func thisMachine() Machine {
	m := Machine{
		System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(),
		CPU: lineOf("/proc/cpuinfo", "model name"), Memory: lineOf("/proc/meminfo", "MemTotal"),
		Commit: unknown, Client: unknown, GRPC: unknown, Command: strings.Join(os.Args, " "),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return m
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			m.Commit = s.Value
		}
		if s.Key == "vcs.modified" && s.Value == "true" {
			m.Commit += ", modified"
		}
	}
	for _, d := range info.Deps {
		switch d.Path {
		case "cloud.google.com/go/spanner":
			m.Client = d.Version
		case "google.golang.org/grpc":
			m.GRPC = d.Version
		}
	}
	return m
}

func (m Machine) text() string {
	return fmt.Sprintf("%s, %d cores, %s, %s, commit %s, Spanner client %s, gRPC %s", m.CPU, m.Cores, m.System, m.Go, m.Commit, m.Client, m.GRPC)
}

// lineOf returns the value of the first line "key : value" of a file. It returns unknown if there is none.
func lineOf(file, key string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return unknown
}
