package listener

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Origins decides which web pages may send requests to a listener. Browsers name the page in the header Origin, or the relation
// of its site to the listener's site in Sec-Fetch-Site (https://www.w3.org/TR/fetch-metadata/). Other clients send neither header
// and are let in.
type Origins struct {
	allowed  []string // allowed by a flag
	hosts    []string // names of the host given by a flag
	loopback bool
}

// NewOrigins returns the rules of a listener at addr. allowed lists the origins of pages that may send requests, such as
// https://app.example:8443. hosts lists names under which clients reach a listener of the loopback interface, besides localhost.
func NewOrigins(addr net.Addr, allowed, hosts []string) *Origins {
	return &Origins{allowed: allowed, hosts: hosts, loopback: IsLoopback(addr)}
}

// IsLoopback reports whether only programs on the machine can reach a listener at addr.
func IsLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Check refuses a request by its headers Host, Origin and Sec-Fetch-Site; an absent header is "". On a loopback listener it
// refuses a Host that is not a name of the machine. Such a request comes from a page whose name was pointed at the loopback
// address (DNS rebinding).
func (o *Origins) Check(host, origin, site string) error {
	if o.loopback && host != "" && !o.ownName(host) {
		return usererror.ForeignHost(host)
	}
	return o.CheckPage(host, origin, site)
}

// CheckPage is like Check without the rule about the host, for a protocol that no browser speaks.
func (o *Origins) CheckPage(host, origin, site string) error {
	if o.Allows(origin) {
		return nil
	}
	if origin != "" && !ownOrigin(origin, host) {
		return usererror.ForeignOrigin(origin)
	}
	if site == "cross-site" || site == "same-site" {
		return usererror.ForeignOrigin(site)
	}
	return nil
}

// Allows reports whether a flag allows the origin.
func (o *Origins) Allows(origin string) bool {
	return origin != "" && slices.Contains(o.allowed, origin)
}

// ownName reports whether host, which may have a port, is a name of the machine.
func (o *Origins) ownName(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	switch name = strings.ToLower(strings.Trim(name, "[]")); name {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return slices.ContainsFunc(o.hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// ownOrigin reports whether a page comes from the server itself.
func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && host != "" && strings.EqualFold(u.Host, host)
}

// CheckOrigin returns an error unless origin is the origin of a web page, as a flag may name it.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return usererror.InvalidOrigin(origin)
	}
	return nil
}

// CheckHost returns an error unless host is the name or the address of a host, as a flag may name it.
func CheckHost(host string) error {
	if host == "" || strings.ContainsAny(host, "/: ") && net.ParseIP(strings.Trim(host, "[]")) == nil {
		return errors.New("want a host name alone, such as db.test, without scheme and port")
	}
	return nil
}
