package listener

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Origins decides which web pages may send requests to a listener. Browsers name the page in Origin, or the relation of its site to the
// listener's in Sec-Fetch-Site (https://www.w3.org/TR/fetch-metadata/); other clients send neither header and are let in.
type Origins struct {
	allowed  []string // origins that a flag names
	hosts    []string // names that a flag gives the host
	loopback bool
}

// NewOrigins makes the rule of a listener at addr. allowed are origins of pages that may send requests, as in
// https://app.example:8443. hosts are names under which clients reach a listener of the loopback interface, beside localhost.
func NewOrigins(addr net.Addr, allowed, hosts []string) *Origins {
	return &Origins{allowed: allowed, hosts: hosts, loopback: IsLoopback(addr)}
}

// IsLoopback says whether only programs on the machine reach a listener.
func IsLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Check refuses a request by its headers Host, Origin and Sec-Fetch-Site; an absent one is "". On a loopback listener, a Host that is not
// the machine's own name is that of a page whose name has been pointed at the loopback address (DNS rebinding).
func (o *Origins) Check(host, origin, site string) error {
	if o.loopback && host != "" && !o.ownName(host) {
		return usererror.ForeignHost(host)
	}
	return o.CheckPage(host, origin, site)
}

// CheckPage is Check without the rule about host, for a protocol that no browser speaks.
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

// Allows says whether a flag names the origin.
func (o *Origins) Allows(origin string) bool {
	return origin != "" && slices.Contains(o.allowed, origin)
}

// ownName says whether host, which may have a port, is a name of the machine.
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

// ownOrigin says whether a page comes from the server itself.
func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && host != "" && strings.EqualFold(u.Host, host)
}

// CheckOrigin refuses what is not the origin of a web page, as a flag may name it.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return usererror.InvalidOrigin(origin)
	}
	return nil
}

// CheckHost refuses what is not the name, or the address, of a host, as a flag may name it.
func CheckHost(host string) error {
	if host == "" || strings.ContainsAny(host, "/: ") && net.ParseIP(strings.Trim(host, "[]")) == nil {
		return errors.New("want a host name alone, such as db.test, without scheme and port")
	}
	return nil
}
