package prepare

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestGroup sends ten requests with the same key at once. One of them must call prepare, and the others must get its
// result.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f prepareGroup
		release := make(chan struct{})
		prepared := 0
		want := &Statement{}
		for range 10 {
			go func() {
				s, err := f.do(t.Context(), "key", func() (*Statement, error) {
					prepared++
					<-release
					return want, nil
				})
				if s != want || err != nil {
					t.Errorf("%v, %v", s, err)
				}
			}()
		}
		synctest.Wait()
		if s, err := f.do(t.Context(), "another key", func() (*Statement, error) { return nil, errors.ErrUnsupported }); s != nil || err != errors.ErrUnsupported {
			t.Errorf("another text waits, or gets %v, %v", s, err)
		}
		close(release)
		synctest.Wait()
		if prepared != 1 || len(f.byKey) != 0 {
			t.Errorf("prepared %d times, %d under way", prepared, len(f.byKey))
		}
	})
}

// TestGroupCancelled cancels requests that wait, and then the one that prepares. Only the cancelled requests may fail;
// one of the remaining requests must prepare.
func TestGroupCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f prepareGroup
		want := &Statement{}
		// start starts a request and returns its cancel function and the channel of its result.
		start := func(prepare func(context.Context) (*Statement, error)) (context.CancelFunc, chan error) {
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error, 1)
			go func() {
				s, err := f.do(ctx, "key", func() (*Statement, error) { return prepare(ctx) })
				if err == nil && s != want {
					err = errors.New("another statement")
				}
				got <- err
			}()
			synctest.Wait()
			return cancel, got
		}
		cancelFirst, first := start(func(ctx context.Context) (*Statement, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		good := func(context.Context) (*Statement, error) { return want, nil }
		cancelSecond, second := start(good)
		cancelThird, third := start(good)
		defer cancelThird()

		cancelSecond()
		synctest.Wait()
		if err := <-second; err != context.Canceled {
			t.Errorf("the request that was cancelled while it waited got %v", err)
		}
		if len(first)+len(third) != 0 {
			t.Error("it ended others")
		}
		cancelFirst()
		if err := <-first; err != context.Canceled {
			t.Errorf("the request that was cancelled while it prepared got %v", err)
		}
		if err := <-third; err != nil {
			t.Errorf("the request that waited for it got %v", err)
		}
	})
}
