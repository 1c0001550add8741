package cloudevents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// tries limits how often an event is posted while the server cannot be reached or asks to try again later. After
	// that, HandleBatch returns the error. The watcher pauses, and then calls HandleBatch again with all events.
	tries = 6
	// firstPause is the average pause after the first try. Each further pause is twice as long.
	firstPause = 200 * time.Millisecond
	// maxRetryAfter is the longest pause that the sink makes if the server asks for a pause.
	maxRetryAfter = 30 * time.Second
	// requestLimit is the timeout of a request.
	requestLimit = 30 * time.Second
)

// answerError is an answer with a status other than 2xx.
type answerError struct {
	status int
	text   string
	after  time.Duration // how long the server asks the client to wait
}

func (e answerError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("it answers %d %s: %s", e.status, http.StatusText(e.status), e.text), ": ")
}

// passes reports whether the same request may succeed if it is sent again later.
func (e answerError) passes() bool {
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.status >= 500
}

// gone reports whether the receiver has answered that it wants no more events (status 410):
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#21-delivery-request.
func gone(err error) bool {
	var answer answerError
	return errors.As(err, &answer) && answer.status == http.StatusGone
}

// post posts an event until the server accepts it, until an answer says that a retry will not help, or until all tries
// have failed.
func (s *Sink) post(ctx context.Context, e event) (err error) {
	for try, pause := 1, firstPause; ; try, pause = try+1, 2*pause {
		if err = s.postOnce(ctx, e); err == nil {
			return nil
		}
		var answer answerError
		isAnswer := errors.As(err, &answer)
		if ctx.Err() != nil || try == tries || isAnswer && !answer.passes() {
			break
		}
		timer := time.NewTimer(max(min(answer.after, maxRetryAfter), pause/2+rand.N(pause)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("posting a change of %s to %s: %w", e.subject, s.URL, err)
}

func (s *Sink) postOnce(ctx context.Context, e event) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	request, err := s.request(ctx, e)
	if err != nil {
		return err
	}
	s.prepare.Do(s.makeClient)
	reply, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode/100 == 2 {
		io.Copy(io.Discard, io.LimitReader(reply.Body, 64<<10)) // so that the connection can be used again
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(reply.Body, 200))
	return answerError{reply.StatusCode, strings.Join(strings.Fields(string(text)), " "), retryAfter(reply.Header)}
}

// makeClient makes the client that posts.
func (s *Sink) makeClient() {
	s.client = new(http.Client)
	if s.Client != nil {
		*s.client = *s.Client
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxConnsPerHost = s.connections()
		// With the default of two idle connections, all other connections would be closed after each request.
		transport.MaxIdleConnsPerHost = s.connections()
		s.client.Transport = transport
	}
	s.client.CheckRedirect = refuseLossy
}

func (s *Sink) request(ctx context.Context, e event) (*http.Request, error) {
	body := e.data
	if s.Mode == Structured {
		body = e.structured()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range s.Header {
		request.Header[name] = values
	}
	if s.Mode == Structured {
		request.Header.Set("Content-Type", structuredType)
	} else {
		e.binary(request.Header)
		request.Header.Set("Content-Type", dataContentType)
	}
	return request, nil
}

// refuseLossy refuses to follow a redirect with status 301, 302 or 303, after which the client would send a GET
// without the event.
func refuseLossy(r *http.Request, via []*http.Request) error {
	if r.Method != http.MethodPost || len(via) >= 10 {
		return http.ErrUseLastResponse
	}
	return nil
}

// retryAfter returns the pause that an answer asks for in its header Retry-After, which holds seconds or a time. It
// returns 0 if the answer asks for none.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(text); err == nil {
		return time.Until(t)
	}
	return 0
}
