#!/bin/sh
# Runs a load test with k6: one process a variant, one table at the end.
# POSIX sh.
#
#   loadtest/run.sh [SCRIPT]         race (the default), capacity, article-100x5m, soak, smoke
#
# Everything is set by the environment: ADMIN_TOKEN and BASE_URL of the API,
# VARIANTS (which, separated by commas), OUT (a folder; it is made), K6 (the
# program), and the settings of the scripts, which README.md lists.
#
# Exit code: the highest of all runs. 0: every threshold holds. 99: one does
#            not. Others are k6's own; 2: it was not even tried.
set -u

fail() {
	printf 'run.sh: %s\n' "$1" >&2
	exit 2
}

wrong() { # a call that can't work: what is wrong, and what is allowed
	fail "$1; run.sh -h says more"
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || fail 'where am I?'

script=${1:-race}
script=$(basename -- "$script" .js)
case $script in
race) default=none,setnx,watchdog,atomic ;;
capacity) default=setnx,watchdog,atomic ;;
article-100x5m | smoke) default=watchdog ;;
soak) default=atomic ;;
-h | --help)
	sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0"
	exit 0
	;;
-*) wrong "unknown flag \"$1\": allowed are -h, --help; everything else is set by the environment" ;;
*) wrong "unknown script \"$1\": allowed are race, capacity, article-100x5m, soak, smoke" ;;
esac
[ $# -le 1 ] || wrong "unexpected argument \"$2\": allowed is one script; its settings are in the environment"
variants=${VARIANTS:-${VARIANT:-$default}}
case $variants in
*[!a-z0-9,-]* | ,* | *, | *,,*) wrong "VARIANTS is \"$variants\"; allowed: names of variants, separated by commas" ;;
esac
[ -n "${ADMIN_TOKEN:-}" ] || wrong 'ADMIN_TOKEN is not set; allowed: the admin token of the API (it prints one at its start if none was given)'

k6=${K6:-k6}
command -v "$k6" >/dev/null 2>&1 || fail "there is no $k6. k6 is no part of this repository: https://grafana.com/docs/k6/latest/set-up/install-k6/
  (macOS: brew install k6; Debian and Fedora: Grafana's package repository; or a binary of github.com/grafana/k6/releases).
  It may be elsewhere: K6=/path/to/k6. Without k6: flashsale bench, and loadtest/check.sh for the scripts themselves."
version=$("$k6" version 2>/dev/null) || fail "$k6 version does not work"
case $version in
*' v1.'* | *' v2.'*) ;;
*) fail "these scripts are for k6 v1 and v2, and $k6 says: $version" ;;
esac

# k6 takes options from K6_ variables too, and they win over the script's: a
# forgotten K6_DURATION or K6_NO_THRESHOLDS would turn this into another test.
unset K6_VUS K6_DURATION K6_ITERATIONS K6_STAGES K6_SCENARIOS K6_EXECUTION_SEGMENT K6_MIN_ITERATION_DURATION K6_CONFIG \
	K6_NO_SETUP K6_NO_TEARDOWN K6_NO_THRESHOLDS K6_NO_SUMMARY K6_SUMMARY_MODE K6_SUMMARY_TREND_STATS \
	K6_SETUP_TIMEOUT K6_TEARDOWN_TIMEOUT K6_SYSTEM_TAGS K6_DISCARD_RESPONSE_BODIES K6_INCLUDE_SYSTEM_ENV_VARS \
	K6_RPS K6_THROW K6_PAUSED K6_LINGER K6_NO_CONNECTION_REUSE K6_NO_VU_CONNECTION_REUSE 2>/dev/null
export K6_NO_USAGE_REPORT=true # nothing is sent to anybody but the API

# The shape of the summary: v2 and the late v1 have two, and only the older one
# has p(99) and says which thresholds failed. The early v1 knows no such flag.
set -- run
if "$k6" run --help 2>&1 | grep -q -- --new-machine-readable-summary; then
	set -- "$@" --new-machine-readable-summary=false
fi

stamp=$(date -u +%Y%m%dT%H%M%SZ)
out=${OUT:-$here/out/$script-$stamp}
mkdir -p -- "$out" || wrong "OUT is \"$out\", which cannot be made; allowed: a folder, or where one can be made" # k6 makes no folders
out=$(CDPATH='' cd -- "$out" && pwd) || wrong "OUT is \"$out\", which cannot be entered; allowed: a folder that is yours"
case $out in *,*) wrong "OUT is \"$out\"; allowed: a path without a comma" ;; esac

worst=0 reports='' missing='' stopped=''
trap 'stopped=yes' INT TERM # k6 gets the signal as well, and ends in good order

note() { # exit code
	[ "$1" -le "$worst" ] || worst=$1
}

rest=$variants,
while [ -n "$rest" ] && [ -z "$stopped" ]; do
	variant=${rest%%,*}
	rest=${rest#*,}
	name=$script-$variant
	rm -f -- "$out/$name.json" # of an earlier run into the same folder
	printf '\n== %s, %s ==\n' "$script" "$variant"
	# The token stays in the environment: arguments can be read by everybody.
	VARIANT=$variant VARIANTS=$variant OUT=$out REPORT_NAME=$name "$k6" "$@" "$here/$script.js"
	code=$?
	note "$code"
	if [ -s "$out/$name.json" ]; then
		reports=$reports${reports:+,}$out/$name.json
	else
		missing=$missing${missing:+,}$name:$code
	fi
done
trap - INT TERM

printf '\n== all ==\n'
REPORTS=$reports MISSING=$missing SCRIPT=$script OUT=$out REPORT_NAME=$script "$k6" "$@" --quiet "$here/join.js"
note $?
[ -z "$stopped" ] || { echo 'run.sh: stopped' && note 105; }
printf 'Report: %s/%s.md (.json, .xml for CI, .svg)\nExit code: %s\n' "$out" "$script" "$worst"
exit "$worst"
