#!/usr/bin/env bash
# What slurm/train.sbatch and slurm/sweep.sbatch do with exit codes, and with the end of a job under mpirun, and
# that slurm/ensemble.sbatch takes each variant, without a Slurm: srun, mpirun and scontrol are stand-ins. Prints a line for each check; the exit code is 1
# if one of them fails. A few seconds.
#
#   tests/slurm/scripts_test.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scratch=$(mktemp -d)
source tests/support/short_run.sh

mkdir "$scratch/bin"
printf '#!/usr/bin/env bash\nexit "$CODE"\n' > "$scratch/bin/srun"
printf '#!/usr/bin/env bash\necho "$*" >> "$REQUEUED"\n' > "$scratch/bin/scontrol"
cat > "$scratch/bin/mpirun" << 'END'
#!/usr/bin/env bash
trap 'exit 85' USR2
echo "patience $OMPI_MCA_oob_tcp_keepalive_time $OMPI_MCA_oob_tcp_keepalive_intvl $OMPI_MCA_oob_tcp_keepalive_probes"
for _ in {1..100}; do sleep 0.1; done
exit "$CODE"
END
chmod +x "$scratch"/bin/*
export PATH=$scratch/bin:$PATH REQUEUED=$scratch/requeued SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3
export SLURM_NTASKS=2 SLURM_JOB_END_TIME=$(($(date +%s) + 3600))
unset SLURM_RESTART_COUNT SLURM_CPUS_PER_TASK TPUDIST_MPIRUN TPUDIST_SWEEP_FIRST

# run SCRIPT [NAME=VALUE ...] runs it there: sets `code`, and `requeued`, what was put back into the queue.
run() {
  local script=$1; shift
  : > "$REQUEUED"
  code=0
  env "$@" bash "slurm/$script.sbatch" what > "$scratch/log" 2>&1 || code=$?
  requeued=$(< "$REQUEUED")
}
# ends CODE REQUEUED: whether the last one did so.
ends() { [[ $code == "$1" && $requeued == "$2" ]]; }

while read -r script job; do
  for given in 0 1 137; do
    run "$script" CODE=$given
    check "$script: $given is the job's" ends "$given" ""
  done
  for given in 85 86 143; do
    run "$script" CODE=$given
    check "$script: $given goes back" ends 0 "requeue $job"
    check "$script: and says so" grep -q "stopped (exit code $given); back to the queue" "$scratch/log"
    run "$script" CODE=$given SLURM_RESTART_COUNT=19
    check "$script: $given goes back the twentieth time" ends 0 "requeue $job"
  done
  run "$script" CODE=85 SLURM_RESTART_COUNT=50
  check "$script: 85 goes back for ever" ends 0 "requeue $job"
  for given in 86 143; do
    run "$script" CODE=$given SLURM_RESTART_COUNT=20
    check "$script: $given does not" ends "$given" ""
    check "$script: and says why" grep -q "exit code $given); not back to the queue after 20 restarts" "$scratch/log"
  done
done << 'END'
train 7
sweep 7_3
END

printf '#!/usr/bin/env bash\necho "$*" | sed "s/.* ensemble/ensemble/"\nexit "$CODE"\n' > "$scratch/bin/srun"
ensemble() { TPUDIST=true CODE=$1 bash slurm/ensemble.sbatch 'a sweep' --csv=out-{}.csv > "$scratch/log"; }
check "ensemble: of what was chosen" ensemble 0
check "ensemble: options stay" grep -qxF 'ensemble a sweep --csv=out-{}.csv' "$scratch/log"
export TPUDIST_VARIANTS=2
check "ensemble: fails where a variant does" eval '! ensemble 3'
check "ensemble: and takes the others" \
  diff "$scratch/log" <(printf 'ensemble a sweep:%s --csv=out-%s.csv\n' 0 0 1 1)
unset TPUDIST_VARIANTS

run train CODE=0 TPUDIST_MPIRUN=1 SLURM_JOB_END_TIME=$(($(date +%s) + 304))
check "mpirun gets SIGUSR2 five minutes before the end" ends 0 "requeue 7"
run train CODE=1 TPUDIST_MPIRUN=1 SLURM_JOB_END_TIME=$(($(date +%s) + 200))
check "and none where that is over" ends 1 ""
check "mpirun gives up a lost node after two minutes" grep -qx 'patience 60 10 6' "$scratch/log"
run train CODE=205
check "train: 205, of an mpirun that lost a node, goes back" ends 0 "requeue 7"
end_checks
