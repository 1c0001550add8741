package value

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// ParseUUID reads a UUID as CAST does: 32 hexadecimal digits of any case, optionally in braces. There may be one
// hyphen before each digit except the first.
func ParseUUID(s string) (u [16]byte, err error) {
	text := s
	if strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") {
		text = text[1 : len(text)-1]
	}
	digits := make([]byte, 0, 32)
	for len(digits) < 32 {
		if len(digits) > 0 {
			text = strings.TrimPrefix(text, "-")
		}
		if text == "" {
			break
		}
		digits, text = append(digits, text[0]), text[1:]
	}
	_, err = hex.Decode(u[:], digits)
	if err != nil || len(digits) != 32 || text != "" {
		return u, fmt.Errorf("invalid UUID value: %s", quoted(s))
	}
	return u, nil
}

// AppendUUID appends a UUID in its canonical form: lower case, with hyphens.
func AppendUUID(dst []byte, u [16]byte) []byte { return appendUUID(dst, u[:]) }
