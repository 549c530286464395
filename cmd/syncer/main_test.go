package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, nil, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	if s := stdout.String(); !strings.Contains(s, "FLASHSALE_KAFKA_BROKERS") || strings.Contains(s, "FLASHSALE_LISTEN,") {
		t.Errorf("help: %s", s)
	}
}

func TestWrongSettings(t *testing.T) {
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), nil, []string{"FLASHSALE_MYSQL_DSN=sqlite:x.db", "FLASHSALE_KAFKA_BROKERS=kafka"}, &stdout, &stderr)
	if err == nil || !strings.Contains(err.Error(), "FLASHSALE_MYSQL_DSN") || !strings.Contains(err.Error(), `FLASHSALE_KAFKA_BROKERS="kafka"`) {
		t.Errorf("got %v", err)
	}
}
