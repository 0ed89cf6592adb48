#!/usr/bin/env bash
# Installs, builds and tests everything; closes with totals. Usage: ./check.sh [--quick | --long]
# --quick leaves out sanitizers, fuzzers (which also prove that clang compiles) and acceptance.
set -uo pipefail
root=$(cd "$(dirname "$0")" && pwd)
cd "$root"

quick=false long=false
case "${1:-}" in
  "") ;;
  --quick) quick=true ;;
  --long) long=true ;;  # Ten minutes of mixed load as well.
  *) echo "usage: ./check.sh [--quick | --long]" >&2; exit 2 ;;
esac

export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
[ -x "$HOME/.cargo/bin/cargo" ] && export PATH="$HOME/.cargo/bin:$PATH"
mkdir -p build/check
passed=0 failed=0 skipped=0 failures=()
started=$SECONDS

# A stage runs to a log file; only its result, time and (on failure) its end are shown.
stage() {
  local name=$1; shift
  local log=build/check/${name//[^A-Za-z0-9]/-}.log begin=$SECONDS
  printf '==> %-34s' "$name"
  if "$@" >"$log" 2>&1; then
    printf 'ok    %4d s' $((SECONDS - begin))
  else
    printf 'FAILED %3d s' $((SECONDS - begin))
    failures+=("$name")
    failed=$((failed + 1))
    printf '\n'
    tail -n 60 "$log" | sed 's/^/    /'
    printf '    (whole log: %s)' "$log"
  fi
  count_tests "$log"
  printf '\n'
}

# Adds up what the runners print: ctest, cargo test, pytest, and our own "N passed, N failed".
count_tests() {
  local p f s
  read -r p f s < <(awk '
    /tests passed, [0-9]+ tests failed out of/ { split($0, a, /[^0-9]+/); total = a[3]; bad = a[2]; p += total - bad; f += bad }
    /^test result:/ { for (i = 1; i <= NF; ++i) { if ($(i) ~ /^passed/) p += $(i-1); if ($(i) ~ /^failed/) f += $(i-1); if ($(i) ~ /^ignored/) s += $(i-1) } }
    /(passed|failed|error).* in [0-9.]+s/ { for (i = 2; i <= NF; ++i) { if ($(i) ~ /^passed/) p += $(i-1); if ($(i) ~ /^(failed|error)/) f += $(i-1); if ($(i) ~ /^skipped/) s += $(i-1) } }
    /^checks: [0-9]+ passed, [0-9]+ failed/ { p += $2; f += $4 }
    END { print p + 0, f + 0, s + 0 }' "$1")
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  [ $((p + f + s)) -eq 0 ] || printf '   %d passed, %d failed, %d skipped' "$p" "$f" "$s"
}

build() { cmake --preset "$1" && cmake --build --preset "$1"; }
python_env() {
  [ -x .cache/venv/bin/python ] || python3 -m venv .cache/venv
  .cache/venv/bin/python -m pip install -q --disable-pip-version-check -r tests/e2e/requirements.txt
}

micro_benchmarks() {
  cmake --build --preset release --target kernel_bench &&
    build/release/bench/kernel_bench --benchmark_filter='/rows:1/K:576$' --benchmark_min_time=0.001
}

stage "packages" tools/setup.sh test
stage "test data" tools/fetch_test_data.sh
stage "style" tools/style.sh
stage "layers and tidy" python3 tools/tidy.py
stage "tidy's own tests" python3 tools/tidy_test.py
stage "build release" build release
stage "headers stand alone" cmake --build --preset release --target checkheaders
stage "unit tests, release" ctest --preset release
stage "cargo test" cargo test --release --locked --manifest-path textkit/Cargo.toml
stage "deterministic gates" tests/gates/run.sh
stage "micro-benchmarks start" micro_benchmarks
stage "python environment" python_env
stage "outside view" .cache/venv/bin/python -m pytest tests/e2e -q
if [ "$quick" = false ]; then
  stage "build asan" build asan
  stage "unit tests, asan and ubsan" ctest --preset asan
  stage "fuzz smoke" tests/fuzz/run.sh 10
  stage "acceptance" tests/e2e/acceptance.sh
fi
if [ "$long" = true ]; then
  stage "soak" .cache/venv/bin/python -m pytest tests/e2e/test_soak.py -q -m long --timeout 900
fi

echo
printf 'total: %d s\n' $((SECONDS - started))
if [ ${#failures[@]} -gt 0 ]; then printf 'failed stages: %s\n' "$(IFS=,; echo "${failures[*]}")"; fi
printf 'checks: %d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ ${#failures[@]} -eq 0 ] && [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
