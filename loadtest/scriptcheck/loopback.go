package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
)

var errNotLoopback = errors.New("scriptcheck sends to loopback addresses alone")

// loopbackClient is a VU's HTTP client. The address is judged after the name
// was resolved, right before the connection is made, redirects included.
func loopbackClient() *http.Client {
	dialer := &net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		if ap, err := netip.ParseAddrPort(address); err != nil || !ap.Addr().Unmap().IsLoopback() {
			return fmt.Errorf("%w, not to %s", errNotLoopback, address)
		}
		return nil
	}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, Proxy: nil}}
}
