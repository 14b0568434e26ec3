#!/usr/bin/env bash
# check_weak_symbols.sh NM PATTERN OBJECTS: fails if an object whose file name begins with PATTERN defines a weak symbol.
# OBJECTS is a list separated by semicolons. A weak symbol of a file compiled for AVX2 can be linked into code for every CPU.
set -euo pipefail
nm=$1 pattern=$2
IFS=';' read -r -a objects <<< "$3"
checked=0 bad=0
for object in "${objects[@]}"; do
  [[ $(basename "$object") == "$pattern"* ]] || continue
  checked=$((checked + 1))
  # V, W, u: weak object, weak function, unique. Lower-case v and w are undefined references, which are harmless.
  if weak=$("$nm" -C --defined-only "$object" | grep -E '^[0-9a-f]+ [VWu] '); then
    echo "$object defines weak symbols:"; echo "$weak"
    bad=1
  fi
done
[[ $checked -gt 0 ]] || { echo "no object matches $pattern"; exit 2; }
echo "$checked objects checked"
exit $bad
