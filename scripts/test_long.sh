#!/usr/bin/env bash
# The longer checks, for which continuous integration has no time. Prints a table; the exit code is 1 if
# one of them fails. Some ten minutes on two cores, with the sanitizers an hour.
#
#   1. One small network for 8 steps on 1, 2, 3, 4, 5 and 8 ranks with 1 and 2 threads each: the same
#      parameters.
#   2. Resumed after step 4 on 1, 2 and 5 ranks: those parameters again.
#   3. Scores and submission on 1 and 3 ranks: the same files.
#   4. The tests under the sanitizers (scripts/test.sh); TPUDIST_TEST_SANITIZERS=0 leaves them out.
#
# TPUDIST_LONG_DIR  where data, runs and logs go, kept; default a new folder in /tmp, removed when all
#                   went well
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tpudist=$PWD/build/release/tpudist
scratch=${TPUDIST_LONG_DIR:-$(mktemp -d)}
mkdir -p "$scratch"
failures=0

# As root, Open MPI asks for consent; in containers one of its copying methods is not allowed.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMP_NUM_THREADS=1

# on_ranks RANKS COMMAND... runs tpudist on so many ranks; its output goes to the log.
on_ranks() {
  local ranks=$1; shift
  echo "# $ranks ranks: $*" >> "$scratch/log"
  mpirun --bind-to none --oversubscribe -np "$ranks" "$tpudist" "$@" 2>&1 | tee -a "$scratch/log"
}

# row NAME RESULT EXPECTED prints a line of the table.
row() {
  local verdict=ok
  if [[ $2 != "$3" ]]; then
    verdict="FAILED, expected $3"
    failures=$((failures + 1))
  fi
  printf '%-36s %-18s %5s s  %s\n' "$1" "$2" "$((SECONDS - started))" "$verdict"
}

# train RUN RANKS THREADS [--resume] prints the hash of the parameters, or "none".
train() {
  local run=$1 ranks=$2 threads=$3; shift 3
  { on_ranks "$ranks" train experiments/demo.yaml model.preset=latenciaga_xla "model.blocks=[]" \
      train.steps=8 train.evaluate_every=0 \
      train.last_evaluation=none train.checkpoint_every=4 train.keep_checkpoints=9 \
      ensemble.members=3 "dist.threads=$threads" --run-dir "$scratch/$run" "$@" || true
  } | sed -n 's/^parameters: //p' | grep . || echo none
}

check_ranks() {
  local ranks threads
  first=""
  for ranks in 1 2 3 4 5 8; do
    for threads in 1 2; do
      started=$SECONDS
      hash=$(train "run-$ranks-$threads" "$ranks" "$threads")
      first=${first:-$hash}
      [[ $first != none ]] || first="a hash"
      row "train, $ranks ranks x $threads threads" "$hash" "$first"
    done
  done
}

check_resume() {
  local ranks
  for ranks in 1 2 5; do
    started=$SECONDS
    cp -r "$scratch/run-3-1" "$scratch/resumed-$ranks"
    rm -f "$scratch/resumed-$ranks"/checkpoints/step-*8.h5
    row "resumed after 4 steps, $ranks ranks" "$(train "resumed-$ranks" "$ranks" 1 --resume)" "$first"
  done
}

check_files() {
  local ranks file
  for ranks in 1 3; do
    on_ranks "$ranks" evaluate "$scratch/run-3-1" --json "$scratch/scores-$ranks.json" > /dev/null || true
    on_ranks "$ranks" predict "$scratch/run-3-1" --csv "$scratch/rank-$ranks.csv" > /dev/null || true
  done
  for file in scores-%.json rank-%.csv; do
    started=$SECONDS
    row "3 ranks: ${file/-%/}" "$(cksum < "$scratch/${file/\%/3}" | tr ' ' -)" \
      "$(cksum < "$scratch/${file/\%/1}" | tr ' ' -)"
  done
}

check_sanitizers() {
  started=$SECONDS
  local result=clean
  TPUDIST_TEST_SANITIZERS=1 scripts/test.sh > "$scratch/sanitizers.log" 2>&1 || result=errors
  row "tests, also under sanitizers" "$result" clean
}

scripts/setup.sh
cmake --preset release ${TPUDIST_TORCH_ROOT:+"-DTPUDIST_TORCH_ROOT=$TPUDIST_TORCH_ROOT"} > "$scratch/build.log"
cmake --build --preset release --target tpudist >> "$scratch/build.log"
rm -rf "$scratch"/{npz,shards,log} "$scratch"/run-* "$scratch"/resumed-*
"$tpudist" synth "$scratch/npz" --preset demo >> "$scratch/log" 2>&1
"$tpudist" convert "$scratch/npz" "$scratch/shards" >> "$scratch/log" 2>&1
export TPUDIST_DATA=$scratch/shards

check_ranks
check_resume
check_files
[[ ${TPUDIST_TEST_SANITIZERS:-1} == 0 ]] || check_sanitizers

if (( failures > 0 )); then
  echo "$failures checks failed; see the logs in $scratch"
  exit 1
fi
echo "all checks passed"
[[ -n ${TPUDIST_LONG_DIR:-} ]] || rm -rf "$scratch"
