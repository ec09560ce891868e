#!/usr/bin/env bash
# Trains the five models of TpuGraphs, each an ensemble, ranks a split with them, and prints the final
# score. Safe to run again: finished runs stay, others continue.
#
#   scripts/all_collections.sh SHARDS OUTPUT [key=value ...]      # of the sweep, e.g. set.train.steps=1000
#
# On the data of `tpudist synth --preset demo`, with networks of their size:
#
#   scripts/all_collections.sh demo-output/shards demo-output/all \
#     'experiments=[demo.yaml, demo_xla_default.yaml, demo_nlp.yaml, demo_nlp_default.yaml, demo_tile.yaml]'
#
# TPUDIST        the program; default: build/release/tpudist beside this script
# TPUDIST_RANKS  MPI ranks; default 2
# TPUDIST_SPLIT  the ranked split: valid (default) prints scores, test makes a submission
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shards=${1:?usage: scripts/all_collections.sh SHARDS OUTPUT [key=value ...]}
output=${2:?usage: scripts/all_collections.sh SHARDS OUTPUT [key=value ...]}
shift 2
tpudist=${TPUDIST:-$repository/build/release/tpudist}
ranks=${TPUDIST_RANKS:-2}

# As root, Open MPI asks for consent; in containers one of its copying methods is not allowed.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
TPUDIST_DATA=$(realpath "$shards")
export TPUDIST_DATA
on_ranks() { mpirun --bind-to none --oversubscribe -np "$ranks" "$@"; }

on_ranks "$tpudist" sweep run "$repository/experiments/all.yaml" "$@" --dir "$output"
on_ranks "$tpudist" ensemble "$output" --split "${TPUDIST_SPLIT:-valid}" --csv "$output/submission.csv"
