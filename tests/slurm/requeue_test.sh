#!/usr/bin/env bash
# slurm/train.sbatch on a real Slurm of one node (tests/slurm/start_slurm.sh), as root: a job whose time
# runs out writes a checkpoint, goes back into the queue by itself and goes on there; so does one that is
# put back in mid-run; cancelled and submitted anew with another number of ranks it goes on as well, and
# ends with the parameters of a run that nobody disturbed. `scontrol requeue` stands in for a lost node:
# Slurm kills the job's processes and starts the script again, as it does then. Prints a line for each
# check; the exit code is 1 if one of them fails. Some three minutes on two cores.
#
#   tests/slurm/requeue_test.sh
#
# TPUDIST                the program; default build/release/tpudist
# TPUDIST_REQUEUE_STEPS  steps of the run; default 1500
# TPUDIST_SLURM_DIR      where data, runs and logs go, kept; default a new folder in /tmp
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=$(realpath "${TPUDIST:-build/release/tpudist}")
scratch=${TPUDIST_SLURM_DIR:-$(mktemp -d)}
mkdir -p "$scratch"
source tests/support/short_run.sh
source tests/support/slurm_job.sh
steps=(train.steps="${TPUDIST_REQUEUE_STEPS:-1500}" train.checkpoint_every=5 train.evaluate_every=0
       train.log_every=100 train.last_evaluation=none)

# The shortest time limit of Slurm is a minute. Of the first job's, most is spent here before it trains.
export TPUDIST=$scratch/late.sh
cat > "$TPUDIST" << 'LATE'
#!/usr/bin/env bash
if [[ ${SLURM_RESTART_COUNT:-0} == 0 ]]; then sleep "${LATE:-0}"; fi
exec "$PROGRAM" "$@"
LATE
chmod +x "$TPUDIST"
export PROGRAM=$program

# From the log of the job: how long before its end it stopped, in whole seconds.
seconds_before_end() { echo $(($1 - $(stat -c %Y "$(compgen -G "$run/checkpoints/step-*.h5" | sort | tail -1)"))); }
end_of() { date -d "$(scontrol show job "$1" -o | sed -n 's/.* EndTime=\([^ ]*\).*/\1/p')" +%s; }

# Slurm lets a job that is put back wait for two minutes: until its processes and its script have ended.
start_now() { sleep 4; scontrol update JobId="$job" StartTime=now "$@"; }

make_short_data
"$program" train "$short" "${steps[@]}" --run-dir "$scratch/undisturbed" > "$scratch/undisturbed.log" 2>&1
expected=$(hash_of "$scratch/undisturbed.log")
check "undisturbed: parameters $expected" test "$expected" != none

start_slurm
# The signal that train.sbatch asks for, five minutes before the end, would come at once: one that does nothing.
LATE=45 submit requeued 2 --time=1 --signal=CONT@1 -- "${steps[@]}"
check "the job trains on 2 ranks" wait_until 120 is_behind 0
end=$(end_of "$job")
check "when its time is over it waits in the queue" wait_until 60 is_pending "$job"
check "it said why" grep -q "stopped for lack of time .* after step" "$log"
check "with exit code 85" grep -q "stopped (exit code 85); back to the queue" "$log"
before=$(newest)
check "with a checkpoint of step $before, $(seconds_before_end "$end") s before its end" \
  grep -q "stopped for lack of time .* after step $before;" "$log"

start_now TimeLimit=10
check "it continues after step $before" wait_until 60 is_behind "$before"
scontrol requeue "$job"
check "put back, it waits in the queue" wait_until 60 is_pending "$job"
before=$(newest)
start_now
check "it continues after step $before" wait_until 60 is_behind "$before"
scancel "$job"
check "cancelled, it ends" wait_until 60 no_jobs
submit requeued 3 -- "${steps[@]}"
check "submitted anew, it ends" wait_until 300 no_jobs
check "it went on from a checkpoint three times" test "$(grep -c 'resuming at step' "$log")" -eq 3
check "parameters $(hash_of "$log")" test "$(hash_of "$log")" = "$expected"
check "no temporary file is left" test -z "$(find "$run" -name '*.tmp*')"
stop_slurm
end_checks "${TPUDIST_SLURM_DIR:-}"
