#!/usr/bin/env bash
# Sets up what is missing, builds everything with the preset release and runs all tests.
#
# TPUDIST_TEST_SANITIZERS=1  first run the tests of all that needs no LibTorch, dist on several ranks included,
#                            under ThreadSanitizer, and then all tests under AddressSanitizer and
#                            UndefinedBehaviorSanitizer; an hour on two cores (docs/testing.md)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
torch=(${TPUDIST_TORCH_ROOT:+"-DTPUDIST_TORCH_ROOT=$TPUDIST_TORCH_ROOT"})

if [[ ${TPUDIST_TEST_SANITIZERS:-0} == 1 ]]; then
  for preset in tsan asan-ubsan-torch; do
    cmake --preset "$preset" "${torch[@]}"
    cmake --build --preset "$preset"
    ctest --preset "$preset" -j2
  done
fi

cmake --preset release "${torch[@]}"
cmake --build --preset release
ctest --preset release --output-on-failure -j2
