#!/usr/bin/env python3
"""Training on several numbers of ranks, one thread each, in turn, beside the forecast of a dry run.

    bench/ranks.py --build build/release experiments/alexnet.yaml [key=value ...]

Each round trains on each number of ranks and makes dry runs (`train --dry-run --ranks`) on one rank and on as many as
there are cores, whose forecast is for two ranks and more: all meet the same machine. Prints medians over the rounds of
two comparisons with the forecast, each with its extremes: the seconds of a mean step, unless ranks share cores; and the
CPU seconds of a step on all ranks together (forecast: ranks x s/step x busy), for which other programs on the machine
matter less. Also the rates of copying memory with one and with two threads: two ranks share the memory. The parameters
must come out equal.

Each rank has one core for all its threads, as where a job fills its machine. With --bind none the thread that prepares
steps ahead takes the core that a second rank would have: one rank then uses two cores. More ranks than cores are not
bound. A rank that waits sleeps, so that waiting takes no CPU time. With --nodes FOLDER (tests/support/nodes.sh up
FOLDER) the ranks are on node1 and node2.
"""
import os
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile

import mpi_training

CORES = len(os.sched_getaffinity(0))
NODES = pathlib.Path(__file__).parent.parent / "tests/support/nodes.sh"


def words_of(arguments, ranks, folder, steps, *more):
    bind = arguments.bind if ranks <= CORES else "none"
    words = mpi_training.command(arguments, ranks, folder, f"train.steps={steps}", "train.evaluate_every=0",
                                 "train.log_every=1", "train.evaluate_rows=2", "train.last_evaluation=none",
                                 "dist.threads=1", bind=bind) + list(more)
    if arguments.nodes and ranks > 1:
        hosts = f"node1:{(ranks + 1) // 2},node2:{ranks // 2}"
        program = words.index(str(pathlib.Path(arguments.build) / "tpudist"))
        words = [str(NODES), "run", arguments.nodes, hosts, "--oversubscribe", *words[program:]]
    return words


def sleeping_library(folder):
    """Open MPI's ranks that wait call sched_yield between two looks, if told that they share cores."""
    library = pathlib.Path(folder) / "sleep.so"
    source = "#include <unistd.h>\nint sched_yield(void) { return usleep(200); }\n"
    words = ["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", library]
    subprocess.run(words, input=source, text=True, check=True)
    return {"LD_PRELOAD": str(library), "OMPI_MCA_mpi_yield_when_idle": "1"}


def output_of(words, more={}):
    """The output of a command, and the CPU seconds of it and its ranks."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run(words, env={**mpi_training.ENVIRONMENT, **more}, check=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return output, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def train(arguments, ranks, work):
    """The seconds of a mean step, its CPU seconds, and the parameters. In the first steps graphs are prepared."""
    output, _ = output_of(words_of(arguments, ranks, work / f"{ranks}", arguments.steps))
    seconds = [step["step_seconds"] for step in mpi_training.logged(work / f"{ranks}", "step")[arguments.warm_up:]]
    cpu = [output_of(words_of(arguments, ranks, work / f"{ranks}-{steps}", steps), sleeping_library(work))[1]
           for steps in (arguments.warm_up, arguments.steps)]
    parameters = re.search(r"parameters:?\s+([0-9a-f]{16})", output).group(1)
    return statistics.mean(seconds), (cpu[1] - cpu[0]) / len(seconds), parameters


def forecast(arguments, started, folder):
    """Ranks -> seconds of a step, of its messages, and the busy share."""
    more = ["--dry-run", "--ranks", ",".join(map(str, arguments.ranks))]
    output, _ = output_of(words_of(arguments, started, folder, arguments.steps, *more))
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
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=20, help="steps that are not counted")
    parser.add_argument("--nodes", metavar="FOLDER")
    arguments = parser.parse_args()
    rounds, parameters = {ranks: [] for ranks in arguments.ranks}, set()
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory(dir=arguments.nodes and pathlib.Path(arguments.nodes).parent) as folder:
            work = pathlib.Path(folder)
            told = {started: forecast(arguments, started, work / "none") for started in (1, CORES)}
            for ranks in arguments.ranks:
                seconds, cpu, made = train(arguments, ranks, work)
                step, _, busy = told[min(ranks, CORES)][ranks]
                rounds[ranks].append((seconds, step, cpu, ranks * step * busy))
                parameters.add(made)
    if len(parameters) > 1:
        raise SystemExit(f"parameters differ: {parameters}")
    print("| ranks | s a step | forecast | forecast / measured | CPU s a step | forecast | forecast / measured |\n"
          "|---|---|---|---|---|---|---|")
    for ranks in arguments.ranks:
        cells = []
        for at in (0, 2):
            pairs = [values[at:at + 2] for values in rounds[ranks]]
            ratios = [told / measured for measured, told in pairs]
            cells += [f"{statistics.median(column):.4f}" for column in zip(*pairs)]
            cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
            if ranks > CORES and at == 0:
                cells = ["", cells[1], ""]
        if arguments.nodes and ranks > 1:  # the CPU seconds of a node are not those of a child
            cells[3] = cells[5] = ""
        print(f"| {ranks} | {' | '.join(cells)} |", flush=True)
    single, both = copy_rates(arguments.build)
    print(f"\nparameters equal; copying: {single:.1f} GB/s with one thread, {both:.1f} GB/s with two")


if __name__ == "__main__":
    main()
