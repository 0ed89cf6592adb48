#!/usr/bin/env bash
# Builds preset `fuzz` and runs every fuzzer for SECONDS over its corpus, two at a time; the canary
# must fail. Without names it also builds the whole program with this preset, so that the second
# compiler sees every production source. Closes with "checks: N passed, M failed" (each fuzzer and
# the canary is one). Usage: tests/fuzz/run.sh SECONDS [FUZZER ...]
# The registry is the tree: every src/**/*_fuzz.cc is a fuzzer and must have a seed corpus.
set -euo pipefail
cd "$(dirname "$0")/../.."

export seconds=${1:?usage: tests/fuzz/run.sh SECONDS [FUZZER ...]}
shift
targets=(canary_fuzz)
if [ $# -gt 0 ]; then
  fuzzers=("$@")
else
  mapfile -t fuzzers < <(find src -name '*_fuzz.cc' -printf '%f\n' | sed 's/\.cc$//' | sort)
  targets+=(tessera)
fi
targets+=("${fuzzers[@]}")
export build=build/fuzz
mkdir -p "$build/finds"

for fuzzer in "${fuzzers[@]}"; do
  if [ -z "$(ls -A "tests/fuzz/corpus/$fuzzer" 2>/dev/null)" ]; then
    echo "fuzz: $fuzzer has no seeds in tests/fuzz/corpus/$fuzzer" >&2
    exit 1
  fi
done

cmake --preset fuzz > "$build/configure.log" || { cat "$build/configure.log" >&2; exit 1; }
begin=$SECONDS
ninja -C "$build" "${targets[@]}"
echo "== built in $((SECONDS - begin)) s"

export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1

# The canary's planted bug must be found within two minutes, and be the reason of its end.
run_canary() {
  local log="$build/canary_fuzz.log"
  if "$build/tests/fuzz/canary_fuzz" -max_total_time=120 -artifact_prefix="$build/finds/canary_fuzz-" \
      > "$log" 2>&1; then
    echo "== canary_fuzz: FAILED: it survived, so coverage or sanitizers are missing"
    return 1
  elif ! grep -q 'heap-buffer-overflow' "$log"; then
    echo "== canary_fuzz: FAILED for another reason than its planted bug:"
    tail -n 20 "$log"
    return 1
  fi
  echo "== canary_fuzz: caught"
}

# One fuzzer for $seconds. No input of ours justifies a large allocation, a slow parse or a large
# process; `timeout` ends what libFuzzer's own clock cannot.
run_fuzzer() {
  local fuzzer=$1 log="$build/$1.log" grown="$build/corpus/$1" binary dictionary
  binary=$(find "$build/src" -name "$fuzzer" -type f -executable | head -n 1)
  mkdir -p "$grown"
  mapfile -t dictionary < <(find src -name "$fuzzer.dict" -printf '-dict=%p\n')
  if timeout -k 10 $((seconds * 2 + 120)) "$binary" -max_total_time="$seconds" -timeout=10 \
      -malloc_limit_mb=256 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
      "${dictionary[@]}" -artifact_prefix="$build/finds/$fuzzer-" \
      "$grown" "tests/fuzz/corpus/$fuzzer" > "$log" 2>&1; then
    echo "== $fuzzer: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs, nothing found"
  else
    printf '== %s: FAILED, see %s and %s/finds\n%s\n' "$fuzzer" "$log" "$build" "$(tail -n 40 "$log")"
    return 1
  fi
}

# Runs one of them; its verdict is a file, since xargs only tells that some failed.
check() {
  if [ "$1" = canary_fuzz ]; then run_canary; else run_fuzzer "$1"; fi && touch "$build/passed/$1"
}
export -f run_canary run_fuzzer check

rm -rf "$build/passed"
mkdir "$build/passed"
printf '%s\n' canary_fuzz "${fuzzers[@]}" | xargs -P 2 -I{} bash -c 'check {}' || true
total=$((${#fuzzers[@]} + 1))
passed=$(find "$build/passed" -type f | wc -l)
echo "checks: $passed passed, $((total - passed)) failed"
[ "$passed" -eq "$total" ]
