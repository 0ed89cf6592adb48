#!/usr/bin/env bash
# Builds the driver (preset release) and runs the deterministic gates; UPDATE=1 rewrites counts.json.
# Usage: tests/gates/run.sh [GATES.PY OPTIONS]
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v valgrind >/dev/null || { echo "gates: no valgrind: run tools/setup.sh test" >&2; exit 1; }
cmake --preset release > /dev/null
cmake --build --preset release --target tessera gate_driver
exec python3 tests/gates/gates.py "$@"
