#!/bin/sh
# Checks the k6 scripts without k6: their types, and a run of each against an
# API in scriptcheck's tests.
#
#   loadtest/check.sh
#
# Exit code: 0 everything passed
#            1 something failed
#            3 nothing failed, but the type check was left out: no node or npm
# The last line counts: "loadtest: N checks, P passed, F failed, S skipped".
set -u
cd "$(dirname "$0")" || exit 1

passed=0 failed=0 skipped=0

verdict() { # name, exit code
	if [ "$2" -eq 0 ]; then
		passed=$((passed + 1))
		echo "loadtest: $1: passed"
	else
		failed=$((failed + 1))
		echo "loadtest: $1: FAILED"
	fi
}

# The packages are pinned by package-lock.json. They go into node_modules, which
# git ignores, and are installed again only when the lock file has changed.
types() {
	if ! cmp -s package-lock.json node_modules/.installed-from; then
		npm ci --ignore-scripts --no-audit --no-fund --loglevel=error || return 1
		cp package-lock.json node_modules/.installed-from || return 1
	fi
	node node_modules/typescript/bin/tsc --project tsconfig.json
}

if command -v node >/dev/null && command -v npm >/dev/null; then
	types
	verdict 'type check' $?
else
	skipped=$((skipped + 1))
	echo '*** loadtest: type check SKIPPED: node and npm are not installed (Debian: apt-get install nodejs npm) ***'
fi

# -count=1: the scripts lie outside the Go module, so a cached result would not
# notice that one has changed. -parallel: the tests wait more than they work.
(cd scriptcheck && GOWORK=off go vet ./... && GOWORK=off go test -count=1 -parallel 12 ./...)
verdict 'script runs (scriptcheck, not k6)' $?

echo "loadtest: $((passed + failed + skipped)) checks, $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] || exit 1
[ "$skipped" -eq 0 ] || exit 3
