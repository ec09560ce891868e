#!/usr/bin/env bash
# A sweep of seeds x folds on a real Slurm of one node (tests/slurm/start_slurm.sh), as root: the same
# table and the same hashes as in one mpirun with groups of unequal size, with one task preempted, one
# that fails, and the dependent ensemble job. Prints a line for each check; the exit code is 1 if one
# of them fails. Some minutes on two cores.
#
#   tests/slurm/sweep_test.sh [SEEDS FOLDS STEPS]      3 seeds, 5 folds and 300 steps if not given
#
# TPUDIST_SLURM_DIR  where data, sweeps and logs go, kept; default a new folder in /tmp
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seeds=${1:-3} folds=${2:-5} steps=${3:-300}
program=$PWD/build/release/tpudist
scratch=${TPUDIST_SLURM_DIR:-$(mktemp -d)}
mkdir -p "$scratch"
source tests/support/short_run.sh
source tests/support/slurm_job.sh

is_running() { [[ $(squeue -h -j "$1" -o %T 2> /dev/null | sort -u) == *RUNNING* ]]; }
# Whether a run has got so far that it must go on from a checkpoint.
has_checkpoint() { compgen -G "$scratch/array/runs/*/checkpoints/step-*.h5" > /dev/null; }

"$program" synth "$scratch/npz" --preset demo > "$scratch/log" 2>&1
"$program" convert "$scratch/npz" "$scratch/shards" >> "$scratch/log" 2>&1
cat > "$scratch/folds.yaml" << END
name: folds
experiments: $PWD/experiments/demo_folds.yaml
set: {train.steps: $steps, train.checkpoint_every: 10, train.last_evaluation: sampled, train.evaluate_rows: 100, predictions.rows: 100, dist.threads: 1}
sweep: {seeds: $seeds, folds: $folds}
placement: split
END

echo "in one mpirun, groups of 2, 1 and 1 ranks"
mpirun --bind-to none --oversubscribe -np 4 "$program" sweep run "$scratch/folds.yaml" \
  --dir "$scratch/mpirun" --groups 2,1,1 >> "$scratch/log" 2>&1
"$program" sweep collect "$scratch/mpirun" --csv "$scratch/mpirun.csv" > "$scratch/mpirun.txt"

echo "as an array of tasks, one preempted"
start_slurm
"$program" sweep submit "$scratch/folds.yaml" --dir "$scratch/array" --parallel 2 --split valid \
  --csv "$scratch/ensemble.csv" | tee "$scratch/jobs.txt"
array=$(sed -n 's/^job \([0-9]*\): list.*/\1/p' "$scratch/jobs.txt")
check "a task trains" wait_until 60 has_checkpoint
# A job of the urgent partition takes all cores, so that the tasks of the array are preempted.
urgent=$(sbatch --parsable --partition=urgent --ntasks=8 --output=/dev/null --wrap="sleep 2")
check "the urgent job runs" wait_until 60 is_running "$urgent"
check "tasks wait while it runs" test -z "$(squeue -h -j "$array" -t RUNNING)"
check "the array and its ensemble end" wait_until 600 no_jobs
"$program" sweep collect "$scratch/array" --csv "$scratch/array.csv" > "$scratch/array.txt"
check "a task was requeued" grep -q "requeue\|back to the queue" "$scratch"/slurm/log/slurmctld.log "$scratch"/array/slurm/*.out
check "a run went on from a checkpoint" grep -q "resuming at step" "$scratch"/array/slurm/*.out
check "the same table as in one mpirun" cmp "$scratch/mpirun.txt" "$scratch/array.txt"
check "the same hashes" cmp "$scratch/mpirun.csv" "$scratch/array.csv"
check "the ensemble wrote its submission" test -s "$scratch/ensemble.csv"

echo "a run that fails, and the ensemble of the others"
sed "s/^name: folds/name: failing/; s/seeds: $seeds/seeds: 1/" "$scratch/folds.yaml" > "$scratch/failing.yaml"
"$program" sweep expand "$scratch/failing.yaml" --dir "$scratch/failing" > /dev/null
id=$(sed -n 's/^ *"id": "\([0-9a-f]*\)",*$/\1/p' "$scratch/failing/sweep.json" | head -1)
mkdir -p "$scratch/failing/runs/$id"
touch "$scratch/failing/runs/$id/other-file"  # the run's folder is taken
"$program" sweep submit "$scratch/failing" --parallel 2 --split valid --csv "$scratch/failing.csv" > "$scratch/jobs.txt"
check "all jobs end" wait_until 300 no_jobs
check "the failure is recorded" grep -q "failed: .*other-file\|failed: .*$id" <("$program" sweep status "$scratch/failing")
check "the ensemble of the others is there" test -s "$scratch/failing.csv"
rm "$scratch/failing/runs/$id/other-file"
"$program" sweep retry "$scratch/failing" > /dev/null
"$program" sweep run "$scratch/failing" >> "$scratch/log" 2>&1
check "retried, every run finishes" grep -q " $folds$" <("$program" sweep status "$scratch/failing" | grep list)

cat "$scratch/array.txt"
stop_slurm
end_checks "${TPUDIST_SLURM_DIR:-}"
