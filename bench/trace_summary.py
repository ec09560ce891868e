#!/usr/bin/env python3
"""What a step's time went into on each rank, from a trace.

    tpudist train ... --trace trace.json
    tpudist-trace-summary trace.json [--skip STEPS]     (installed; bench/trace_summary.py in the sources)

Prints for each kind of span, of each rank, the median over steps of its sum in a step, in ms, and its
share of the step. A span within another one counts in both.
"""
import argparse
import collections
import json
import statistics
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--skip", type=int, default=5, help="first steps that are left out")
    arguments = parser.parse_args()
    try:
        with open(arguments.trace, encoding="utf-8") as file:
            summarise(json.load(file)["traceEvents"], arguments)
    except OSError as error:
        sys.exit(str(error))
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{arguments.trace}: is no trace of `tpudist train --trace` ({error!r})")


def summarise(events, arguments):
    rank_of = {event["pid"]: event["args"]["sort_index"] for event in events
               if event["name"] == "process_sort_index"}
    sums = collections.defaultdict(lambda: collections.Counter())  # [rank, name][step] in ms
    for event in events:
        step = event["args"].get("step", -1)
        if event["ph"] == "X" and step > arguments.skip:
            sums[rank_of[event["pid"]], event["name"]][step] += event["dur"] / 1e3
    ranks = sorted({rank for rank, _ in sums})
    if not all(sums[rank, "step"] for rank in ranks) or not ranks:
        sys.exit(f"{arguments.trace}: holds no training step after the first {arguments.skip}; "
                 "give a longer training, or --skip 0")
    whole = {rank: statistics.median(sums[rank, "step"].values()) for rank in ranks}
    print("| span |" + "".join(f" rank {rank}, ms | share |" for rank in ranks))
    print("|---|" + "---|---|" * len(ranks))
    for name in sorted({name for _, name in sums}, key=lambda name: -max(
            sum(sums[rank, name].values()) for rank in ranks)):
        cells = ""
        for rank in ranks:
            times = sums[rank, name].values()
            median = statistics.median(times) if times else 0.0
            cells += f" {median:.3f} | {median / whole[rank]:.1%} |"
        print(f"| {name} |{cells}")
    slowest = statistics.median(max(sums[rank, "compute"][step] for rank in ranks)
                                for step in sums[ranks[0], "compute"])
    mean = statistics.median(statistics.mean(sums[rank, "compute"][step] for rank in ranks)
                             for step in sums[ranks[0], "compute"])
    print(f"\ncompute of the slowest rank / mean: {slowest / mean:.3f} (medians over steps)")


if __name__ == "__main__":
    main()
