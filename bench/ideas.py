#!/usr/bin/env python3
"""A training step of tpudist with each of its ideas switched off in turn.

    bench/ideas.py --build build/release --shards tpudist-data

`tpudist-data` holds layout:xla:default with resnet_main_10904 and layout:xla:random with
alexnet_train_batch_32. Prints the median seconds of a step over the seeds, and how many times
longer it takes than with everything on. Processes run one at a time, in turn.
"""
import argparse
import statistics

from step_seconds import step_seconds

RESNET = ["layout:xla:default", "resnet_main_10904"]
ALEXNET = ["layout:xla:random", "alexnet_train_batch_32"]
ONE_SLATE = RESNET + ["--configs", "10"]
ONE_RANDOM = ALEXNET + ["--configs", "10"]
BATCH = ALEXNET + ["--slates", "10", "--configs", "4", "--members", "5", "--unit", "graph"]

PLANS = [("all on", [], 1), ("dense plans", ["--plan", "dense"], 1),
         ("refined plans", ["--plan", "refined"], 1)]

# Work, what is switched, arguments (a later option wins), how often it must run for the same work.
ROWS = [
    ("ResNet, 1 x 10, one member", ONE_SLATE, [
        ("all on", [], 1),
        ("all rows go back", ["--loss", "opaque"], 1),
        ("dense plans", ["--plan", "dense"], 1),
        ("states kept: recomputed instead", ["--recompute"], 1),
        ("a loss without a clip: common rows left out forward too", ["--loss", "no-clip"], 1),
        ("bf16", ["--precision", "bf16"], 1),
        ("one thread", ["--threads", "1"], 1),
    ]),
    ("AlexNet, 10 x 4, five members, merged slates", BATCH, [
        ("all on", [], 1),
        ("slates apart", ["--unit", "slates"], 1),
        ("members apart: five runs of one", ["--members", "1"], 5),
        ("all rows go back", ["--loss", "opaque"], 1),
        ("dense plans", ["--unit", "slates", "--plan", "dense"], 1),
        ("bf16", ["--precision", "bf16"], 1),
    ]),
    *[(f"{name}, 1 x 10, {kind}", [*work, *options], PLANS)
      for name, work in (("ResNet", ONE_SLATE), ("AlexNet", ONE_RANDOM))
      for kind, options in (("messages both ways", ["--directions", "both"]),
                            ("maxima", ["--aggregation", "max"]))],
]


def seconds(arguments, shards_and_work, switched, seed):
    return step_seconds(arguments.build, arguments.shards, *last_wins(shards_and_work + switched),
                        "--steps", arguments.steps, "--seconds", arguments.seconds, "--seed", seed)


def last_wins(words):
    """Drops an option that comes again later, with its value."""
    kept = []
    for i, word in enumerate(words):
        if word.startswith("--") and word in words[i + 1:]:
            continue
        if i > 0 and words[i - 1].startswith("--") and words[i - 1] in words[i:]:
            continue
        kept.append(word)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="folder of bench/step_bench")
    parser.add_argument("--shards", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=8)
    arguments = parser.parse_args()
    print("| work | switched | s a step | times |\n|---|---|---|---|")
    for title, work, switches in ROWS:
        measured = {name: [] for name, _, _ in switches}
        for seed in range(1, arguments.seeds + 1):
            for name, switched, runs in switches:
                measured[name].append(runs * seconds(arguments, work, switched, seed))
        base = statistics.median(measured["all on"])
        for name, values in measured.items():
            median = statistics.median(values)
            print(f"| {title} | {name} | {median:.4f} | {median / base:.2f} |", flush=True)


if __name__ == "__main__":
    main()
