#!/usr/bin/env bash
# Sets up what is missing, builds everything with the preset release and runs all tests.
#
# TPUDIST_TEST_SANITIZERS=1  first run the tests of core, data and models/plans under AddressSanitizer,
#                            UndefinedBehaviorSanitizer and ThreadSanitizer, and those of models and
#                            train under the first two with LibTorch; half an hour on two cores
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
torch=(${TPUDIST_TORCH_ROOT:+"-DTPUDIST_TORCH_ROOT=$TPUDIST_TORCH_ROOT"})

if [[ ${TPUDIST_TEST_SANITIZERS:-0} == 1 ]]; then
  for preset in asan ubsan tsan; do
    cmake --preset "$preset"
    cmake --build --preset "$preset"
    ctest --preset "$preset" -j2
  done
  cmake --preset asan-ubsan-torch "${torch[@]}"
  cmake --build --preset asan-ubsan-torch --target tests_models tests_train
  ctest --preset asan-ubsan-torch -L '^(models|train)$' -j2
fi

cmake --preset release "${torch[@]}"
cmake --build --preset release
ctest --preset release --output-on-failure -j2
