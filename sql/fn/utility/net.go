package utility

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Network has the functions on network addresses and URLs. An address is BYTES of length 4 or 16, in network byte
// order.
var Network = []fn.Record{
	{Name: "net.host", Doc: "The host of a URL; NULL if it has none.", Overloads: []fn.Overload{fn.On("STRING -> STRING", fn.Strict(netHost))}},
	{Name: "net.public_suffix", Doc: "The public suffix of a URL's host (co.uk); NULL if it has none.", Overloads: []fn.Overload{fn.On("STRING -> STRING", fn.Strict(netPublicSuffix))}},
	{Name: "net.reg_domain", Doc: "The registrable domain of a URL's host: its public suffix and one label more; NULL if it has none.", Overloads: []fn.Overload{fn.On("STRING -> STRING", fn.Strict(netRegDomain))}},
	{Name: "net.ip_from_string", Doc: "The bytes of an IPv4 or IPv6 address.", Overloads: []fn.Overload{fn.On("STRING -> BYTES", fn.Strict(ipFromString))}},
	{Name: "net.safe_ip_from_string", Doc: "The bytes of an IPv4 or IPv6 address; NULL if the text is none.", Overloads: []fn.Overload{fn.On("STRING -> BYTES", fn.Strict(safeIPFromString))}},
	{Name: "net.ip_to_string", Doc: "An address as text.", Overloads: []fn.Overload{fn.On("BYTES -> STRING", fn.Strict(ipToString))}},
	{Name: "net.ip_net_mask", Doc: "NET.IP_NET_MASK(bytes, bits): a mask of 4 or 16 bytes whose first bits are 1.", Overloads: []fn.Overload{fn.On("INT64, INT64 -> BYTES", fn.Strict(ipNetMask))}},
	{Name: "net.ip_trunc", Doc: "NET.IP_TRUNC(address, bits): an address whose bits behind the first ones are 0.", Overloads: []fn.Overload{fn.On("BYTES, INT64 -> BYTES", fn.Strict(ipTrunc))}},
	{Name: "net.ipv4_from_int64", Doc: "The bytes of an IPv4 address that is given as a number.", Overloads: []fn.Overload{fn.On("INT64 -> BYTES", fn.Strict(ipv4FromInt64))}},
	{Name: "net.ipv4_to_int64", Doc: "An IPv4 address as a number.", Overloads: []fn.Overload{fn.On("BYTES -> INT64", fn.Strict(ipv4ToInt64))}},
}

// hostOf returns the host of a URL, without leading dots and with at most one dot at the end. The URL may lack its
// scheme.
func hostOf(url string) string {
	url = strings.Trim(url, fn.ASCIISpace)
	if i := strings.Index(url, "//"); i == 0 || i > 0 && url[i-1] == ':' && !strings.ContainsAny(url[:i], "/?#") {
		url = url[i+2:]
	}
	if i := strings.IndexAny(url, "/?#"); i >= 0 {
		url = url[:i]
	}
	if i := strings.LastIndexByte(url, '@'); i >= 0 {
		url = url[i+1:]
	}
	if strings.HasPrefix(url, "[") {
		if end := strings.IndexByte(url, ']'); end >= 0 {
			return url[:end+1]
		}
	}
	host, _, _ := strings.Cut(url, ":")
	host = strings.TrimLeft(strings.Trim(host, fn.ASCIISpace), ".")
	if short := strings.TrimRight(host, "."); short != "" && short != host {
		return short + "." // the dot of the root
	}
	return host
}

func textOrNull(s string) (value.Value, error) {
	if s == "" {
		return fn.Null(value.String)
	}
	return fn.OfString(s)
}

func netHost(_ *fn.Context, a []value.Value) (value.Value, error) {
	return textOrNull(hostOf(a[0].AsString()))
}

func netPublicSuffix(_ *fn.Context, a []value.Value) (value.Value, error) {
	_, suffix := domainOf(a[0].AsString())
	return textOrNull(suffix)
}

func netRegDomain(_ *fn.Context, a []value.Value) (value.Value, error) {
	domain, _ := domainOf(a[0].AsString())
	return textOrNull(domain)
}

// domainOf returns the registrable domain and the public suffix of a URL's host, as the URL writes them. Each is ""
// if the host has none. A name below a top-level domain that the list of public suffixes does not have has neither.
func domainOf(url string) (domain, suffix string) {
	host, root := strings.CutSuffix(hostOf(url), ".")
	if _, err := netip.ParseAddr(host); err == nil || host == "" || strings.HasPrefix(host, "[") || strings.Contains(host, "..") {
		return "", ""
	}
	ascii, err := idna.Punycode.ToASCII(strings.ToLower(host)) // the form of names in the list
	if err != nil {
		return "", ""
	}
	known, icann := publicsuffix.PublicSuffix(ascii)
	for !icann && strings.Contains(known, ".") { // the suffix is private, not public: try the suffix of its parent
		_, parent, _ := strings.Cut(known, ".")
		known, icann = publicsuffix.PublicSuffix(parent)
	}
	if !icann {
		return "", ""
	}
	// The suffix is found by its labels, because a label has another length in this form than in the host.
	labels := strings.Split(host, ".")
	at := len(labels) - 1 - strings.Count(known, ".")
	suffix = strings.Join(labels[at:], ".")
	if root {
		suffix += "."
	}
	if at == 0 {
		return "", suffix
	}
	return labels[at-1] + "." + suffix, suffix
}

func parseAddress(s string) (address []byte, ok bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return nil, false
	}
	return addr.AsSlice(), true
}

func ipFromString(_ *fn.Context, a []value.Value) (value.Value, error) {
	address, ok := parseAddress(a[0].AsString())
	if !ok {
		return fn.BadArgument("invalid IP address: " + a[0].AsString())
	}
	return fn.OfBytes(address)
}

func safeIPFromString(_ *fn.Context, a []value.Value) (value.Value, error) {
	address, ok := parseAddress(a[0].AsString())
	if !ok {
		return fn.Null(value.Bytes)
	}
	return fn.OfBytes(address)
}

func addressOf(v value.Value, function string) (netip.Addr, error) {
	addr, ok := netip.AddrFromSlice(v.AsBytes())
	if !ok {
		return addr, usererror.BadArgument(fmt.Sprintf("Invalid input to %s: an address has 4 or 16 bytes, not %d", function, len(v.AsBytes())))
	}
	return addr, nil
}

func ipToString(_ *fn.Context, a []value.Value) (value.Value, error) {
	addr, err := addressOf(a[0], "NET.IP_TO_STRING")
	return value.OfString(addr.String()), err
}

func ipNetMask(_ *fn.Context, a []value.Value) (value.Value, error) {
	size, bits := a[0].AsInt64(), a[1].AsInt64()
	if size != 4 && size != 16 {
		return fn.BadArgument(fmt.Sprintf("Invalid output size in NET.IP_NET_MASK: %d; it must be 4 or 16", size))
	}
	if bits < 0 || bits > 8*size {
		return fn.BadArgument(fmt.Sprintf("Invalid prefix length in NET.IP_NET_MASK: %d; it must be from 0 to %d", bits, 8*size))
	}
	mask := make([]byte, size)
	for i := range mask {
		mask[i] = ^byte(math.MaxUint8 >> min(8, max(0, bits-8*int64(i))))
	}
	return fn.OfBytes(mask)
}

func ipTrunc(_ *fn.Context, a []value.Value) (value.Value, error) {
	addr, err := addressOf(a[0], "NET.IP_TRUNC")
	if err != nil {
		return value.Value{}, err
	}
	bits := a[1].AsInt64()
	if bits < 0 || bits > int64(addr.BitLen()) {
		return fn.BadArgument(fmt.Sprintf("Invalid prefix length in NET.IP_TRUNC: %d; it must be from 0 to %d", bits, addr.BitLen()))
	}
	prefix, err := addr.Prefix(int(bits))
	if err != nil {
		return value.Value{}, err
	}
	return fn.OfBytes(prefix.Addr().AsSlice())
}

func ipv4FromInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	n := a[0].AsInt64()
	if n < math.MinInt32 || n > math.MaxUint32 {
		return fn.BadArgument("Invalid input to NET.IPV4_FROM_INT64: " + fn.Int64Text(n) + " is beyond 32 bits")
	}
	return fn.OfBytes(binary.BigEndian.AppendUint32(nil, uint32(n)))
}

func ipv4ToInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	b := a[0].AsBytes()
	if len(b) != 4 {
		return fn.BadArgument(fmt.Sprintf("Invalid input to NET.IPV4_TO_INT64: an IPv4 address has 4 bytes, not %d", len(b)))
	}
	return fn.OfInt64(int64(binary.BigEndian.Uint32(b)))
}
