#!/usr/bin/env bash
# slurm/train.sbatch on a real Slurm of two nodes (tests/slurm/start_slurm.sh), as root: the parameters of one rank, also
# after a node was lost and came back. Prints a line for each check; the exit code is 1 if one of them fails. One to two
# minutes on two cores.
#
#   tests/slurm/nodes_test.sh
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
settings=(train.steps=200 train.checkpoint_every=5 train.evaluate_every=0 dist.timeout=10)

on_node() { tests/support/nodes.sh on "$scratch/slurm.nodes" "$@"; }
for command in sbatch squeue scontrol scancel sinfo; do eval "$command() { on_node node1 $command \"\$@\"; }"; done
waits_again() { is_pending "$job" && grep -q "back to the queue" "$log"; }
# Whether Slurm has cleared the node of the lost step; a job that starts before gets the end that was meant for that.
is_back() { [[ $(sinfo -h -n node2 -o %t) == idle && -z $(ranks_in "$run") ]]; }
is_down() { [[ $(sinfo -h -n node2 -o %t) == down* ]]; }

make_short_data
"$program" train "$short" "${settings[@]}" --run-dir "$scratch/one" > "$scratch/one.log" 2>&1
expected=$(hash_of "$scratch/one.log")
check "one rank: parameters $expected" test "$expected" != none
start_slurm 2

submit two 2 --nodes=2 --ntasks-per-node=1 -- "${settings[@]}"
check "a job of two nodes ends" wait_until 120 no_jobs
check "with the same parameters" test "$(hash_of "$log")" = "$expected"

submit lost 2 --nodes=2 --ntasks-per-node=1 -- "${settings[@]}"
check "another one trains" wait_until 60 is_behind 4
tests/support/nodes.sh cut "$scratch/slurm.nodes" node2
check "its second node is cut off: the job goes back to the queue" wait_until 60 waits_again
check "the error names the node" grep -q 'tpudist: rank 1 (node2, ' "$log"
check "Slurm counts the node as lost" wait_until 90 is_down
tests/support/nodes.sh join "$scratch/slurm.nodes" node2
check "the node is back" wait_until 60 is_back
sleep 5
scontrol update JobId="$job" StartTime=now
check "the job ends" wait_until 120 no_jobs
check "it went on from a checkpoint" grep -q "resuming at step" "$log"
check "with the same parameters" test "$(hash_of "$log")" = "$expected"
stop_slurm
end_checks "${TPUDIST_SLURM_DIR:-}"
