#!/usr/bin/env bash
# Scores trained runs one by one, then all their members together, and writes their submission.
# Runs of one collection are combined; several collections make one submission.
#
#   scripts/evaluate_ensemble.sh OUT RUN...       e.g. scores runs/nlp-1 runs/nlp-2 runs/xla-1
#
# OUT/<number>.json   scores of each run on the validation split, by graph and member
# OUT/ensemble.json   scores of all members combined
# OUT/submission.csv  ranking of the test split
#
# TPUDIST        the program; default: the build's, else the one on the PATH
# TPUDIST_RANKS  MPI ranks; default 1
set -euo pipefail
(( $# >= 2 )) || { sed -n '2,/^set/{/^set/d;s/^# \?//;p}' "$0" >&2; exit 2; }
out=$1; shift
build=$(dirname "${BASH_SOURCE[0]}")/../build/release/tpudist
tpudist=${TPUDIST:-$([[ -x $build ]] && echo "$build" || echo tpudist)}
ranks=${TPUDIST_RANKS:-1}
start=()
(( ranks == 1 )) || start=(mpirun --bind-to none --oversubscribe -np "$ranks")
on_ranks() { "${start[@]}" "$tpudist" "$@"; }
# Prints into a file, which is replaced once all is printed.
into() { "${@:2}" > "$1.tmp" && mv "$1.tmp" "$1"; }
mkdir -p "$out"

number=0
for run in "$@"; do
  number=$((number + 1))
  into "$out/$number.txt" on_ranks evaluate "$run" --split valid --json "$out/$number.json"
done
into "$out/ensemble.txt" on_ranks ensemble "$@" --split valid --json "$out/ensemble.json"

python3 - "$out" "$@" << 'PYTHON'
import json
import sys

out, runs = sys.argv[1], sys.argv[2:]
row = "{:<32} {:<20} {:<12} {:>7} {:>7} {:>7} {:>11}".format
print(row("run", "collection", "metric", "members", "worst", "best", "combined"))


def show(name, scores):
    metric = scores["ensemble"]["primary"]
    means = [member["mean"][metric] for member in scores["members"] if member["used"]]
    members = [mean for mean in means if mean is not None]
    numbers = [min(members, default=None), max(members, default=None),
               scores["ensemble"]["mean"][metric]]
    print(row(name, scores["collection"], metric, len(members),
              *("-" if number is None else f"{number:.4f}" for number in numbers)))


for number, run in enumerate(runs, 1):
    with open(f"{out}/{number}.json") as file:
        show(run, json.load(file))
with open(f"{out}/ensemble.json") as file:
    for scores in json.load(file):
        show("all runs", scores)
PYTHON

on_ranks ensemble "$@" --split test --csv "$out/submission.csv"
