#!/usr/bin/env python3
"""A training step and scoring by tpudist beside the same network in PyTorch Geometric.

    python3 -m venv peer && peer/bin/pip install torch==2.11.0 torch_geometric numpy
    bench/against_pyg.py --build build/release --python peer/bin/python --npz npz --cases infer

`npz` holds the TpuGraphs files layout/xla/default/train/resnet_main_10904.npz and
layout/xla/random/{train,valid}/alexnet_train_batch_32.npz; cases without their file are left out.
Each measurement is a process of its own, one at a time and in turn, on the same number of threads:
tpudist, the peer as it comes, and the peer with a malloc that keeps what it was given ("kept": it
then does not clear fresh pages in every step). Prints the median over the seeds for each case;
ratios are the peer's time over tpudist's, so that more is better for tpudist.

A step is drawing configurations, plans or batches, forward, loss, backward and update. Scoring is
in seconds a measured run: tpudist scores all runs, equal configurations once; the peer every one of
the first `--limit` runs, in batches of the size that is fastest. For tau, seconds are those of
training. Let nothing else run: a third busy process on two cores slows the peer's spinning OpenMP
threads several times (OMP_WAIT_POLICY=passive softens that).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from pyg_cases import CASES, Inputs

KEEP = {"MALLOC_MMAP_THRESHOLD_": str(16 << 30), "MALLOC_TRIM_THRESHOLD_": str(16 << 30)}
PEERS = {"PyG": {}, "kept": KEEP}
BLOCKS = (4, 8, 16, 32, 64)
HEADER = ["graph", "network", "work", "rows", "tpudist s", "PyG s", "PyG kept s", "ratio",
          "ratio kept", "peak GB (tpudist, PyG, kept)"]


def run(command, environment=None):
    words = [str(word) for word in command]
    result = subprocess.run(words, env={**os.environ, **(environment or {})},
                            stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: exit code {result.returncode}")
    return json.loads(result.stdout)


class Bench:
    def __init__(self, arguments, inputs):
        self.arguments, self.inputs = arguments, inputs
        self.blocks = {}  # (graph, network, peer) -> the fastest block

    def common(self, case, seed):
        shape = ["--model", case.model, "--configs", case.configs, "--slates", case.slates]
        if case.mode == "tau":
            length = ["--steps", self.arguments.tau_steps]
        else:
            length = ["--steps", self.arguments.steps, "--seconds", self.arguments.seconds,
                      "--warm-up", 1]
        return [*shape, *length, "--threads", self.arguments.threads, "--seed", seed]

    def ours(self, case, seed):
        program = pathlib.Path(self.arguments.build) / "bench" / "step_bench"
        return run([program, self.inputs.shards(case.graph, case.split), *case.graph, "--mode", case.mode,
                    "--members", case.members, "--plan", case.plan, "--unit", case.unit,
                    *self.common(case, seed)])

    def peer(self, case, seed, name):
        program = pathlib.Path(__file__).with_name("pyg_peer.py")
        command = [self.arguments.python, program, case.mode,
                   self.inputs.path(case.graph, case.split),
                   *self.common(case, seed)]
        if case.mode == "tau":
            command += ["--valid", self.inputs.path(case.graph, "valid")]
        if case.mode != "infer":
            return run(command, PEERS[name])
        key = (case.graph, case.model, name)
        if key not in self.blocks:
            self.blocks[key] = self.fastest_block(command, PEERS[name])
        command += ["--block", self.blocks[key], "--limit", self.arguments.limit]
        return run(command, PEERS[name])

    def fastest_block(self, command, environment):
        def rate(block):
            few = ["--limit", 64, "--warm-up", 0, "--steps", 1, "--block", block]
            return run(command + few, environment)["runs_per_second"]

        return max(BLOCKS, key=rate)

    def measure(self, case):
        """Lines of all seeds by program; peers that need too much memory have none."""
        peers = self.arguments.peers.split(",")
        lines = {"tpudist": [], **{name: [] for name in PEERS}}
        for seed in range(1, self.arguments.seeds + 1):
            ours = self.ours(case, seed)
            lines["tpudist"].append(ours)
            bytes_of_peer = case.peer_bytes(ours["nodes"]) if case.mode == "train" else 0
            for name in peers if bytes_of_peer <= self.arguments.memory * 1e9 else []:
                lines[name].append(self.peer(case, seed, name))
        return lines


def seconds_of(line, mode, statistic):
    """Seconds of a step, of scoring one run, or of training until the tau was reached."""
    if mode == "tau":
        return line["total_seconds"]
    seconds = line[f"seconds_{statistic}"]
    return seconds / line["runs"] if mode == "infer" else seconds


def row(case, lines, statistic):
    ours = lines["tpudist"][0]
    if case.mode == "infer":
        share = f"{ours['distinct']} of {ours['runs']} runs"
    else:
        share = f"{sum(ours['rows']) / (len(ours['rows']) * ours['rows_dense']):.0%}"
    medians = {}
    for name, measured in lines.items():
        if measured:
            times = 1 if name == "tpudist" else case.members  # the peer's, one after the other
            medians[name] = times * statistics.median(
                seconds_of(line, case.mode, statistic) for line in measured)
    cells = [f"{medians[name]:.3g}" if name in medians else "-" for name in lines]
    cells += [f"{medians[name] / medians['tpudist']:.1f}" if name in medians else ""
              for name in PEERS]
    peaks = [max((line["peak_rss_mb"] for line in measured), default=0)
             for measured in lines.values()]
    cells.append(", ".join(f"{peak / 1e3:.2f}" if peak else "-" for peak in peaks))
    return f"| {case.title()} | {share} | {' | '.join(cells)} |"


def tau_lines(lines):
    """Each seed of each program: steps and seconds until the tau was reached."""
    for name, measured in lines.items():
        for seed, line in enumerate(measured, 1):
            step, seconds, tau = line["tau"][-1]
            end = "reached" if line["reached"] else "at the end"
            print(f"  {name:8} seed {seed}: tau {tau:.3f} {end} after {step} steps, "
                  f"{seconds:.1f} s, {seconds / step:.4f} s a step", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="folder of tpudist and bench/step_bench")
    parser.add_argument("--python", default=sys.executable, help="Python with PyTorch Geometric")
    parser.add_argument("--npz", required=True, help="root of the NPZ files")
    parser.add_argument("--cases", default="resnet-xla,alexnet-xla,infer",
                        help=f"of {', '.join(CASES)}")
    parser.add_argument("--configs", default="", help="only these sizes of a slate, e.g. 10,32")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"of {', '.join(PEERS)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20, help="most measured steps of a process")
    parser.add_argument("--seconds", type=float, default=15,
                        help="no step starts after so many seconds")
    parser.add_argument("--tau-steps", type=int, default=3000,
                        help="tau: most steps; the learning rate falls at shares of them")
    parser.add_argument("--limit", type=int, default=1000, help="runs that the peer scores")
    parser.add_argument("--statistic", choices=["median", "min"], default="median",
                        help="of the steps of a process; min on a machine that others use")
    parser.add_argument("--memory", type=float, default=16, help="GB that the peer may take")
    parser.add_argument("--json", help="append all measurements to this file")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    wanted = {int(k) for k in arguments.configs.split(",") if k}

    print("| " + " | ".join(HEADER) + " |")
    print("|" + "---|" * len(HEADER))
    with tempfile.TemporaryDirectory() as work:
        inputs = Inputs(pathlib.Path(arguments.build) / "tpudist", arguments.npz, work)
        bench = Bench(arguments, inputs)
        for case in (case for name in arguments.cases.split(",") for case in CASES[name]):
            if wanted and case.configs not in wanted or not inputs.path(case.graph, case.split):
                continue
            lines = bench.measure(case)
            print(row(case, lines, arguments.statistic), flush=True)
            if case.mode == "tau":
                tau_lines(lines)
            if arguments.json:
                with open(arguments.json, "a") as out:
                    out.write(json.dumps({"case": case.title(), **lines}) + "\n")


if __name__ == "__main__":
    main()
