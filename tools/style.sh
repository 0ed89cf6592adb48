#!/usr/bin/env bash
# Formatting: clang-format for C++, rustfmt for Rust, bash -n for scripts. Usage: tools/style.sh [--fix]
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t cpp < <(git ls-files '*.h' '*.cc' | grep -v '^textkit/include/')
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
mapfile -t rust < <(git ls-files '*.rs')
if [ "${1:-}" = --fix ]; then
  clang-format-14 -i "${cpp[@]}"
  if command -v rustfmt >/dev/null && [ ${#rust[@]} -gt 0 ]; then rustfmt --edition 2021 "${rust[@]}"; fi
  exit 0
fi
clang-format-14 --dry-run --Werror "${cpp[@]}"
for script in "${scripts[@]}"; do bash -n "$script"; done
if command -v rustfmt >/dev/null && [ ${#rust[@]} -gt 0 ]; then rustfmt --edition 2021 --check "${rust[@]}"; fi
echo "checks: $((${#cpp[@]} + ${#scripts[@]} + ${#rust[@]})) passed, 0 failed"
