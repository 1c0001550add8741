package harness

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
)

// delayedBy returns client options that delay all bytes by the round-trip time rtt, as a network does: half of it on
// the way to the server and half on the way back. The options do not limit the bandwidth.
func delayedBy(rtt time.Duration) []option.ClientOption {
	if rtt == 0 {
		return nil
	}
	return []option.ClientOption{option.WithGRPCDialOption(grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return newDelayedConn(c, rtt/2), nil
	}))}
}

// delayedConn is a connection that delays all bytes in both directions.
type delayedConn struct {
	net.Conn
	out, in *delayLine
	rest    []byte // bytes that have arrived and that Read has not yet returned
}

// newDelayedConn returns a connection that delays all bytes that c sends or receives. The parameter half is the delay
// in each direction, which is half of a round-trip time. newDelayedConn starts two goroutines, which Close ends.
func newDelayedConn(c net.Conn, half time.Duration) *delayedConn {
	d := &delayedConn{Conn: c, out: newDelayLine(half), in: newDelayLine(half)}
	go func() {
		for {
			piece, err := d.out.pop()
			if err == nil {
				_, err = c.Write(piece)
			}
			if err != nil {
				d.out.end(err)
				return
			}
		}
	}()
	go func() {
		for {
			piece := make([]byte, delayedPiece)
			n, err := c.Read(piece)
			if n > 0 {
				err = errors.Join(d.in.put(piece[:n]), err)
			}
			if err != nil {
				d.in.end(err)
				return
			}
		}
	}()
	return d
}

// delayedPiece is the largest number of bytes that one read takes from the connection. maxDelayed is the largest
// number of bytes that may be in transit in one direction.
const (
	delayedPiece = 64 << 10
	maxDelayed   = 16 << 20
)

func (d *delayedConn) Write(p []byte) (int, error) {
	if err := d.out.put(append([]byte(nil), p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Read returns the next bytes when they are due. Only one goroutine at a time may call it.
func (d *delayedConn) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		piece, err := d.in.pop()
		if err != nil {
			return 0, err
		}
		d.rest = piece
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func (d *delayedConn) Close() error {
	d.out.end(net.ErrClosed)
	d.in.end(net.ErrClosed)
	return d.Conn.Close()
}

// delayLine passes pieces of bytes on in their order, each after a fixed delay.
type delayLine struct {
	delay time.Duration

	mu      sync.Mutex
	changed *sync.Cond
	pieces  []delayedBytes
	size    int
	err     error // the first error passed to the method end; put returns it at once, and pop after the last piece
}

type delayedBytes struct {
	due   time.Time
	bytes []byte
}

func newDelayLine(delay time.Duration) *delayLine {
	l := &delayLine{delay: delay}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// put adds a piece to the end of the line. It waits while the line is full.
func (l *delayLine) put(piece []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil && l.size > maxDelayed {
		l.changed.Wait()
	}
	if l.err != nil {
		return l.err
	}
	l.pieces = append(l.pieces, delayedBytes{time.Now().Add(l.delay), piece})
	l.size += len(piece)
	l.changed.Broadcast()
	return nil
}

// pop removes and returns the first piece. It waits until that piece is due. Only one goroutine may call it.
func (l *delayLine) pop() ([]byte, error) {
	l.mu.Lock()
	for l.err == nil && len(l.pieces) == 0 {
		l.changed.Wait()
	}
	if len(l.pieces) == 0 {
		defer l.mu.Unlock()
		return nil, l.err
	}
	first := l.pieces[0]
	l.pieces = l.pieces[1:]
	l.size -= len(first.bytes)
	l.changed.Broadcast()
	l.mu.Unlock()
	sleepUntil(first.due)
	return first.bytes, nil
}

// end makes later calls of put fail with err. Calls of pop first return the remaining pieces, and then fail with err,
// too. If end is called again, the first error stays.
func (l *delayLine) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.changed.Broadcast()
}
