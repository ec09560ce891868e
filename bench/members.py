#!/usr/bin/env python3
"""A step of five fused members beside a step of one, in turn.

    bench/members.py --build build/release --shards tpudist-data

`tpudist-data` holds layout:xla:random with alexnet_train_batch_32. Prints the seconds of a step of 10
slates of 4 configurations for each pair of processes, slates apart and merged, and the median ratio:
5 is what five single runs take.
"""
import argparse
import statistics

from step_seconds import step_seconds

WORK = ["layout:xla:random", "alexnet_train_batch_32", "--slates", "10", "--configs", "4"]


def step(arguments, unit, members):
    return step_seconds(arguments.build, arguments.shards, *WORK, "--unit", unit, "--members",
                        members, "--steps", 1000, "--seconds", arguments.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="folder of bench/step_bench")
    parser.add_argument("--shards", required=True)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.5)
    arguments = parser.parse_args()
    print("| slates | pair | one member, s | all, s | ratio |\n|---|---|---|---|---|")
    for unit, name in (("slates", "apart"), ("graph", "merged")):
        ratios = []
        for pair in range(1, arguments.pairs + 1):
            one, fused = (step(arguments, unit, members) for members in (1, arguments.members))
            ratios.append(fused / one)
            print(f"| {name} | {pair} | {one:.4f} | {fused:.4f} | {ratios[-1]:.2f} |", flush=True)
        print(f"| {name} | median | | | {statistics.median(ratios):.2f} |", flush=True)


if __name__ == "__main__":
    main()
