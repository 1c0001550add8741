package crowfoot

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/listener"
)

// An OptionError says that a server cannot start with the value of an option: the value is invalid, or the operating
// system refuses it.
type OptionError struct {
	Option string // name of the field of Options
	Value  string
	Reason error
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("crowfoot.Options: %s is %q: %v", e.Option, e.Value, e.Reason)
}

// Unwrap returns the reason, for errors.Is and errors.As.
func (e *OptionError) Unwrap() error { return e.Reason }

// settle checks the options, before the server creates anything. It returns an error if an option is invalid, and it
// sets the defaults of options that are not given.
func (o *Options) settle() error {
	if o.Memory == 0 {
		o.Memory = memory.Default(memory.Machine())
	}
	if err := o.settleData(); err != nil {
		return &OptionError{"Data", o.Data, err}
	}
	checks := []struct {
		option string
		values []string
		check  func(string) error
	}{
		{"GRPC", []string{orFreePort(o.GRPC)}, checkAddress},
		{"HTTP", []string{orFreePort(o.HTTP)}, checkAddress},
		{"Databases", o.Databases, checkDatabase},
		{"Origins", o.Origins, listener.CheckOrigin},
		{"Hosts", o.Hosts, listener.CheckHost},
	}
	for _, c := range checks {
		for _, value := range c.values {
			if err := c.check(value); err != nil {
				return &OptionError{c.option, value, err}
			}
		}
	}
	return nil
}

// settleData makes the path of the data directory absolute, because messages with the path may be read where the
// working directory is not known.
func (o *Options) settleData() error {
	if o.InMemory {
		return nil
	}
	if o.Data == "" {
		return errors.New("want a directory")
	}
	whole, err := filepath.Abs(o.Data)
	if err != nil {
		return err
	}
	o.Data = whole
	if info, err := os.Stat(whole); err == nil && !info.IsDir() {
		return errors.New("it is a file, want a directory")
	}
	return nil
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return errors.New("want HOST:PORT, such as 127.0.0.1:9010, with a port from 0 to 65535")
	}
	return nil
}

func checkDatabase(name string) error {
	if database.CheckDatabaseName(name) != nil {
		return errors.New("want projects/P/instances/I/databases/D; I and D begin with a small letter, and have small letters, digits and hyphens, D of at most 30, underscores too")
	}
	return nil
}

// warn logs a warning for each option that may be a mistake.
func (o *Options) warn(addresses ...net.Addr) {
	if machine := memory.Machine(); machine > 0 && o.Memory > machine {
		o.Log.Warn("the server may take more memory than the machine or container has", "memory_bytes", o.Memory, "machine_bytes", machine)
	}
	open := slices.DeleteFunc(addresses, func(a net.Addr) bool { return listener.IsLoopback(a) })
	if len(open) > 0 {
		o.Log.Warn("other machines can reach the server, and there is neither authentication nor encryption", "addresses", open)
	}
}
