#!/usr/bin/env python3
"""Training on one rank and on two, one thread each, in turn.

    bench/ranks.py --build build/release experiments/alexnet.yaml [key=value ...]

Prints the seconds of a step for each pair of runs, their ratio (median of the pairs), the time spent
waiting for data, and the rates of copying memory with one and with two threads: two ranks share the
memory. The parameters must come out equal.

Each rank has one core for all its threads, as where a job fills its machine. With --bind none the thread
that prepares steps ahead takes the core that a second rank would have: one rank then uses two cores.
"""
import pathlib
import re
import statistics
import subprocess
import tempfile

import mpi_training


def train(arguments, ranks, folder):
    words = mpi_training.command(arguments, ranks, folder, f"train.steps={arguments.steps}",
                                 "train.evaluate_every=0", "train.log_every=1", "train.evaluate_rows=2",
                                 "dist.threads=1", bind=arguments.bind)
    result = subprocess.run(words, env=mpi_training.ENVIRONMENT, check=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    steps = mpi_training.logged(folder, "step")[arguments.warm_up:]
    return {"seconds": statistics.median(step["step_seconds"] for step in steps),
            "waited": steps[-1]["wait_seconds"] / steps[-1]["train_seconds"],
            "parameters": re.search(r"parameters:?\s+([0-9a-f]{16})", result.stdout).group(1)}


def copy_rates(build):
    program = pathlib.Path(build) / "bench" / "kernel_bench"
    text = subprocess.run([str(program), "2"], check=True, stdout=subprocess.PIPE, text=True).stdout
    rates = []
    for part in text.split(" thread")[1:]:
        line = next(line for line in part.splitlines() if "200000 x 256" in line)
        rates.append(float(line.split("|")[4]))
    return rates


def main():
    parser = mpi_training.parser(__doc__)
    parser.add_argument("--bind", choices=["core", "none"], default="core")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warm-up", type=int, default=2, help="steps that are not counted")
    arguments = parser.parse_args()
    ratios = []
    print("| pair | one rank, s | two ranks, s | ratio | waited |\n|---|---|---|---|---|")
    for pair in range(1, arguments.pairs + 1):
        with tempfile.TemporaryDirectory() as work:
            one, two = (train(arguments, ranks, pathlib.Path(work) / str(ranks)) for ranks in (1, 2))
        if one["parameters"] != two["parameters"]:
            raise SystemExit(f"parameters differ: {one['parameters']} and {two['parameters']}")
        ratios.append(one["seconds"] / two["seconds"])
        print(f"| {pair} | {one['seconds']:.4f} | {two['seconds']:.4f} | {ratios[-1]:.2f} | "
              f"{max(one['waited'], two['waited']):.2%} |", flush=True)
    print(f"\nmedian ratio {statistics.median(ratios):.2f}; parameters equal")
    single, both = copy_rates(arguments.build)
    print(f"copying: {single:.1f} GB/s with one thread, {both:.1f} GB/s with two")


if __name__ == "__main__":
    main()
