GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
TESTRUN     := bin/testrun
PEERBENCH   := internal/lock/peerbench

# Tests alone take minutes; the first build of SQLite with -race takes some too.
TIMEOUT     := 20m

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help test test-fast check loadtest-check peerbench-check compose-check deps build demo up bench bench-locks bench-ratios migrate vuln fmt clean $(TESTRUN)

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

test: check loadtest-check peerbench-check compose-check $(TESTRUN) ## the whole suite with -race, on real servers of its own (.ci/run is this)
	$(TESTRUN) $(GO) test -race -timeout $(TIMEOUT) ./...

test-fast: ## the tests on embedded stand-ins alone, without -race
	FLASHSALE_TEST_REDIS=embedded FLASHSALE_TEST_SQL=embedded FLASHSALE_TEST_KAFKA=embedded FLASHSALE_TEST_ETCD=embedded FLASHSALE_TEST_ZOOKEEPER=embedded \
		$(GO) test -timeout $(TIMEOUT) ./...

check: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || echo .)); \
		[ -z "$$unformatted" ] || { echo "gofmt: make fmt is needed for:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

loadtest-check: ## the k6 scripts: types, and a run of each without k6
	@[ ! -e loadtest/check.sh ] || sh loadtest/check.sh || [ $$? -eq 3 ]

peerbench-check: ## that the comparison of locks compiles, and a short run of it
	@command -v redis-server >/dev/null || [ -x /usr/sbin/redis-server ] || echo '*** peerbench: the run is SKIPPED: redis-server is not installed (make deps) ***'
	@cd $(PEERBENCH) && GOWORK=off $(GO) vet ./... && GOWORK=off $(GO) test ./...

compose-check: ## that deploy/compose.yaml is what Docker Compose reads; nothing is started
	@cd deploy/composecheck && GOWORK=off $(GO) vet ./... && GOWORK=off $(GO) test -count=1 ./...

deps: $(TESTRUN) ## install Redis, MariaDB, etcd, ZooKeeper, promtool, Java, Maven (Debian, Ubuntu) and fetch Kafka
	$(TESTRUN) -deps

build: ## build api, syncer and flashsale into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

demo: ## race every variant on embedded servers, then go on serving
	$(GO) run ./cmd/flashsale demo

up: ## the same stack without the race
	$(GO) run ./cmd/flashsale up

bench: $(TESTRUN) ## benchmark a purchase in each variant, on real servers
	$(TESTRUN) $(GO) test -run '^$$' -bench Purchase -timeout $(TIMEOUT) ./...

bench-locks: ## the locks beside redislock, redsync and rueidislock, as a table with ratios; JSON=1: as one object
	@cd $(PEERBENCH) && GOWORK=off $(GO) run . $(if $(filter-out 0,$(JSON)),-json)

bench-ratios: $(TESTRUN) ## how fast sales are on this machine, as ratios, on real servers; JSON=1: as one object
	@$(TESTRUN) -stderr $(GO) run ./internal/bench/ratios $(if $(filter-out 0,$(JSON)),-json)

migrate: ## make or upgrade tables and topics of the servers that FLASHSALE_ variables name
	$(GO) run ./cmd/flashsale migrate

vuln: ## look for known vulnerabilities in the code and what it uses
	GO="$(GO)" .ci/vuln

fmt: ## format the code
	gofmt -w $$(git ls-files '*.go')

clean: ## remove what was built
	rm -rf bin out

$(TESTRUN):
	@$(GO) build -o $@ ./internal/servers/testrun
