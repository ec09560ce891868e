#!/usr/bin/env bash
# The main job on a small synthetic data set, from nothing: sets up, builds, makes raw NPZ files of
# all five collections, converts them to shards, trains a five-member ensemble on two MPI ranks,
# scores it on the validation split, ranks the test split, and searches one program of it for fast
# layouts. About 8 minutes on two cores, most of them set-up and build. Safe to run again: finished
# work stays.
#
#   scripts/demo.sh [key=value ...]      key=value overrides experiments/demo.yaml, in another folder:
#   TPUDIST_DEMO_DIR=/tmp/quick scripts/demo.sh train.steps=20
#
# TPUDIST_DEMO_DIR    folder of all output; default demo-output/ of the repository
# TPUDIST_DEMO_RANKS  MPI ranks; default 2
# TPUDIST_PRESET      the preset of CMake, one that builds tpudist; default release
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit
fi
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
demo=$(realpath -m "${TPUDIST_DEMO_DIR:-$root/demo-output}")  # given relative to where this is called
cd "$root"
ranks=${TPUDIST_DEMO_RANKS:-2}
preset=${TPUDIST_PRESET:-release}
tpudist=build/$preset/tpudist

step() { printf '\n=== %s\n' "$*"; }

# As root, Open MPI asks for consent; in containers one of its copying methods is not allowed.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
on_ranks() { mpirun --bind-to none --oversubscribe -np "$ranks" "$@"; }

# Before set-up, which takes minutes. Those of the sanitizers alone build without LibTorch.
presets=$(cmake --list-presets=build 2> /dev/null | sed -n 's/^ *"\([^"]*\)".*/\1/p' |
  grep -vxE 'asan|ubsan|tsan|fuzz' | paste -sd ' ') || true  # none where set-up is yet to install CMake
if [[ -n $presets && " $presets " != *" $preset "* ]]; then
  echo "demo.sh: TPUDIST_PRESET=$preset: no preset that builds tpudist; there are $presets" >&2
  exit 2
fi

step "set-up and build"
scripts/setup.sh
cmake --preset "$preset" ${TPUDIST_TORCH_ROOT:+"-DTPUDIST_TORCH_ROOT=$TPUDIST_TORCH_ROOT"}
cmake --build --preset "$preset" --target tpudist

step "raw data: NPZ files of all five collections"
"$tpudist" synth "$demo/npz" --preset demo

step "conversion to shards"
"$tpudist" convert "$demo/npz" "$demo/shards"

step "training of five members on $ranks ranks"
export TPUDIST_DATA=$demo/shards
on_ranks "$tpudist" train experiments/demo.yaml "$@" --run-dir "$demo/run" --resume

step "scores on the validation split"
on_ranks "$tpudist" evaluate "$demo/run" --split valid --json "$demo/scores.json"

step "ranking of the test split"
on_ranks "$tpudist" predict "$demo/run" --split test --csv "$demo/submission.csv"

step "files"
cat << TEXT
raw data    $demo/npz
shards      $demo/shards           (tpudist inspect $demo/shards)
run         $demo/run              config.yaml, metrics.jsonl, scores.json
checkpoint  $(ls "$demo"/run/checkpoints/*.h5 | tail -n 1)
scores      $demo/scores.json
submission  $demo/submission.csv
TEXT

step "a choice: fast layouts for a program that no training saw"
program=$(ls "$demo"/npz/layout/xla/default/test/*.npz | head -n 1)
on_ranks "$tpudist" search "$program" --run "$demo/run" --propose 5
on_ranks "$tpudist" search "$program" --run "$demo/run" --propose 5 --json --quiet > "$demo/found.json"
times=$("$tpudist" synth --times "$demo/found.json")
printf '\nthe times of the proposals by the law that made the data, without noise:\n%s\n' "$times"
awk '$1 == 1 { printf "\nThe first proposal takes %.1f %% %s time than the default.\n",
  $4 < 0 ? -$4 : $4, $4 < 0 ? "less" : "more" }' <<< "$times"
