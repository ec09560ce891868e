#!/usr/bin/env bash
# Sets up what is missing, builds everything with the preset release and runs all tests.
#
# TPUDIST_TEST_SANITIZERS=1  also run the tests of core and data under the three sanitizers, first
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh

if [[ ${TPUDIST_TEST_SANITIZERS:-0} == 1 ]]; then
  for preset in asan ubsan tsan; do
    cmake --preset "$preset"
    cmake --build --preset "$preset"
    ctest --preset "$preset" -j2
  done
fi

cmake --preset release ${TPUDIST_TORCH_ROOT:+"-DTPUDIST_TORCH_ROOT=$TPUDIST_TORCH_ROOT"}
cmake --build --preset release
ctest --preset release --output-on-failure -j2
