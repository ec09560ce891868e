#!/usr/bin/env python3
"""Choosing among the measured configurations of AlexNet and ResNet: the table of docs/search.md.

    bench/real_programs.py --npz NPZ [--build build/release] [--work real-programs] [--seeds 3]

NPZ holds layout/xla/random of AlexNet and layout/xla/default of ResNet. Trains experiments/alexnet.yaml, ranks with
`tpudist rank`, and prints the slowdown of the best of the first k. Needs NumPy and scikit-learn. Finished work in the
folder stays.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

ALEXNET, RESNET = "alexnet_train_batch_32", "resnet_main_10904"
STEPS = {ALEXNET: 250, RESNET: 60}  # of training; 46 or 91 configurations take few
TOPS = (1, 10, 100)


class Program:
    """A measured program; `rows` of a file of NumPy arrays."""

    def __init__(self, arrays, rows=None):
        rows = np.arange(len(arrays["config_runtime"])) if rows is None else np.asarray(rows)
        self.arrays = dict(arrays, node_config_feat=arrays["node_config_feat"][rows],
                           config_runtime=arrays["config_runtime"][rows])
        self.keys = [row.tobytes() for row in self.arrays["node_config_feat"].astype(np.int8)]
        by_config = {}
        for key, time in zip(self.keys, self.arrays["config_runtime"].astype(float)):
            by_config.setdefault(key, []).append(time)
        self.times = {key: float(np.mean(times)) for key, times in by_config.items()}
        repeats = [np.log(times) for times in by_config.values() if len(times) > 1]
        squares = sum(((logs - logs.mean()) ** 2).sum() for logs in repeats)
        self.noise = math.sqrt(squares / sum(len(logs) - 1 for logs in repeats)) if repeats else math.nan

    def rows_of(self, keys):
        return [row for row, key in enumerate(self.keys) if key in keys]

    def save(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **self.arrays)


def read(path):
    with np.load(path) as npz:
        return Program({name: npz[name] for name in npz.files})


def codes(train, pool):
    """The number of each node's state, by content; states that training lacks are -1."""
    columns = []
    for node in range(train.arrays["node_config_feat"].shape[1]):
        known = {}
        for row in train.arrays["node_config_feat"][:, node]:
            known.setdefault(row.tobytes(), len(known))
        columns.append([[known.get(row.tobytes(), -1) for row in program.arrays["node_config_feat"][:, node]]
                        for program in (train, pool)])
    return [np.array([column[i] for column in columns], dtype=float).T for i in (0, 1)]


def by_trees(train, pool, seed):
    """The keys of the pool, the best first, by boosted trees on one-hot states."""
    inputs, other = codes(train, pool)
    hot = [(column, value) for column in range(inputs.shape[1]) for value in np.unique(inputs[:, column])]
    matrix = [np.array([values[:, column] == value for column, value in hot]).T for values in (inputs, other)]
    trees = HistGradientBoostingRegressor(random_state=seed, max_iter=200).fit(
        matrix[0], np.log(train.arrays["config_runtime"].astype(float)))
    predicted = dict(zip(pool.keys, trees.predict(matrix[1])))
    return sorted(predicted, key=predicted.get)


def slowdowns(pool, order):
    best = min(pool.times.values())
    return [min(pool.times[key] for key in order[:top]) / best - 1 for top in TOPS]


def at_random(pool, draws=2000):
    keys, random = list(pool.times), np.random.default_rng(0)
    return np.array([slowdowns(pool, [keys[i] for i in random.permutation(len(keys))]) for _ in range(draws)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--npz", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("real-programs"))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    work, tpudist = options.work, options.build / "tpudist"

    def call(*words):
        return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE).stdout

    def ordered(name, graph, train, pool, seed):
        """The keys of the pool, the best first, by an ensemble of five members."""
        shards, run = work / name / "shards", work / name / f"run-{seed}"
        listed = work / name / f"pool-{len(pool.keys)}.npz"
        if not shards.exists():
            for split in ("train", "valid"):
                train.save(work / name / "npz/layout/xla/random" / split / f"{graph}.npz")
            call(tpudist, "convert", work / name / "npz", shards)
        if not (run / "scores.json").exists():
            call(tpudist, "train", "experiments/alexnet.yaml", f"data.shards={shards}", f"seed.init={seed}",
                 f"seed.order={seed}", f"data.include.train=[{graph}]", f"data.include.valid=[{graph}]",
                 f"train.steps={STEPS[graph]}", "train.evaluate_every=0", "--run-dir", run, "--resume")
        pool.save(listed)
        ranking = json.loads(call(tpudist, "rank", listed, "--run", run, "--top", 0, "--json"))["ranking"]
        return [pool.keys[entry["config"]] for entry in ranking]

    alexnet, other = (read(options.npz / f"layout/xla/random/{split}/{ALEXNET}.npz") for split in ("train", "valid"))
    fresh = Program(other.arrays, other.rows_of(set(other.times) - set(alexnet.times)))
    resnet = read(options.npz / f"layout/xla/default/train/{RESNET}.npz")
    keys = sorted(resnet.times)
    halves = [Program(resnet.arrays, resnet.rows_of(set(keys[i::2]))) for i in (0, 1)]
    cases = [
        ("AlexNet, configurations that training lacks", [("alexnet", ALEXNET, alexnet, fresh)], True),
        ("AlexNet, by training on ResNet", [("resnet", RESNET, resnet, fresh)], False),
        ("ResNet, one half by training on the other", [
            (f"half-{i}", RESNET, halves[i], halves[1 - i]) for i in (0, 1)], True),
        ("ResNet, by training on AlexNet", [("alexnet", ALEXNET, alexnet, resnet)], False),
    ]

    def cell(found, high):
        return " | ".join(f"{100 * np.median(own):.3f} ({100 * np.quantile(own, high):.3f})" for own in np.array(found).T)

    print("| slowdown in %, median (worst; of random 95 %) after | " + " | ".join(f"{top}" for top in TOPS) + " |")
    print("|---|" + "---|" * len(TOPS))
    for title, parts, has_trees in cases:
        pools = [pool for _, _, _, pool in parts]
        noise = statistics.mean(pool.noise for pool in pools)
        lengths = ", ".join(f"{len(pool.times):,}" for pool in pools)
        print(f"| **{title}** ({lengths} configurations; one measurement has SD {100 * noise:.3f} %) | | | |")
        seeds = range(1, options.seeds + 1)
        found = [slowdowns(part[3], ordered(*part, seed)) for part in parts for seed in seeds]
        print(f"| ensemble of five | {cell(found, 1)} |")
        if has_trees:
            found = [slowdowns(part[3], by_trees(part[2], part[3], seed)) for part in parts for seed in seeds]
            print(f"| boosted trees on codes | {cell(found, 1)} |")
        print(f"| random, 2,000 draws | {cell(np.concatenate([at_random(pool) for pool in pools]), 0.95)} |", flush=True)


if __name__ == "__main__":
    main()
