#!/usr/bin/env bash
# Installs what building (and, with "test", testing) needs on Debian 12. Says what it does; installs
# nothing that is there already. Usage: tools/setup.sh [build|test]
set -euo pipefail

build_packages=(
  ca-certificates curl git g++ cmake ninja-build pkg-config ccache
  libboost1.81-dev libssl-dev libfmt-dev libspdlog-dev libcli11-dev libhwloc-dev
  libcurl4-openssl-dev libsqlite3-dev libpq-dev libtomlplusplus-dev prometheus-cpp-dev libgtest-dev libgmock-dev libbenchmark-dev zlib1g-dev
  libopenmpi-dev openmpi-bin
  python3 python3-pip jq
)
test_packages=(
  "${build_packages[@]}"
  clang-19 libclang-rt-19-dev clang-format-14 python3-venv valgrind procps
  libxml2 libldap-2.5-0  # Of PostgreSQL's server, below.
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

# fetch PACKAGE FOLDER: its files into FOLDER. For packages that would also start a server here.
fetch() {
  local package=$1 folder=$2
  download() {
    (cd "$folder" && apt-get download -q -o APT::Sandbox::User=root "$package") >/dev/null
  }
  # The lists of packages may be missing or old.
  download 2>/dev/null || { "${as_root[@]}" apt-get update -q >/dev/null && download; } ||
    fail "$package could not be fetched: apt-get download $package"
  dpkg-deb -x "$folder/$package"_*.deb "$folder"
}

# Prometheus' checker of metrics and rules, and PostgreSQL's server for tests of the gateway.
fetch_tools() {
  local cache work
  cache=$(cd "$(dirname "$0")/.." && pwd)/.cache
  if ! command -v promtool >/dev/null && [ ! -x "$cache/bin/promtool" ]; then
    echo "setup: fetching promtool into .cache/bin"
    work=$(mktemp -d)
    fetch prometheus "$work"
    mkdir -p "$cache/bin"
    mv "$work/usr/bin/promtool" "$cache/bin/promtool"
    rm -rf "$work"
  fi
  if [ ! -x "$cache/postgres/lib/postgresql/15/bin/postgres" ]; then
    echo "setup: fetching PostgreSQL into .cache/postgres"
    work=$(mktemp -d)
    fetch postgresql-15 "$work"
    rm -rf "$cache/postgres" "$work/usr/lib/postgresql/15/lib/bitcode"
    mkdir -p "$cache/postgres/lib" "$cache/postgres/share"
    mv "$work/usr/share/postgresql" "$cache/postgres/share/"
    mv "$work/usr/lib/postgresql" "$cache/postgres/lib/"
    rm -rf "$work"
  fi
}

missing=($(missing_of "${wanted[@]}"))
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#wanted[@]} packages are installed"
  [ "$set_name" != test ] || fetch_tools
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
[ "$set_name" != test ] || fetch_tools
