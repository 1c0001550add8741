// Package command writes changes to the standard input of a command that keeps running, as JSON lines in the form of
// package jsonlines.
//
// The checkpoint moves past a change when the change is acknowledged. Without Command.Acknowledge, a change is
// acknowledged when its line is in the pipe to the command. If the command then crashes, the lines that it had not read
// yet are lost (64 KiB at most, on Linux). With Acknowledge, the command writes a line after each line that it has
// handled, and each line that it writes acknowledges one change. Then nothing is lost, and changes that were not
// acknowledged come again.
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

// Command is a handler that starts a command when it gets the first change. If the command ends with an error, the next
// call of the handler starts it again.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Acknowledge makes each line on the command's standard output acknowledge one change, in the order of the changes.
	Acknowledge bool
	// Stdout gets the command's standard output if Acknowledge is false. Stderr gets its standard error. Output for
	// which the field is nil is discarded.
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

// ErrEnded is wrapped by the error that ends the watcher after the command has exited with status 0. For example, the
// command head exits with status 0 after it has read a number of lines.
var ErrEnded = errors.New("the command has ended")

// Handle writes one transaction to the command.
func (c *Command) Handle(ctx context.Context, tx *watch.Transaction) error {
	return c.HandleBatch(ctx, []*watch.Transaction{tx})
}

// HandleBatch writes transactions to the command and waits until all are acknowledged.
func (c *Command) HandleBatch(ctx context.Context, list []*watch.Transaction) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines, err = jsonlines.AppendLines(c.lines[:0], list); err != nil {
		return err
	}
	if c.running != nil && c.running.abandoned {
		c.running.end() // the exit status is ignored, since the input may have ended within a batch
		c.running = nil
	}
	if c.running == nil {
		if c.running, err = c.start(); err != nil {
			return err
		}
	}
	err = c.running.send(ctx, c.lines, c.Acknowledge)
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

// Close closes the command's standard input and waits until the command ends. It kills a command that takes longer
// than five seconds. It returns an error if the exit status is not 0.
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

// endLimit is how long a command may take to end after its standard input is closed.
const endLimit = 5 * time.Second

// process is a running command.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	acks  chan struct{} // one value for each line of the standard output; closed at the end of the output; nil without Acknowledge
	// abandoned is true if the context of a batch ended before all lines of the batch were written and acknowledged.
	// This happens, for example, when a feed is read again after an error while the watcher continues. Then the batch
	// comes again, and goes to a new process.
	abandoned bool
}

func (c *Command) start() (*process, error) {
	p := &process{cmd: exec.Command(c.Args[0], c.Args[1:]...)}
	detach(p.cmd)
	p.cmd.Stderr = c.Stderr
	p.cmd.WaitDelay = endLimit // Wait must return even if processes that the command has started keep its output open
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

// readAcks sends a value to acks for each line of out, and closes acks at the end of out.
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

// send writes lines to the command. If acknowledge is set, it waits until every line is acknowledged.
func (p *process) send(ctx context.Context, lines []byte, acknowledge bool) error {
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
	// pieceSize is the maximum number of bytes in one write, unless a single line is longer. It is the size of a pipe
	// on Linux.
	pieceSize = 64 << 10
	// stuckLimit is how long a write may still take after the context has ended. Then the command's standard input is
	// closed, even in the middle of a line.
	stuckLimit = time.Second
)

// write writes lines. When ctx ends, it stops at the end of a line. If the command has not read to the end of this line
// after stuckLimit, write stops in the middle of the line.
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

// wholeLines returns the first lines of its argument: as many as fit into pieceSize bytes, but at least one.
func wholeLines(lines []byte) []byte {
	if len(lines) <= pieceSize {
		return lines
	}
	if i := bytes.LastIndexByte(lines[:pieceSize], '\n'); i >= 0 {
		return lines[:i+1]
	}
	return lines[:bytes.IndexByte(lines, '\n')+1]
}

// end closes the command's input, waits until the command ends and returns its error. Processes that the command has
// started may continue to run and keep the output open. end waits for these processes for at most endLimit.
func (p *process) end() error {
	p.stdin.Close()
	force := time.AfterFunc(endLimit, func() { kill(p.cmd.Process) })
	defer force.Stop()
	if p.acks != nil {
		go p.drain() // Wait closes the pipe, which ends drain
	}
	err := p.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // the command itself has exited with status 0
	}
	return err
}

// drain receives acknowledgements, and discards them, until the command has closed its output. Otherwise readAcks would
// wait forever for a receiver.
func (p *process) drain() {
	for range p.acks {
	}
}
