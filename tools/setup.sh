#!/usr/bin/env bash
# Installs what building (and, with "bench", micro-benchmarks; with "test", testing) needs on Debian
# 12. Says what it does; installs nothing that is there already. Usage: tools/setup.sh [build|bench|test]
set -euo pipefail

build_packages=(
  ca-certificates curl git g++ cmake ninja-build pkg-config ccache
  libboost1.81-dev libssl-dev libfmt-dev libspdlog-dev libcli11-dev libhwloc-dev
  libcurl4-openssl-dev prometheus-cpp-dev libgtest-dev libgmock-dev zlib1g-dev
  python3 python3-pip jq
)
bench_packages=("${build_packages[@]}" libbenchmark-dev)
test_packages=(
  "${bench_packages[@]}"
  clang-19 libclang-rt-19-dev clang-format-14 python3-venv valgrind procps
)

fail() { echo "setup: $*" >&2; exit 1; }

# A machine may bring its own, newer tool under the same command name; then its package is not needed.
need_node() { command -v npm >/dev/null || echo nodejs npm; }

cargo_is_new_enough() {
  local version
  version=$(cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9]*\)\.\([0-9]*\).*/\1 \2/p') || return 1
  [ -n "$version" ] || return 1
  set -- $version
  [ "$1" -gt 1 ] || [ "$2" -ge 87 ]
}

missing_of() {
  local package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

set_name=${1:-build}
case "$set_name" in
  build) wanted=("${build_packages[@]}") ;;
  bench) wanted=("${bench_packages[@]}") ;;
  test) wanted=("${test_packages[@]}" $(need_node)) ;;
  *) fail "usage: setup.sh [build|bench|test]" ;;
esac
[ -x "$HOME/.cargo/bin/cargo" ] && PATH="$HOME/.cargo/bin:$PATH"
cargo_is_new_enough || wanted+=(cargo-web rustc-web)

missing=($(missing_of "${wanted[@]}"))
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#wanted[@]} packages are installed"
  exit 0
fi
. /etc/os-release
[ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ] ||
  echo "setup: made for Debian 12, this is ${PRETTY_NAME:-unknown}; trying anyway"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "needs root to install: ${missing[*]}"
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q >/dev/null ||
  fail "apt-get update failed; is the package mirror reachable?"
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}" >/dev/null ||
  fail "apt-get install failed; run it by hand to see why: apt-get install ${missing[*]}"
