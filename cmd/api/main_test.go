package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, []string{"FLASHSALE_LOCK_TTL=wrong"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"FLASHSALE_LISTEN", "--listen", "FLASHSALE_MYSQL_DSN", "default: 30s", "allowed:"} {
		if !strings.Contains(stdout.String(), part) {
			t.Errorf("no %s in %s", part, &stdout)
		}
	}
}

func TestWrongSettings(t *testing.T) {
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), []string{"--prefix=A B"}, []string{"FLASHSALE_LOCK_TTL=wrong", "FLASHSALE_MYSQL_DSN=sqlite:x.db"}, &stdout, &stderr)
	if err == nil {
		t.Fatal("it runs")
	}
	for _, part := range []string{`--prefix="A B"`, `FLASHSALE_LOCK_TTL="wrong"`, "FLASHSALE_MYSQL_DSN", "a duration from 100ms to 10m"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %s in %v", part, err)
		}
	}
	if stdout.Len() > 0 {
		t.Errorf("stdout: %s", &stdout)
	}
}

// Without a token one is made, and printed once; never an API without any.
func TestRandomToken(t *testing.T) {
	var stdout, stderr bytes.Buffer
	// The listener fails: no API, no token.
	err := run(t.Context(), nil, []string{"FLASHSALE_LISTEN=192.0.2.1:1"}, &stdout, &stderr)
	if err == nil || stdout.Len() > 0 {
		t.Fatalf("error %v, stdout %q", err, &stdout)
	}
	away := []string{"FLASHSALE_LISTEN=127.0.0.1:0", "FLASHSALE_ADMIN_LISTEN=off", "FLASHSALE_REDIS_ADDRS=127.0.0.1:1", "FLASHSALE_KAFKA_BROKERS=127.0.0.1:1", "FLASHSALE_MYSQL_DSN=u@tcp(127.0.0.1:1)/d"}
	ctx, cancel := context.WithCancel(t.Context())
	if err := run(ctx, nil, append(away, "FLASHSALE_TYPO=1"), endOn{"admin token", &stdout, cancel}, &stderr); err != nil {
		t.Fatal(err)
	}
	first := stdout.String()
	_, token, ok := strings.Cut(strings.TrimSpace(first), ": ")
	if !ok || len(token) < 20 || strings.Count(first, token) != 1 || strings.Contains(stderr.String(), token) {
		t.Errorf("stdout %q, stderr %q", first, &stderr)
	}
	if !strings.Contains(stderr.String(), "FLASHSALE_TYPO") {
		t.Errorf("no warning: %s", &stderr)
	}
	stdout.Reset()
	ctx, cancel = context.WithCancel(t.Context())
	if err := run(ctx, nil, append(away, "FLASHSALE_ADMIN_TOKEN=given-token"), &stdout, endOn{"the API listens", &stderr, cancel}); err != nil {
		t.Fatal(err)
	}
	if stdout.Len() > 0 {
		t.Errorf("a token that was given is printed: %s", &stdout)
	}
}

// endOn ends a program once it writes this text.
type endOn struct {
	text string
	io.Writer
	end func()
}

func (e endOn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(e.text)) {
		e.end()
	}
	return e.Writer.Write(p)
}
