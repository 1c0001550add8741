package listener

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Origins decides which web pages may send requests to a listener. Browsers name the page's origin in the header
// Origin, or say in Sec-Fetch-Site whether page and listener belong to one site
// (https://www.w3.org/TR/fetch-metadata/). Other clients send neither header, and their requests are allowed.
type Origins struct {
	allowed  []string // origins that the server's options allow
	hosts    []string // further names of the machine, from the server's options
	loopback bool
}

// NewOrigins returns the rules for a listener at addr. allowed lists the origins of web pages that may send requests,
// such as https://app.example:8443. hosts lists names, besides localhost, by which clients may reach a listener on the
// loopback interface.
func NewOrigins(addr net.Addr, allowed, hosts []string) *Origins {
	return &Origins{allowed: allowed, hosts: hosts, loopback: IsLoopback(addr)}
}

// IsLoopback reports whether only programs on the machine can reach a listener at addr.
func IsLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Check returns an error if a request is not allowed by its headers Host, Origin and Sec-Fetch-Site; an absent header
// is "". A listener on the loopback interface also refuses a Host that is not a name of the machine: such a request
// comes from a web page whose own name was made to resolve to the loopback address (DNS rebinding).
func (o *Origins) Check(host, origin, site string) error {
	if o.loopback && host != "" && !o.ownName(host) {
		return usererror.ForeignHost(host)
	}
	return o.CheckPage(host, origin, site)
}

// CheckPage checks Origin and Sec-Fetch-Site as Check does, but allows every host. It is for a protocol that browsers
// do not speak.
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

// Allows reports whether the server's options allow requests from web pages of an origin.
func (o *Origins) Allows(origin string) bool {
	return origin != "" && slices.Contains(o.allowed, origin)
}

// ownName reports whether host, with or without a port, is a name of the machine.
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

// ownOrigin reports whether origin is that of web pages from this server itself. The parameter host is the header Host
// of the request.
func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && host != "" && strings.EqualFold(u.Host, host)
}

// CheckOrigin checks an origin that the user gives in an option. It returns an error unless origin consists of a
// scheme, http or https, and a host, which may have a port.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return usererror.InvalidOrigin(origin)
	}
	return nil
}

// CheckHost checks a host that the user gives in an option. It returns an error if host is not the name or the address
// of a host, without scheme and port.
func CheckHost(host string) error {
	if host == "" || strings.ContainsAny(host, "/: ") && net.ParseIP(strings.Trim(host, "[]")) == nil {
		return errors.New("want a host name alone, such as db.test, without scheme and port")
	}
	return nil
}
