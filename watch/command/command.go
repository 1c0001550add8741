// Package command hands changes to a command that keeps running: as JSON lines, the form of package jsonlines, on its standard input.
//
// What acknowledges a change, so that the checkpoint may move on, is for the program to choose. Without Command.Acknowledge it is that the pipe to the command
// has taken it: if the command then ends by an error or a crash, what it had not read yet (64 KiB at most, on Linux) is lost to it. With Acknowledge it is a
// line that the command writes for each line that it is done with; then nothing is lost, and what was not acknowledged comes again.
//
// Imports of this module: watch, watch/jsonlines.
package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/watch"
	"github.com/crowfoot-db/crowfoot/watch/jsonlines"
)

// Command is a handler that starts a command with the first change, and again when it has ended with an error.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Acknowledge has each line that the command writes to its standard output acknowledge one change, in the order of the changes.
	Acknowledge bool
	// Stdout takes the command's standard output unless it acknowledges, Stderr its standard error. nil discards.
	Stdout, Stderr io.Writer

	mu      sync.Mutex
	running *process
	lines   []byte
}

// Exit statuses of a shell: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02.
const (
	cannotRun = 126
	notFound  = 127
)

// ErrEnded is within the error that ends the watcher once the command has ended with exit status 0, as head does after some lines.
var ErrEnded = errors.New("the command has ended")

// Handle hands one transaction to the command.
func (c *Command) Handle(ctx context.Context, tx *watch.Transaction) error {
	return c.HandleBatch(ctx, []*watch.Transaction{tx})
}

// HandleBatch hands transactions to the command and waits until all are acknowledged.
func (c *Command) HandleBatch(ctx context.Context, list []*watch.Transaction) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines, err = jsonlines.AppendLines(c.lines[:0], list); err != nil {
		return err
	}
	if c.running != nil && c.running.abandoned {
		c.running.end() // how it ends says nothing: its input may have ended within a batch
		c.running = nil
	}
	if c.running == nil {
		if c.running, err = c.start(); err != nil {
			return err
		}
	}
	err = c.running.give(ctx, c.lines, c.Acknowledge)
	c.running.abandoned = ctx.Err() != nil
	if err == nil || c.running.abandoned {
		return err
	}
	ended := c.running.end()
	c.running = nil
	var failed *exec.ExitError
	switch {
	case errors.Is(err, errLines):
		return watch.Fatal(err)
	case ended == nil:
		return watch.Fatal(fmt.Errorf("%w, with exit status 0", ErrEnded))
	case errors.As(ended, &failed) && (failed.ExitCode() == cannotRun || failed.ExitCode() == notFound):
		return watch.Fatal(fmt.Errorf("the command cannot be run: %w", ended))
	case errors.As(ended, &failed):
		return fmt.Errorf("the command has ended: %w", ended)
	}
	return errors.Join(err, ended)
}

// Close lets the command end: it closes its standard input and waits, and ends it by force if it takes longer than five seconds.
// It returns how the command has ended if that is not exit status 0.
func (c *Command) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return nil
	}
	err := c.running.end()
	c.running = nil
	if err != nil {
		return fmt.Errorf("the command has ended: %w", err)
	}
	return nil
}

// endLimit is how long a command may take to end once its standard input is closed.
const endLimit = 5 * time.Second

// process is a command that runs.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	acks  chan struct{} // one for each line of the standard output, until that ends; nil if lines do not acknowledge
	// abandoned says that a context has ended during a batch: some of its lines may be neither written nor acknowledged. A feed that reads again after
	// an error ends the context of its batch, too. Then the batch comes again, to a command that is started anew.
	abandoned bool
}

func (c *Command) start() (*process, error) {
	p := &process{cmd: exec.Command(c.Args[0], c.Args[1:]...)}
	detach(p.cmd)
	p.cmd.Stderr = c.Stderr
	p.cmd.WaitDelay = endLimit // what it has started may keep its output open
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if !c.Acknowledge {
		p.cmd.Stdout = c.Stdout
		return p, p.cmd.Start()
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.acks = make(chan struct{})
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go readAcks(out, p.acks)
	return p, nil
}

// readAcks sends once for each line.
func readAcks(out io.Reader, acks chan<- struct{}) {
	defer close(acks)
	for lines := bufio.NewReader(out); ; {
		switch _, err := lines.ReadSlice('\n'); {
		case err == nil:
			acks <- struct{}{}
		case !errors.Is(err, bufio.ErrBufferFull):
			return
		}
	}
}

var errLines = errors.New("the command has written more lines than it was given, so that they cannot acknowledge changes")

// give writes lines and waits until each is acknowledged.
func (p *process) give(ctx context.Context, lines []byte, acknowledge bool) error {
	if !acknowledge {
		return p.write(ctx, lines)
	}
	select {
	case _, open := <-p.acks:
		if open {
			return errLines
		}
		return io.ErrUnexpectedEOF
	default:
	}
	written := make(chan error, 1)
	go func() { written <- p.write(ctx, lines) }()
	for waiting := bytes.Count(lines, []byte{'\n'}); waiting > 0 || written != nil; {
		select {
		case _, open := <-p.acks:
			if waiting--; waiting < 0 && open {
				return errLines
			} else if !open {
				return io.ErrUnexpectedEOF
			}
		case err := <-written:
			if err != nil {
				return err
			}
			written = nil
		case <-ctx.Done():
			go p.drain()
			if written != nil {
				<-written
			}
			return ctx.Err()
		}
	}
	return nil
}

const (
	// pieceSize is how many bytes are written at once, if lines are not longer: what a pipe takes on Linux.
	pieceSize = 64 << 10
	// stuckLimit is how long a write may take once the watcher is told to end. Then the command's standard input is closed, even within a line.
	stuckLimit = time.Second
)

// write writes lines. When ctx ends, it stops between two lines.
func (p *process) write(ctx context.Context, lines []byte) error {
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(stuckLimit, func() { p.stdin.Close() }) })
	defer stop()
	for len(lines) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := wholeLines(lines)
		if _, err := p.stdin.Write(piece); err != nil {
			return err
		}
		lines = lines[len(piece):]
	}
	return nil
}

// wholeLines returns the first lines that fit into a piece, at least one.
func wholeLines(lines []byte) []byte {
	if len(lines) <= pieceSize {
		return lines
	}
	if i := bytes.LastIndexByte(lines[:pieceSize], '\n'); i >= 0 {
		return lines[:i+1]
	}
	return lines[:bytes.IndexByte(lines, '\n')+1]
}

// end lets the command end, and returns how it has. What it has started may go on, and keep its output open.
func (p *process) end() error {
	p.stdin.Close()
	force := time.AfterFunc(endLimit, func() { kill(p.cmd.Process) })
	defer force.Stop()
	if p.acks != nil {
		go p.drain() // until Wait closes the pipe
	}
	err := p.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // it has ended with 0
	}
	return err
}

// drain takes acknowledgements that no batch waits for, until the command has closed its output.
func (p *process) drain() {
	for range p.acks {
	}
}
