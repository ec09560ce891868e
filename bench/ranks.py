#!/usr/bin/env python3
"""Training on several numbers of ranks, one thread each, in turn, beside the forecast of a dry run.

    bench/ranks.py --build build/release experiments/alexnet.yaml [key=value ...]

For each number of ranks prints the seconds of a step (the mean over the first steps, of the quickest round for
each), those of `train --dry-run --ranks` (the quickest of as many dry runs on one rank), and the difference. Also the
rates of copying memory with one and with two threads: two ranks share the memory. The parameters must come out equal.

Each rank has one core for all its threads, as where a job fills its machine. With --bind none the thread that prepares
steps ahead takes the core that a second rank would have: one rank then uses two cores. More ranks than cores are not
bound: they share the cores, so their forecast is the work of all ranks (ranks x s/step x busy) divided by the cores,
and the messages. With --nodes FOLDER (tests/support/nodes.sh up FOLDER) the ranks are on node1 and node2 in turn.
"""
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

import mpi_training

CORES = len(os.sched_getaffinity(0))
NODES = pathlib.Path(__file__).parent.parent / "tests/support/nodes.sh"


def words_of(arguments, ranks, folder, *more):
    bind = arguments.bind if ranks <= CORES else "none"
    words = mpi_training.command(arguments, ranks, folder, f"train.steps={arguments.steps}", "train.evaluate_every=0",
                                 "train.log_every=1", "train.evaluate_rows=2", "train.last_evaluation=none",
                                 "dist.threads=1", bind=bind) + list(more)
    if arguments.nodes and ranks > 1:
        hosts = f"node1:{(ranks + 1) // 2},node2:{ranks // 2}"
        program = words.index(str(pathlib.Path(arguments.build) / "tpudist"))
        words = [str(NODES), "run", arguments.nodes, hosts, *words[program:]]
    return words


def output_of(words):
    return subprocess.run(words, env=mpi_training.ENVIRONMENT, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True).stdout


def train(arguments, ranks, folder):
    """The seconds of each step but the first, and the parameters."""
    output = output_of(words_of(arguments, ranks, folder))
    seconds = [step["step_seconds"] for step in mpi_training.logged(folder, "step")[1:]]
    return seconds, re.search(r"parameters:?\s+([0-9a-f]{16})", output).group(1)


def forecast(arguments, folder, link):
    """Ranks -> seconds of a step, of its messages, and the busy share."""
    more = ["--dry-run", "--ranks", ",".join(map(str, arguments.ranks)), *(["--link", link] if link else [])]
    output = output_of(words_of(arguments, 1, folder, *more))
    rows = re.findall(r"^ +(\d+) +([0-9.e-]+) +([0-9.e-]+) +[0-9.]+ +(\d+) %", output, re.MULTILINE)
    return {int(ranks): (float(step), float(messages), float(busy) / 100) for ranks, step, messages, busy in rows}


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
    parser.add_argument("--ranks", type=lambda text: sorted({1, *map(int, text.split(","))}), default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--link", help="for the dry runs (us,GB/s)")
    parser.add_argument("--nodes", metavar="FOLDER")
    arguments = parser.parse_args()
    seconds, parameters, forecasts = {ranks: [] for ranks in arguments.ranks}, set(), []
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory(dir=arguments.nodes and pathlib.Path(arguments.nodes).parent) as work:
            for ranks in arguments.ranks:
                steps, made = train(arguments, ranks, pathlib.Path(work) / str(ranks))
                seconds[ranks].append(steps)
                parameters.add(made)
            forecasts.append(forecast(arguments, pathlib.Path(work) / "none", arguments.link))
    if len(parameters) > 1:
        raise SystemExit(f"parameters differ: {parameters}")
    print("| ranks | s a step | forecast | difference | times as fast as one |\n|---|---|---|---|---|")
    mean = {ranks: statistics.mean(map(min, zip(*rounds))) for ranks, rounds in seconds.items()}
    for ranks in arguments.ranks:
        step, messages, busy = min(rows[ranks] for rows in forecasts)
        if ranks > CORES:
            step = ranks * busy * step / CORES + messages
        print(f"| {ranks} | {mean[ranks]:.4f} | {step:.4f} | {step / mean[ranks] - 1:+.1%} | "
              f"{mean[1] / mean[ranks]:.2f} |")
    single, both = copy_rates(arguments.build)
    print(f"\nparameters equal; copying: {single:.1f} GB/s with one thread, {both:.1f} GB/s with two")


if __name__ == "__main__":
    main()
