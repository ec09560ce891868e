#!/usr/bin/env python3
"""Training until a Kendall tau on the AlexNet graph: a recipe of tpudist beside PyTorch Geometric.

    bench/race.py --build build/release --python peer/bin/python --npz NPZ experiments/alexnet_fast.yaml

For each seed in turn the peer (pyg_peer.py, with the 2nd place's batch, rate and schedule) and then
one member of each experiment FILE, on the same threads and scored after every 20 steps on all
validation runs. Seconds are those of training alone. Prints each seed, the medians, and which
share of the processors others took meanwhile, which should be next to nothing. `--peer none` trains
the files alone.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

from pyg_cases import ALEXNET, Inputs
from recipe import first_at

EVERY = 20


def peer(options, inputs, seed):
    command = [options.python, pathlib.Path(__file__).with_name("pyg_peer.py"), "tau",
               inputs.path(ALEXNET), "--valid", inputs.path(ALEXNET, "valid"), "--slates", 10,
               "--configs", 4, "--steps", 3000, "--model", options.model, "--threads",
               options.threads, "--seed", seed, "--evaluate-every", EVERY, "--probe", 500,
               "--target", options.target]
    line = json.loads(subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE,
                                     text=True).stdout)
    step, seconds, tau = line["tau"][-1]
    return (step, seconds, tau) if line["reached"] else None


def ours(options, inputs, file, seed):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([pathlib.Path(options.build) / "tpudist", "train", file,
                        "ensemble.members=1", f"train.evaluate_every={EVERY}",
                        "train.evaluate_rows=100000", "train.checkpoint_every=0",
                        f"dist.threads={options.threads}", f"seed.init={seed}",
                        f"seed.order={seed}", "--run-dir", folder + "/run"], check=True,
                       env={**os.environ, "TPUDIST_DATA": str(inputs.shards(ALEXNET))},
                       stdout=subprocess.DEVNULL)
        lines = pathlib.Path(folder, "run", "metrics.jsonl").read_text().splitlines()
    evaluations = [e for e in map(json.loads, lines) if e["kind"] == "evaluation"]
    first = first_at(evaluations, 0, options.target)
    return (*first, evaluations[-1]["members"][0]) if first else None


class Load:
    """How much of the processors is used by others than this process and its children."""

    def __init__(self):
        self.begin = self._numbers()

    @staticmethod
    def _numbers():
        words = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        ticks = list(map(int, words))
        busy = (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / os.sysconf("SC_CLK_TCK")
        own = sum(usage.ru_utime + usage.ru_stime for usage in (
            resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)))
        return time.monotonic(), busy, own

    def others(self):
        seconds, busy, own = (end - begin for begin, end in zip(self.begin, self._numbers()))
        return max(0.0, busy - own) / (seconds * os.cpu_count())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", required=True, help="folder of the program")
    parser.add_argument("--python", help="Python with PyTorch Geometric")
    parser.add_argument("--npz", required=True, help="root of the NPZ files")
    parser.add_argument("--peer", default="PyG", choices=["PyG", "none"])
    parser.add_argument("--model", default="latenciaga_xla", help="the peer's network")
    parser.add_argument("--seeds", default="11,12,13")
    parser.add_argument("--target", type=float, default=0.74)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("files", nargs="+", help="experiment files")
    options = parser.parse_args()
    racers = ([] if options.peer == "none" else ["PyG"]) + options.files
    seconds = {name: [] for name in racers}
    with tempfile.TemporaryDirectory() as work:
        inputs = Inputs(pathlib.Path(options.build) / "tpudist", options.npz, work)
        inputs.shards(ALEXNET)
        for seed in options.seeds.split(","):
            for name in racers:
                load = Load()
                result = (peer(options, inputs, seed) if name == "PyG"
                          else ours(options, inputs, name, seed))
                seconds[name].append(result[1] if result else float("inf"))
                told = (f"{options.target} after {result[0]} steps, {result[1]:.1f} s; "
                        f"tau {result[2]:.4f} at the end" if result else "never")
                print(f"seed {seed}, {name}: {told}; others took {load.others():.1%} of the "
                      "processors", flush=True)
    for name, measured in seconds.items():
        median = statistics.median(measured)
        times = (f", {statistics.median(seconds['PyG']) / median:.1f} times sooner than PyG"
                 if name != "PyG" and "PyG" in seconds else "")
        print(f"{name}: median {median:.1f} s{times}")


if __name__ == "__main__":
    main()
