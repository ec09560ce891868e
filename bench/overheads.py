#!/usr/bin/env python3
"""What the watchdog, the trace and checkpoints cost a step.

    bench/overheads.py --build build/release experiments/demo.yaml [key=value ...]

Trains with each of the first two and without it, in turn, and prints the median seconds of a step for each
pair of runs and their ratio; on a machine that others share, the fastest of each tell more than the median.
Then pairs of traced runs, with a checkpoint every 8 steps and with none: the median ratio of the same step in
both, by how long ago the checkpoint was due. The step it is copied in counts 0, and a thread writes it during
the steps after that.
"""
import collections
import json
import pathlib
import statistics
import subprocess
import tempfile

import mpi_training

WARM_UP = 10  # steps that are not counted
CHECKPOINT_EVERY = 8


def train(arguments, folder, *words):
    command = mpi_training.command(arguments, arguments.ranks, folder, f"train.steps={arguments.steps}",
                                   "train.evaluate_every=0", "train.last_evaluation=none",
                                   "train.checkpoint_every=0", "train.log_every=1",
                                   f"dist.threads={arguments.threads}", *words)
    subprocess.run(command, env=mpi_training.ENVIRONMENT, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def step_seconds(arguments, *words):
    with tempfile.TemporaryDirectory() as work:
        run = pathlib.Path(work) / "run"
        train(arguments, run, *words)
        steps = mpi_training.logged(run, "step")
    return statistics.median(step["step_seconds"] for step in steps if step["step"] > WARM_UP)


def traced_seconds(arguments, every):
    """The seconds of each step, and the bytes of a checkpoint."""
    with tempfile.TemporaryDirectory() as work:
        run, trace = pathlib.Path(work) / "run", pathlib.Path(work) / "trace.json"
        train(arguments, run, f"train.checkpoint_every={every}", "train.keep_checkpoints=2", "--trace", str(trace))
        events = json.load(open(trace))["traceEvents"]
        size = max(file.stat().st_size for file in (run / "checkpoints").iterdir())
    first = min(event["pid"] for event in events)  # rank 0
    return {event["args"]["step"]: event["dur"] / 1e6 for event in events
            if event["ph"] == "X" and event["name"] == "step" and event["pid"] == first}, size


def checkpoints(arguments):
    ratios = collections.defaultdict(list)
    for _ in range(arguments.pairs):
        without, _ = traced_seconds(arguments, 0)
        with_them, size = traced_seconds(arguments, CHECKPOINT_EVERY)
        for step in range(WARM_UP + 1, arguments.steps):
            ratios[step % CHECKPOINT_EVERY].append(with_them[step] / without[step])
    print(f"| checkpoints of {size / 1e6:.1f} MB: steps since it was due | ratio | steps |\n|---|---|---|")
    for age in sorted(ratios):
        print(f"| {age} | {statistics.median(ratios[age]):.3f} | {len(ratios[age])} |")


def pairs(arguments, name, without, with_it):
    print(f"| {name}: pair | without, ms | with, ms | ratio |\n|---|---|---|---|")
    without_times, with_times, ratios = [], [], []
    for pair in range(1, arguments.pairs + 1):
        with tempfile.TemporaryDirectory() as work:
            words = [word.format(work=work) for word in with_it]
            without_times.append(step_seconds(arguments, *without))
            with_times.append(step_seconds(arguments, *words))
        ratios.append(with_times[-1] / without_times[-1])
        print(f"| {pair} | {without_times[-1] * 1e3:.2f} | {with_times[-1] * 1e3:.2f} | {ratios[-1]:.4f} |",
              flush=True)
    print(f"\nmedian {statistics.median(ratios):.4f}; fastest of each {min(with_times) / min(without_times):.4f}\n",
          flush=True)


def main():
    parser = mpi_training.parser(__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=410)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    pairs(arguments, "watchdog", ["dist.timeout=0"], [])
    pairs(arguments, "trace", [], ["--trace", "{work}/trace.json"])
    checkpoints(arguments)


if __name__ == "__main__":
    main()
