#!/usr/bin/env bash
# Builds preset `fuzz` and runs every fuzzer for SECONDS over its corpus; the canary must fail.
# Usage: tests/fuzz/run.sh SECONDS [FUZZER ...]
# The registry is the tree: every src/**/*_fuzz.cc is a fuzzer and must have a seed corpus.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:?usage: tests/fuzz/run.sh SECONDS [FUZZER ...]}
shift
if [ $# -gt 0 ]; then
  fuzzers=("$@")
else
  mapfile -t fuzzers < <(find src -name '*_fuzz.cc' -printf '%f\n' | sed 's/\.cc$//' | sort)
fi
build=build/fuzz
mkdir -p "$build/finds"

for fuzzer in "${fuzzers[@]}"; do
  if [ -z "$(ls -A "tests/fuzz/corpus/$fuzzer" 2>/dev/null)" ]; then
    echo "fuzz: $fuzzer has no seeds in tests/fuzz/corpus/$fuzzer" >&2
    exit 1
  fi
done

cmake --preset fuzz > "$build/configure.log" || { cat "$build/configure.log" >&2; exit 1; }
ninja -C "$build" canary_fuzz "${fuzzers[@]}"

# No input of ours justifies a large allocation, a slow parse or a large process.
limits=(-timeout=10 -malloc_limit_mb=256 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1)
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1

echo "== canary_fuzz (must fail)"
if "$build/tests/fuzz/canary_fuzz" -max_total_time=120 -artifact_prefix="$build/finds/canary-" \
    > "$build/canary.log" 2>&1; then
  echo "fuzz: the canary survived: coverage or sanitizers are missing" >&2
  exit 1
fi
if ! grep -q 'heap-buffer-overflow' "$build/canary.log"; then
  echo "fuzz: the canary failed for another reason than its planted bug:" >&2
  tail -20 "$build/canary.log" >&2
  exit 1
fi

failed=()
for fuzzer in "${fuzzers[@]}"; do
  binary=$(find "$build/src" -name "$fuzzer" -type f -executable | head -n 1)
  grown="$build/corpus/$fuzzer"
  mkdir -p "$grown"
  mapfile -t dictionary < <(find src -name "$fuzzer.dict" -printf '-dict=%p\n')
  if "$binary" "${limits[@]}" "${dictionary[@]}" -max_total_time="$seconds" -artifact_prefix="$build/finds/$fuzzer-" \
      "$grown" "tests/fuzz/corpus/$fuzzer" > "$build/$fuzzer.log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$fuzzer.log")
    echo "== $fuzzer: $runs runs, nothing found"
  else
    echo "== $fuzzer: FAILED, see $build/$fuzzer.log and $build/finds" >&2
    tail -40 "$build/$fuzzer.log" >&2
    failed+=("$fuzzer")
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "fuzz: ${#failed[@]} of ${#fuzzers[@]} failed: ${failed[*]}" >&2
  exit 1
fi
echo "fuzz: ${#fuzzers[@]} fuzzers, $seconds s each, nothing found; the canary was caught"
