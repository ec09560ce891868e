#!/usr/bin/env bash
# Ranks under srun on a real Slurm of one node (tests/slurm/start_slurm.sh), as root: what `tpudist doctor`
# says of them, and that slurm/train.sbatch ends when one is killed, and goes back into the queue when one is
# stopped for ever. Prints a line for each check; the exit code is 1 if one of them fails. About a minute on
# two cores.
#
#   tests/slurm/faults_test.sh
#
# TPUDIST            the program; default build/release/tpudist
# TPUDIST_SLURM_DIR  where data, runs and logs go, kept; default a new folder in /tmp
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=$(realpath "${TPUDIST:-build/release/tpudist}")
scratch=${TPUDIST_SLURM_DIR:-$(mktemp -d)}
mkdir -p "$scratch"
source tests/support/short_run.sh
source tests/support/slurm_job.sh
export TPUDIST=$program
timeout=6  # dist.timeout of the run whose rank is stopped, seconds
long=(train.steps=1000000 train.checkpoint_every=5 train.log_every=100)

# Whether a job has ended, or waits in the queue again.
ended() { [[ $(squeue -h -j "$1" -o %T 2> /dev/null) =~ ^(PENDING)?$ ]]; }
nobody_left() { [[ -z $(ranks_in "$run") ]]; }
exit_code_of() { scontrol show job "$1" -o | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p'; }
tenths() { echo $(($(date +%s%N) / 100000000)); }  # of a second

# disturb SIGNAL WHAT SECONDS: sends it to the second rank of `job`, and checks that the job ends in time.
disturb() {
  local begin ranks passed
  mapfile -t ranks < <(ranks_in "$run" | sort -n)
  check "two ranks train" test "${#ranks[@]}" -eq 2
  begin=$(tenths)
  kill "-$1" "${ranks[1]}"
  check "$2: the job ends" wait_until 60 ended "$job"
  passed=$(($(tenths) - begin))
  check "$2: after $((passed / 10)).$((passed % 10)) s" test "$passed" -le $(($3 * 10))
  check "$2: nobody is left" wait_until 5 nobody_left
}

# doctor WORDS... : what doctor says of two ranks that srun starts that way, into doctor.txt and doctor.json.
doctor() {
  srun -n 2 --gpus=2 --gpu-bind=none "$@" "$program" doctor --run-dir "$scratch" > "$scratch/doctor.txt" || return
  srun -n 2 --gpus=2 --gpu-bind=none "$@" "$program" doctor --run-dir "$scratch" --json > "$scratch/doctor.json"
}
# Whether doctor.json warns of none of what is not wrong here: speeds depend on who else is at work.
no_false_warning() {
  ! sed -n '/"warnings"/,$p' "$scratch/doctor.json" |
    grep -E '"(no_pmix|mpi_threads|shared_gpu|unused_gpus|nccl_header|two_nccls|mixed_cpus|one_core|no_file_locks)"'
}
ranks_told() { grep -cE "^  [01]     $(hostname -s) +0     [01] .* none  " "$scratch/doctor.txt"; }

make_short_data
start_slurm

check "doctor ends well" doctor --mpi=pmix
check "it shows two ranks of this host without a GPU: those of Slurm are pretended" test "$(ranks_told)" -eq 2
check "both are one MPI world" test "$(grep -c '"srun_tasks": 2' "$scratch/doctor.json")" -eq 2
check "it warns of nothing that is well" no_false_warning
check "without PMIx it fails" eval '! doctor --mpi=none 2> "$scratch/doctor.err"'
check "and MPI says why" grep -q "PMI" "$scratch/doctor.err"

submit killed 2 -- "${long[@]}"
check "the job trains on 2 ranks" wait_until 90 is_behind 5
disturb KILL "a rank killed" 10
check "the exit code is that of the rank" test "$(exit_code_of "$job")" -eq 137
check "the other says why it ended" grep -q "error: rank [01] ended without a word: rank [01] waits in collective" "$log"

submit stopped 2 -- "${long[@]}" "dist.timeout=$timeout"
check "the job trains on 2 ranks" wait_until 90 is_behind 5
disturb STOP "a rank stopped for ever" $((timeout + 10))
check "it waits in the queue, for the exit code is that of the watchdog" is_pending "$job"
check "and said so" grep -q "stopped (exit code 86); back to the queue" "$log"
check "$(grep -Eo 'ranks? [0-9, ]*waits? in collective.*(arrived|answer)' "$log" | head -1)" \
  grep -Eq "waits? in collective [0-9]+ \([a-z_]+\), rank [0-9] (has not arrived|does not answer)" "$log"
stop_slurm
end_checks "${TPUDIST_SLURM_DIR:-}"
