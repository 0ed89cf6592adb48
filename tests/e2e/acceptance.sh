#!/usr/bin/env bash
# Runs the shared acceptance suite (../shared/acceptance, outside-view tests with the unmodified
# clients) against a server of this build: the tests that acceptance/ready.txt names. Every test of
# the suite must stand in ready.txt or, with the issue it waits for, in waiting.txt.
# usage: tests/e2e/acceptance.sh [extra pytest arguments]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
suite=${TESSERA_SHARED:-$root/../shared}/acceptance
python=$root/.cache/venv/bin/python
tessera=$root/build/release/tessera
model=${TESSERA_TESTDATA:-$root/.cache/testdata}/SmolLM2-135M-Instruct.Q4_1.gguf
lists=$root/tests/e2e/acceptance

fail() { echo "acceptance: $*" >&2; exit 1; }
[ -d "$suite" ] || fail "$suite is not there"
[ -x "$tessera" ] || fail "build first: cmake --build --preset release"

work=$(mktemp -d)
server=
stop() { [ -z "$server" ] || { kill -TERM "$server" 2>/dev/null && wait "$server" || true; }; rm -rf "$work"; }
trap stop EXIT

export PYTHONDONTWRITEBYTECODE=1
cd "$suite"
sed 's/ *#.*//; /^$/d' "$lists/ready.txt" | sort -u >"$work/ready"
sed 's/ *#.*//; /^$/d; /::/!d' "$lists/waiting.txt" | sort -u >"$work/waiting"
# Files that wait whole need packages which only their issue installs.
ignore=()
while read -r file; do
  [ -f "$file" ] || fail "waiting.txt names $file, which the suite does not have"
  ignore+=("--ignore=$file")
done < <(sed 's/ *#.*//; /^$/d; /::/d' "$lists/waiting.txt")
# Any other file that cannot be collected must not pass as a shorter suite.
"$python" -m pytest -q --collect-only -p no:cacheprovider "${ignore[@]}" \
  >"$work/collect.log" 2>&1 || { cat "$work/collect.log" >&2; fail "the suite could not be collected"; }
sed -n 's/^\(test_[^:]*::[^[]*\).*/\1/p' "$work/collect.log" | sort -u >"$work/collected"
[ -s "$work/collected" ] || { cat "$work/collect.log" >&2; fail "the suite has no test"; }
both=$(comm -12 "$work/ready" "$work/waiting")
[ -z "$both" ] || fail "in both lists: $both"
unlisted=$(sort -u "$work/ready" "$work/waiting" | comm -23 "$work/collected" -)
[ -z "$unlisted" ] || fail "neither in ready.txt nor in waiting.txt: $unlisted"
for list in ready waiting; do
  gone=$(comm -23 "$work/$list" "$work/collected")
  [ -z "$gone" ] || fail "$list.txt names tests that the suite does not have: $gone"
done

port=${TESSERA_ACCEPTANCE_PORT:-18087}
: >"$work/serve.log"
"$tessera" serve "$model" --port "$port" --cache-dir "$work/cache" >"$work/serve.log" 2>&1 &
server=$!
ready=
for _ in $(seq 1 600); do
  kill -0 "$server" 2>/dev/null || { cat "$work/serve.log" >&2; fail "the server stopped"; }
  # Only our server writes this log, and that line only once the port is its own.
  grep -q '^serving ' "$work/serve.log" &&
    curl -fsS --noproxy '*' -o /dev/null "http://127.0.0.1:$port/readyz" 2>/dev/null && { ready=1; break; }
  sleep 0.1
done
[ -n "$ready" ] || { cat "$work/serve.log" >&2; fail "the server was not ready within 60 s"; }

# A test name without parameters selects all of them; "serve" parameters only where both servers
# are meant (test_robustness), since the gateway is another issue.
export TESSERA_SERVE_URL=http://127.0.0.1:$port NO_PROXY='*' no_proxy='*'
mapfile -t selected <"$work/ready"
status=0
"$python" -m pytest -q -p no:cacheprovider -k "not gateway and not llm" "${selected[@]}" "$@" || status=$?
kill -0 "$server" 2>/dev/null || { tail -n 20 "$work/serve.log" >&2; fail "the server died"; }
exit $status
