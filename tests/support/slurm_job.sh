# What the tests of slurm/train.sbatch share. Sourced after tests/support/short_run.sh.

# Under srun ranks that wait do not know that others share their cores.
export OMPI_MCA_mpi_yield_when_idle=1

no_jobs() { [[ -z $(squeue -h) ]]; }
is_pending() { [[ $(squeue -h -j "$1" -o %T 2> /dev/null) == PENDING ]]; }

# start_slurm [NODES] starts a Slurm, of one node if not given, which ends with the script, and no job of it before.
start_slurm() {
  chmod a+rx "$scratch"  # munged refuses a socket that others cannot get to
  SLURM_CONF=$(tests/slurm/start_slurm.sh "$scratch/slurm" "$@")
  export SLURM_CONF
  trap stop_slurm EXIT
}
stop_slurm() {  # to be called before the folder goes, and by itself where the script ends early
  trap - EXIT
  [[ -z ${job:-} ]] || scancel "$job" 2> /dev/null || true
  wait_until 40 no_jobs || true
  tests/slurm/start_slurm.sh --stop "$scratch/slurm"
}

# submit RUN RANKS [OPTION of sbatch ...] [-- key=value ...] trains short.yaml: sets `job`, and `run`, its folder.
# Its output is appended to RUN.log.
submit() {
  local name=$1 ranks=$2 options=()
  shift 2
  while (( $# > 0 )) && [[ $1 != -- ]]; do options+=("$1"); shift; done
  shift || true
  run=$scratch/$name log=$scratch/$name.log
  job=$(TPUDIST_RUN_DIR=$run sbatch --parsable --ntasks="$ranks" --ntasks-per-node="$ranks" \
    --output="$log" "${options[@]}" slurm/train.sbatch "$short" "$@")
}

# The step of the newest checkpoint of `run`; 0 without any.
newest() {
  compgen -G "$run/checkpoints/step-*.h5" | sed 's/.*step-0*\([0-9]*\)\.h5/\1/' | sort -n | tail -1 | grep . || echo 0
}
is_behind() { (( $(newest) > $1 )); }  # is_behind STEP
