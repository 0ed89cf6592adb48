#!/bin/sh
# usage: isa_symbols.sh NM "OBJECT;OBJECT..."
# Fails when an object file for a newer ISA defines a weak symbol outside its own namespace: the
# linker could put it in place of the baseline copy.
set -eu
nm=$1
checked=0
IFS=';'
for object in $2; do
  # On its own, so that an nm that fails ends the check; only an empty grep is good news.
  symbols=$("$nm" -C --defined-only "$object")
  [ -n "$symbols" ] || { echo "$object defines no symbol"; exit 1; }
  found=$(printf '%s\n' "$symbols" | grep -E ' [VWu] ' |
    grep -vE 'tessera::kernels::avx[0-9a-z_]*::|DW\.ref\.__gxx_personality_v0' || true)
  if [ -n "$found" ]; then
    echo "$object defines shared symbols:"
    echo "$found"
    exit 1
  fi
  checked=$((checked + 1))
done
[ "$checked" -gt 0 ] || { echo "no object files given"; exit 1; }
echo "$checked object files share no symbol"
