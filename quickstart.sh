#!/usr/bin/env bash
# From a fresh Debian 12 machine to an answer of a real model: installs packages, builds, fetches
# SmolLM2-135M-Instruct, serves it and asks it a question. Every step is announced; a second run
# takes seconds. Usage: ./quickstart.sh [--port N] [--ask "QUESTION"] [--keep]
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)
cd "$root"

port=8000
question="What is the capital city of France? Answer in one sentence."
keep=false

usage() { echo 'usage: ./quickstart.sh [--port N] [--ask "QUESTION"] [--keep]'; }
fail() { echo; echo "quickstart: $1" >&2; [ -z "${2:-}" ] || echo "  what to do: $2" >&2; exit 1; }
step() { echo "==> $*"; }

while [ $# -gt 0 ]; do
  case "$1" in
    --port) port=${2:?--port needs a number}; shift 2 ;;
    --port=*) port=${1#*=}; shift ;;
    --ask) question=${2:?--ask needs a question}; shift 2 ;;
    --ask=*) question=${1#*=}; shift ;;
    --keep) keep=true; shift ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
[[ "$port" =~ ^[0-9]+$ ]] && [ "$port" -ge 1 ] && [ "$port" -le 65535 ] ||
  { echo "quickstart: --port $port is not a port number (1 to 65535)" >&2; exit 2; }

# The process that listens on the port, from /proc: needs no tool that a bare machine may lack.
port_owner() {
  local inode
  inode=$(awk -v p="$(printf ':%04X$' "$port")" '$4 == "0A" && $2 ~ p { print $10; exit }' \
    /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  [ -n "$inode" ] || return 1
  # Processes come and go meanwhile, and those of other users cannot be looked into.
  { find /proc/[0-9]*/fd -lname "socket:\[$inode\]" 2>/dev/null || true; } |
    sed -n '1s,/proc/\([0-9]*\)/.*,\1,p'
}
if owner=$(port_owner); then
  fail "port $port is in use${owner:+ by process $owner ($(cat "/proc/$owner/comm" 2>/dev/null))}" \
    "${owner:+stop it with: kill $owner, or }choose another port with --port N"
fi

step "1/5 packages"
tools/setup.sh build || fail "packages could not be installed" "see the lines above"
[ -x "$HOME/.cargo/bin/cargo" ] && export PATH="$HOME/.cargo/bin:$PATH"

step "2/5 build (the first time takes some minutes; log: build/quickstart.log)"
mkdir -p build
export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
{ cmake --preset release && cmake --build --preset release --target tessera; } >build/quickstart.log 2>&1 ||
  { tail -n 25 build/quickstart.log >&2; fail "the build failed" "read build/quickstart.log"; }
tessera=build/release/tessera
echo "    $($tessera --version)"

step "3/5 model: SmolLM2-135M-Instruct"
model=$(tools/fetch_smollm2.sh "$root/.cache/models") ||
  fail "the model could not be fetched" "check the network, HF_ENDPOINT and proxy variables"
echo "    $model"

step "4/5 server: tessera serve on port $port"
log=build/quickstart-serve.log
: >"$log"
$tessera serve "$model" --port "$port" --served-model-name smollm2-135m-instruct >"$log" 2>&1 &
server=$!
stop_server() { if kill -0 "$server" 2>/dev/null; then kill -TERM "$server"; wait "$server" || true; fi; }
trap stop_server EXIT
url=http://127.0.0.1:$port
for _ in $(seq 1 600); do
  kill -0 "$server" 2>/dev/null ||
    { tail -n 5 "$log" >&2; fail "the server stopped" "read $log; is port $port taken? try --port"; }
  # Only our server writes this log, and that line only once the port is its own.
  if grep -q '^serving ' "$log" && curl -fsS --noproxy '*' -o /dev/null "$url/readyz" 2>/dev/null
  then ready=true; break; fi
  sleep 0.1
done
[ "${ready:-false}" = true ] || fail "the server was not ready within a minute" "read $log"

step "5/5 question: $question"
body=$(jq -n --arg q "$question" '{model: "smollm2-135m-instruct", stream: true, max_tokens: 200,
  temperature: 0, stream_options: {include_usage: true}, messages: [{role: "user", content: $q}]}')
answer=$(mktemp)
begin=$(date +%s%N)
echo
curl -fsSN --noproxy '*' "$url/v1/chat/completions" -H 'Content-Type: application/json' -d "$body" |
  sed -u -n 's/^data: //p' | grep --line-buffered -v '^\[DONE\]' | tee "$answer" |
  jq --unbuffered -rj '.choices[0].delta.content // empty' ||
  fail "the question was not answered" "read $log"
end=$(date +%s%N)
tokens=$(jq -r 'select(.usage != null) | .usage.completion_tokens' "$answer" | tail -n 1)
rm -f "$answer"
echo; echo
[ -n "$tokens" ] && [ "$tokens" -gt 0 ] || fail "the server sent no answer" "read $log"
awk -v n="$tokens" -v ns=$((end - begin)) \
  'BEGIN { printf "    %d tokens in %.2f s: %.1f tokens/s, prompt included\n", n, ns / 1e9, n * 1e9 / ns }'

echo
echo "How to go on:"
echo "  $tessera run $model                 chat in the terminal"
echo "  $tessera serve $model --port $port    the server, OpenAI API at $url/v1"
echo "  ./check.sh                                 all tests"
if [ "$keep" = true ]; then
  trap - EXIT
  disown "$server"
  echo "The server keeps running as process $server; stop it with: kill $server"
fi
