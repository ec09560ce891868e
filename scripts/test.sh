#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests: 13 to 17 minutes on two cores
# after scripts/demo.sh.
#
#   scripts/test.sh [option of ctest ...]      e.g. -L '^data$', for the tests of one folder
#
# TPUDIST_PRESET             the preset of CMake, one with tests; default release
# TPUDIST_TEST_SANITIZERS=1  first run all tests that need no LibTorch, including dist on several ranks,
#                            under ThreadSanitizer, then all tests under AddressSanitizer and
#                            UndefinedBehaviorSanitizer; an hour on two cores (docs/testing.md)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${TPUDIST_PRESET:-release}
presets=$(cmake --list-presets=test 2> /dev/null) || true  # none where set-up is yet to install CMake
if [[ -n $presets && $presets != *"\"$preset\""* ]]; then
  echo "test.sh: TPUDIST_PRESET=$preset: no preset with tests; \`cmake --list-presets=test\` lists them" >&2
  exit 2
fi

scripts/setup.sh
torch=(${TPUDIST_TORCH_ROOT:+"-DTPUDIST_TORCH_ROOT=$TPUDIST_TORCH_ROOT"})

if [[ ${TPUDIST_TEST_SANITIZERS:-0} == 1 ]]; then
  for preset in tsan asan-ubsan-torch; do
    cmake --preset "$preset" "${torch[@]}"
    cmake --build --preset "$preset"
    ctest --preset "$preset" -j2 "$@"
  done
fi

cmake --preset "$preset" "${torch[@]}"
cmake --build --preset "$preset"
ctest --preset "$preset" --output-on-failure -j2 "$@"
