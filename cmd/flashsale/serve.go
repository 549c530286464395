package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// describe says what runs where.
func (s *stack) describe(screen *screen) {
	for _, server := range slices.Concat(s.servers(), s.locks) {
		line := fmt.Sprintf("%-6s %s", server.Name(), server.Version())
		if !strings.Contains(line, server.Addr()) {
			line += ", " + server.Addr()
		}
		if !server.Real() {
			line += " (stand-in within this process)"
		}
		screen.say("%s", line)
	}
	screen.say("%-6s %s%s, with relay and syncer", "api", s.url, s.listening)
	if given := s.given(); len(given) > 0 {
		tables := ""
		if s.sql.Real() {
			tables = "; tables stay"
		}
		screen.say("On %s everything is named %s and removed at the end%s.", strings.Join(given, ", "), s.config.Prefix, tables)
	}
}

// given lists the servers that are somebody else's.
func (s *stack) given() (names []string) {
	for _, server := range s.servers() {
		if server.Real() {
			names = append(names, server.Name())
		}
	}
	return names
}

// label says which figures are a stand-in's.
func (s *stack) label() string {
	var names []string
	for _, server := range s.servers() {
		if !server.Real() {
			names = append(names, server.Name()+" ("+server.Version()+")")
		}
	}
	if names == nil {
		return ""
	}
	label := "\nFigures of stand-ins for " + strings.Join(names, ", ") + ": compare variants with each other, not with real servers."
	if remark := s.remark(); remark != "" {
		label += "\n" + remark
	}
	return label
}

// remark is what else there is to say about figures of the stand-in for Redis.
func (s *stack) remark() string {
	if s.redis.Real() {
		return ""
	}
	return fmt.Sprintf("On the stand-in for Redis who waits for a lock polls every %v to %v, or nobody else would get a turn: setnx feels it most.", standInPollMin, standInPollMax)
}

func (s *stack) serverResults() map[string]serverResult {
	results := make(map[string]serverResult)
	for _, server := range s.servers() {
		results[server.Name()] = serverResult{Version: server.Version(), Addr: server.Addr(), Real: server.Real()}
	}
	return results
}

// serve says how to use what runs here, and waits for Ctrl-C.
func (s *stack) serve(ctx context.Context, screen *screen) error {
	screen.say("\nServing %d sales at %s until Ctrl-C. Admin token: %s\n", len(s.sales), s.url, s.adminToken)
	screen.say("%s", s.curls())
	select {
	case <-ctx.Done():
		screen.say("\nStopping.")
		return nil
	case err := <-s.failed:
		return err
	}
}

// curls are lines to paste into a shell.
func (s *stack) curls() string {
	closing := s.sales[len(s.sales)-1].ID
	return strings.NewReplacer("URL", s.url, "SALE", s.sales[0].ID, "CLOSING", closing, "TOKEN", s.adminToken,
		"APIMETRICS", s.metrics[0], "SYNCERMETRICS", s.metrics[1]).Replace(`# what is on sale
curl -s URL/v1/sales
# buy one; sent again, it is the same purchase, since the key is the same
curl -s -X POST URL/v1/sales/SALE/purchases -H 'Content-Type: application/json' -H 'Idempotency-Key: order-1' -d '{"user_id":"alice","quantity":1}'
# what became of it: pending until it is in SQL, then persisted
curl -s 'URL/v1/sales/SALE/purchases?user_id=alice'
# stock, Redis and SQL compared, purchase by purchase
curl -s 'URL/v1/sales/SALE/audit?wait=5s&deep=true'
# what Prometheus would read, of the API and of the syncer
curl -s http://APIMETRICS/metrics
curl -s http://SYNCERMETRICS/metrics
# end a sale, as the admin
curl -s -X POST URL/v1/sales/CLOSING/close -H 'Authorization: Bearer TOKEN'`)
}
