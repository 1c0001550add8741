package result

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// FuzzResumeToken parses tokens that were changed. It checks that none is accepted, and none causes a panic.
func FuzzResumeToken(f *testing.F) {
	key := token.NewKey([token.SecretSize]byte{1})
	r := Resumption{request: 7, At: 1234567, from: Position{row: 3, value: 2, piece: 1}}
	good := r.appendToken(nil, key)
	f.Add([]byte{}, 0)
	f.Add(good, 3)
	f.Add(good[:12], 0)
	f.Fuzz(func(t *testing.T, data []byte, flip int) {
		if got, err := ParseToken(key, good, r.request); err != nil || *got != r {
			t.Fatalf("good token: %v, %v", got, err)
		}
		if _, err := ParseToken(key, data, r.request); err == nil && !bytes.Equal(data, good) {
			t.Fatal("a token that was not given out is believed")
		}
		changed := bytes.Clone(good)
		changed[uint(flip)%uint(len(changed))] ^= 1
		if _, err := ParseToken(key, changed, r.request); usererror.CodeOf(err) != codes.InvalidArgument {
			t.Fatalf("changed token: %v", err)
		}
	})
}
