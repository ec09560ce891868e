#!/usr/bin/env python3
"""How soon the runs of a sweep reached a score, from their metrics.jsonl.

    bench/soonest.py [--target 0.74] SWEEP_FOLDER

A line for each variant, the soonest first: of all members of its runs, the median of the step at which
an evaluation on the way (train.evaluate_every) first gave the target, how many reached it, and their
scores after the last step.
"""
import argparse
import json
import math
import pathlib
import statistics

from recipe import first_at


def evaluations(folder):
    path = pathlib.Path(folder, "metrics.jsonl")
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in map(json.loads, lines) if line["kind"] == "evaluation"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--target", type=float, default=0.74)
    parser.add_argument("sweep", type=pathlib.Path, help="folder of the sweep")
    options = parser.parse_args()
    sweep = json.loads((options.sweep / "sweep.json").read_text())
    steps, scores = {}, {}
    stages = [options.sweep / "sweep.json", *sorted(options.sweep.glob("stage-*.json"))]
    for run in (run for path in stages for run in json.loads(path.read_text())["runs"]):
        scored = evaluations(options.sweep / "runs" / run["id"])
        for member in range(len(scored[-1]["members"]) if scored else 0):
            first = first_at(scored, member, options.target)
            steps.setdefault(run["variant"], []).append(first[0] if first else math.inf)
            scores.setdefault(run["variant"], []).append(scored[-1]["members"][member] or math.nan)
    for variant in sorted(steps, key=lambda v: statistics.median(steps[v])):
        reached = sum(step < math.inf for step in steps[variant])
        print(f"{options.target} at step {statistics.median(steps[variant]):g} "
              f"({reached} of {len(steps[variant])});",
              "last", *(f"{score:.4f}" for score in sorted(scores[variant])),
              f"  {sweep['variants'][variant]['label']}")


if __name__ == "__main__":
    main()
