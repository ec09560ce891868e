#!/usr/bin/env bash
# slurm/train.sbatch on a real Slurm of one node (tests/slurm/start_slurm.sh), as root: a job that is put
# back into the queue in mid-run goes on by itself; cancelled and submitted anew with another number of
# ranks it goes on as well, and ends with the parameters of a run that nobody disturbed. `scontrol requeue` stands in for a lost
# node: Slurm kills the job's processes and starts the script again, as it does then. Prints a line for
# each check; the exit code is 1 if one of them fails. Some two minutes on two cores.
#
#   tests/slurm/requeue_test.sh
#
# TPUDIST            the program; default build/release/tpudist
# TPUDIST_REQUEUE_STEPS  steps of the run; default 400
# TPUDIST_SLURM_DIR  where data, runs and logs go, kept; default a new folder in /tmp
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
TPUDIST=$(realpath "${TPUDIST:-build/release/tpudist}")
scratch=${TPUDIST_SLURM_DIR:-$(mktemp -d)}
mkdir -p "$scratch"
failures=0

# As root, Open MPI asks for consent; in containers one of its copying methods is not allowed.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TPUDIST
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMP_NUM_THREADS=1
# Under srun ranks that wait do not know that others share their cores.
export OMPI_MCA_mpi_yield_when_idle=1

check() {  # check NAME COMMAND... : whether the command succeeds
  local name=$1; shift
  if "$@"; then echo "ok      $name"; else echo "FAILED  $name"; failures=$((failures + 1)); fi
}
wait_until() {  # wait_until SECONDS COMMAND... : until the command succeeds
  local end=$((SECONDS + $1)); shift
  until "$@"; do (( SECONDS < end )) || return 1; sleep 0.5; done
}
hash_of() { sed -n 's/^parameters: //p' "$1" | tail -1 | grep . || echo none; }
no_jobs() { [[ -z $(squeue -h) ]]; }
is_pending() { [[ $(squeue -h -j "$1" -o %T 2> /dev/null) == PENDING ]]; }
# Whether the run has a checkpoint of a step behind STEP.
is_behind() { compgen -G "$run/checkpoints/step-*.h5" | sed 's/.*step-0*\([0-9]*\)\.h5/\1/' | awk -v step="$1" '$1 > step { found = 1 } END { exit !found }'; }
newest() { compgen -G "$run/checkpoints/step-*.h5" | sed 's/.*step-0*\([0-9]*\)\.h5/\1/' | sort -n | tail -1; }

"$TPUDIST" synth "$scratch/npz" --preset tiny --quiet > "$scratch/log" 2>&1
"$TPUDIST" convert "$scratch/npz" "$scratch/shards" --jobs 1 --quiet >> "$scratch/log" 2>&1
cat > "$scratch/short.yaml" << END
name: short
data: {shards: $scratch/shards, collection: layout:xla:random}
batch: {slates: 4, configs: 8}
model: {preset: latenciaga_xla}
loss: {list_mle: {weight: 1, clip_norm: 500}}
optimizer: {name: adamw, lr: 1e-3}
schedule: {name: multistep, at: [0.6, 0.8], factor: 0.3}
train: {steps: ${TPUDIST_REQUEUE_STEPS:-400}, checkpoint_every: 5, evaluate_every: 0, log_every: 100, last_evaluation: none}
ensemble: {members: 2, vary: [init]}
dist: {threads: 1, device: cpu}
END
"$TPUDIST" train "$scratch/short.yaml" --run-dir "$scratch/undisturbed" > "$scratch/undisturbed.log" 2>&1
expected=$(hash_of "$scratch/undisturbed.log")
check "undisturbed: parameters $expected" test "$expected" != none

SLURM_CONF=$(tests/slurm/start_slurm.sh "$scratch/slurm")
export SLURM_CONF
finish() {
  [[ -z ${job:-} ]] || scancel "$job" 2> /dev/null || true
  wait_until 30 no_jobs || true
  tests/slurm/start_slurm.sh --stop "$scratch/slurm"
}
trap finish EXIT
run=$scratch/requeued
export TPUDIST_RUN_DIR=$run
submit() {  # submit RANKS
  job=$(sbatch --parsable --ntasks="$1" --ntasks-per-node="$1" --output="$scratch/job.log" \
    slurm/train.sbatch "$scratch/short.yaml")
}
submit 2
check "the job trains on 2 ranks" wait_until 90 is_behind 0
before=$(newest)
scontrol requeue "$job"
check "it waits in the queue" wait_until 60 is_pending "$job"
scontrol update JobId="$job" StartTime=now  # Slurm lets a job that is put back wait for two minutes
check "it goes on behind step $before" wait_until 300 is_behind "$((before + 50))"
before=$(newest)
scancel "$job"
check "cancelled, it ends" wait_until 60 no_jobs
submit 3
check "submitted anew, it ends" wait_until 600 no_jobs
check "it went on from a checkpoint twice" test "$(grep -c 'resuming at step' "$scratch/job.log")" -ge 2
check "parameters $(hash_of "$scratch/job.log")" test "$(hash_of "$scratch/job.log")" = "$expected"
check "no temporary file is left" test -z "$(find "$run" -name '*.tmp*')"

if (( failures > 0 )); then
  echo "$failures checks failed; see $scratch"
  exit 1
fi
[[ -n ${TPUDIST_SLURM_DIR:-} ]] || rm -rf "$scratch"
