# What scripts share that disturb a short training (tests/support/short.yaml). Sourced by them, from the
# root of the repository; they set `scratch`, a folder of their own, and `program`, the tpudist to try.

failures=0  # checks that failed
short=$PWD/tests/support/short.yaml

# As root, Open MPI asks for consent; in containers one of its copying methods is not allowed.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMP_NUM_THREADS=1
export TPUDIST_DATA=$scratch/shards

fail() { echo "FAILED  $*"; failures=$((failures + 1)); }

check() {  # check NAME COMMAND... : whether the command succeeds
  local name=$1; shift
  if "$@"; then echo "ok      $name"; else fail "$name"; fi
}

wait_until() {  # wait_until SECONDS COMMAND... : until the command succeeds
  local end=$((SECONDS + $1)); shift
  until "$@"; do (( SECONDS < end )) || return 1; sleep 0.1; done
}

# make_short_data writes the shards of short.yaml, or says why not and ends with exit code 1.
make_short_data() {
  { "$program" synth "$scratch/npz" --preset tiny --quiet &&
    "$program" convert "$scratch/npz" "$scratch/shards" --jobs 1 --quiet; } > "$scratch/log" 2>&1 ||
    { cat "$scratch/log"; exit 1; }
}

# hash_of LOG: of the parameters that the last run in a log trained, or `none`.
hash_of() { sed -n 's/^parameters: //p' "$1" | tail -1 | grep . || echo none; }

# ranks_in RUN_FOLDER: the processes that train there, without those that started them.
ranks_in() {
  local process
  for process in $(pgrep -f -- "--run-dir $1( |\$)" || true); do
    case $(cat "/proc/$process/comm" 2> /dev/null) in tpudist*) echo "$process" ;; esac
  done
}

# Removes `scratch`, unless KEEP is given, or says what failed and ends with exit code 1.
end_checks() {  # end_checks [KEEP]
  if (( failures > 0 )); then
    echo "$failures checks failed; see $scratch"
    exit 1
  fi
  [[ -n ${1:-} ]] || rm -rf "$scratch"
}
