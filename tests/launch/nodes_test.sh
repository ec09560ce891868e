#!/usr/bin/env bash
# One experiment on two nodes (tests/support/nodes.sh) with TCP between them: trained, resumed on another number of
# nodes, in a sweep with a group on each node, scored, with a data cache of each node, and seen by doctor; all as on one
# rank. A cable that is out for three seconds changes nothing; a lost one ends the job, with mpirun, in time. Prints a
# line for each check; the exit code is 1 if one fails, 77 where nodes cannot be made. Half a minute on two cores.
#
#   TPUDIST=build/release/tpudist tests/launch/nodes_test.sh FOLDER
set -euo pipefail
scratch=$(realpath -m "${1:?usage: nodes_test.sh FOLDER}")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=$(realpath "${TPUDIST:-build/release/tpudist}")
export TPUDIST=$program
nodes=$PWD/tests/support/nodes.sh
rm -rf "$scratch"
mkdir -p "$scratch"
source tests/support/short_run.sh
settings=(train.steps=12 train.checkpoint_every=4 train.keep_checkpoints=3 train.evaluate_every=0)

# Ranks on nodes 1 and 2 take turns on few cores.
export OMPI_MCA_mpi_yield_when_idle=1
on_nodes() { "$nodes" run "$scratch/nodes" node1:1,node2:1 "$@"; }
# train WHERE RUN [WORD ...]: on one rank (WHERE is empty) or on_nodes; output in RUN.log.
train() {
  local where=$1 run=$2
  shift 2
  $where "$program" train "$short" "${settings[@]}" --run-dir "$scratch/$run" "$@" > "$scratch/$run.log" 2>&1
}
gives() { [[ $(hash_of "$scratch/$1.log") == "$expected" ]]; }  # gives RUN
caches() { "$nodes" on "$scratch/nodes" "$1" sh -c 'ls -A /tmp/cache/tpudist-*/ | grep -c cache'; }
forget() { rm "$scratch/moved/checkpoints/step-0000000$1.h5"; }
starts_at() { grep -q "resuming at step $1 " "$scratch/moved.log"; }

"$nodes" up "$scratch/nodes" || exit
trap '"$nodes" down "$scratch/nodes"' EXIT
make_short_data
train "" one
expected=$(hash_of "$scratch/one.log")
check "one rank: parameters $expected" test "$expected" != none

check "two nodes train" train on_nodes two data.cache_dir=/tmp/cache
check "to the same parameters" gives two
check "node1 has a cache" test "$(caches node1)" -gt 0
check "node2 has its own" test "$(caches node2)" -gt 0
check "this machine has none of them" test ! -e /tmp/cache

cp -r "$scratch/one" "$scratch/moved"
forget 08
forget 12
check "a run of one node goes on on two" train on_nodes moved --resume
check "from step 4" starts_at 4
check "to the same parameters" gives moved
forget 12
check "and again on one" train "" moved --resume
check "from step 8, which two nodes wrote" starts_at 8
check "to the same parameters" gives moved

# evaluate WHERE JSON scores the run `one`.
evaluate() { $1 "$program" evaluate "$scratch/one" --quiet --json "$scratch/$2.json" > "$scratch/$2.log"; }
evaluate "" scores_one
check "two nodes evaluate" evaluate on_nodes scores_two
check "to the same scores" cmp "$scratch/scores_one.json" "$scratch/scores_two.json"

cat > "$scratch/seeds.yaml" << END
name: seeds
experiments: $short
set: {train.steps: 12, train.checkpoint_every: 4, train.evaluate_every: 0}
sweep: {seeds: 2}
END
sweep() { on_nodes "$program" sweep run "$scratch/seeds.yaml" --dir "$scratch/sweep" --groups 1 > "$scratch/sweep.log" 2>&1; }
check "a sweep has a group on each node" sweep
check "which train both runs" test "$(cat "$scratch"/sweep/results/*.json | grep -c '"finished": true')" -eq 2
check "one has the same parameters" grep -rq "$expected" "$scratch/sweep/results"

# Whether doctor on two nodes prints the pattern, given options of mpirun.
doctor() { on_nodes "${@:2}" "$program" doctor --run-dir "$scratch" > "$scratch/doctor.txt" && grep -q "$1" "$scratch/doctor.txt"; }
check "doctor warns of Open MPI's patience" doctor 'mpirun gives up a node that does not answer only after 480 s'
check "it shows two nodes" grep -Eq '^ +1 +node2 +1 +0 ' "$scratch/doctor.txt"
patience=(--mca oob_tcp_keepalive_time 5 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 8)
check "and sees options of mpirun" eval '! doctor "mpirun gives up" "${patience[@]}"'

# The cable: `long` trains until it is lost. train.sbatch has the keep-alive that suits ten minutes of dist.timeout.
long() {
  on_nodes "${patience[@]}" "$program" train "$short" train.steps=1000000 train.checkpoint_every=5 dist.timeout=20 \
    --run-dir "$scratch/long" > "$scratch/long.log" 2>&1
}
steps() { cat "$scratch/long/metrics.jsonl" 2> /dev/null | grep -c '"kind":"step"' || true; }
trains() { (( $(steps) > $1 )); }
ended() { ! kill -0 "$job" 2> /dev/null; }
long &
job=$!
check "a long run trains" wait_until 60 trains 5
"$nodes" cut "$scratch/nodes" node2
sleep 3
before=$(steps)
"$nodes" join "$scratch/nodes" node2
check "and goes on after the cable was out for three seconds" wait_until 15 trains $((before + 5))
"$nodes" cut "$scratch/nodes" node2
check "it ends when the cable stays out" wait_until 30 ended
code=0
wait "$job" || code=$?
check "by mpirun, which gives up the node" test "$code" -eq 205
check "and names it" grep -q 'Remote daemon: .* on node node2' "$scratch/long.log"
end_checks keep
