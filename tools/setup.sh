#!/usr/bin/env bash
# Installs what building (and, with "test", testing) needs on Debian 12. Says what it does; installs
# nothing that is there already. Usage: tools/setup.sh [build|test]
set -euo pipefail

build_packages=(
  ca-certificates curl git g++ cmake ninja-build pkg-config ccache
  libboost1.81-dev libssl-dev libfmt-dev libspdlog-dev libcli11-dev libhwloc-dev
  libcurl4-openssl-dev libsqlite3-dev libtomlplusplus-dev prometheus-cpp-dev libgtest-dev libgmock-dev libbenchmark-dev zlib1g-dev
  libopenmpi-dev openmpi-bin
  python3 python3-pip jq
)
test_packages=(
  "${build_packages[@]}"
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
  test) wanted=("${test_packages[@]}" $(need_node)) ;;
  *) fail "usage: setup.sh [build|test]" ;;
esac
[ -x "$HOME/.cargo/bin/cargo" ] && PATH="$HOME/.cargo/bin:$PATH"
cargo_is_new_enough || wanted+=(cargo-web rustc-web)

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)

# Prometheus' checker of metrics and rules. Its package would also start a server: only the tool is
# taken out of it.
fetch_promtool() {
  local root bin work
  root=$(cd "$(dirname "$0")/.." && pwd)
  bin=$root/.cache/bin
  if command -v promtool >/dev/null || [ -x "$bin/promtool" ]; then return 0; fi
  echo "setup: fetching promtool into .cache/bin"
  work=$(mktemp -d)
  download() { (cd "$work" && apt-get download -q -o APT::Sandbox::User=root prometheus) >/dev/null; }
  # The lists of packages may be missing or old.
  download 2>/dev/null || { "${as_root[@]}" apt-get update -q >/dev/null && download; } ||
    fail "promtool could not be fetched: apt-get download prometheus"
  dpkg-deb -x "$work"/prometheus_*.deb "$work"
  mkdir -p "$bin"
  mv "$work/usr/bin/promtool" "$bin/promtool"
  rm -rf "$work"
}

missing=($(missing_of "${wanted[@]}"))
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#wanted[@]} packages are installed"
  [ "$set_name" != test ] || fetch_promtool
  exit 0
fi
. /etc/os-release
[ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ] ||
  echo "setup: made for Debian 12, this is ${PRETTY_NAME:-unknown}; trying anyway"
[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null || fail "needs root to install: ${missing[*]}"
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q >/dev/null ||
  fail "apt-get update failed; is the package mirror reachable?"
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}" >/dev/null ||
  fail "apt-get install failed; run it by hand to see why: apt-get install ${missing[*]}"
[ "$set_name" != test ] || fetch_promtool
