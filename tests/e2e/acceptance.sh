#!/usr/bin/env bash
# Runs the shared acceptance suite (../shared/acceptance, outside-view tests with the unmodified
# clients) against a server and a gateway of this build: the tests that acceptance/ready.txt names.
# Every test of the suite must stand in ready.txt or, with the issue it waits for, in waiting.txt.
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
# Ends the gateway, if one runs, and with "start" runs one on the same state: tests do it, too, so
# that it is not our child but known by the file of its pid. One that ended may stay a zombie.
cat >"$work/gateway.sh" <<'EOF'
set -u
cd "$(dirname "$0")"
runs() { grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null; }
if [ -f pid ]; then
  pid=$(cat pid)
  kill -TERM "$pid" 2>/dev/null  # It may have ended.
  for _ in $(seq 1 600); do runs "$pid" || break; sleep 0.1; done
fi
[ "$1" = start ] || exit 0
"$TESSERA" gateway --port "$GATEWAY_PORT" --state-dir state --models models.toml \
  --cache-dir cache --idle-timeout 5 --scale-down-after 5 --drain-seconds 10 >>gateway.log 2>&1 &
echo $! >pid
for _ in $(seq 1 100); do
  curl -fsS --noproxy '*' -o /dev/null "http://127.0.0.1:$GATEWAY_PORT/healthz" 2>/dev/null && exit 0
  sleep 0.1
done
exit 1
EOF
stop() {
  bash "$work/gateway.sh" stop
  [ -z "$server" ] || { kill -TERM "$server" 2>/dev/null && wait "$server" || true; }
  rm -rf "$work"
}
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
sed -n 's/^\(test_[^:]*::[^[]*\).*/\1/p' "$work/collect.log" >"$work/in_order"
sort -u "$work/in_order" >"$work/collected"
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

gateway_port=${TESSERA_ACCEPTANCE_GATEWAY_PORT:-18088}
printf '[models]\nsmollm2-135m-instruct = "%s"\nllama-7b = "%s"\n' "$model" "$model" >"$work/models.toml"
mkdir "$work/data"
export TESSERA=$tessera GATEWAY_PORT=$gateway_port TESSERA_DATA_DIR=$work/data
export TESSERA_RESTART_CMD="bash '$work/gateway.sh' start"
bash "$work/gateway.sh" start || { cat "$work/gateway.log" >&2; fail "the gateway was not ready within 10 s"; }

# A test name without parameters selects all of them. In the suite's own order: tests of one file
# may share an endpoint, which the last of them deletes.
export TESSERA_SERVE_URL=http://127.0.0.1:$port TESSERA_URL=http://127.0.0.1:$gateway_port
export TESSERA_IDLE_S=5 NO_PROXY='*' no_proxy='*' LLM_ENGINE_DISABLE_VERSION_CHECK=1
mapfile -t selected < <(awk 'NR == FNR { ready[$0]; next } $0 in ready && !seen[$0]++' \
  "$work/ready" "$work/in_order")
status=0
"$python" -m pytest -q -p no:cacheprovider "${selected[@]}" "$@" || status=$?
kill -0 "$server" 2>/dev/null || { tail -n 20 "$work/serve.log" >&2; fail "the server died"; }
kill -0 "$(cat "$work/pid")" 2>/dev/null || { tail -n 20 "$work/gateway.log" >&2; fail "the gateway died"; }
exit $status
