#!/usr/bin/env python3
"""What message passing is worth: networks with and without edges beside models that see none.

    bench/neighbours.py --build build/release                                # synthetic families
    bench/neighbours.py --build build/release --npz NPZ                      # the AlexNet graph

Needs numpy, scipy and scikit-learn. Without --npz each seed S makes demo data of its own (`tpudist
synth --preset demo --seed S`), whose validation graphs are of families that are not in training, and
trains one member of the collection's experiments/demo*.yaml with initialisation and order S: with the
means of the 2nd place's layers, with maxima, and with `directions: []`, where each node is by itself.
With --npz, the folder that holds layout/xla/random, it trains experiments/alexnet.yaml and fits a
ridge regression and boosted trees to the same runs. Prints Kendall's tau on the validation split.
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile

import numpy as np

import additive_models

EXPERIMENTS = pathlib.Path(__file__).resolve().parent.parent / "experiments"
DEMO = {"layout:xla:random": "demo.yaml", "layout:xla:default": "demo_xla_default.yaml",
        "layout:nlp:random": "demo_nlp.yaml", "layout:nlp:default": "demo_nlp_default.yaml"}
# What the layers do with neighbours, and the steps after which more gain little.
LAYERS = {"no edges": ("directions: []", 3000), "means": ("aggregation: mean", 1200),
          "maxima": ("aggregation: max", 1200)}


class Tpudist:
    def __init__(self, build, work):
        self.program, self.work = str(pathlib.Path(build) / "tpudist"), work

    def run(self, *words):
        return subprocess.run([self.program, *map(str, words)], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def scores(self, experiment, shards, name, *overrides):
        """Scores of the members of a new run on the validation split."""
        folder = self.work / "runs" / name
        settings = {word.split("=")[0]: word for word in (f"data.shards={shards}", f"name={name}", *overrides)}
        self.run("train", EXPERIMENTS / experiment, *settings.values(), "--run-dir", folder)
        members = json.loads((folder / "scores.json").read_text())["members"]
        return [member["mean"]["kendall_tau"] for member in members]


def row(*cells):
    print("| " + " | ".join(c if isinstance(c, str) else f"{c:.3f}" for c in cells) + " |", flush=True)


def synthetic(tpudist, collections, seeds, overrides):
    names = ["ridge on counts", "and sizes", *LAYERS, "noise ceiling"]
    row("collection", "seed", *names)
    row(*["---"] * (len(names) + 2))
    for collection in collections:
        rows = []
        for seed in range(1, seeds + 1):
            npz, shards = (tpudist.work / f"{kind}-{seed}" for kind in ("npz", "shards"))
            folder = "/".join(collection.split(":"))
            made = tpudist.run("synth", npz, "--preset", "demo", "--seed", seed,
                               "--collections", collection)
            tpudist.run("convert", npz, shards)
            graphs = [additive_models.read_split(npz / folder / split) for split in ("train", "valid")]
            values = [np.mean([additive_models.tau(*pair) for pair in zip(
                          additive_models.ridge_on_counts(*graphs, sized), (g.runtime for g in graphs[1]))])
                      for sized in (False, True)]
            for layer, steps in LAYERS.values():
                values += tpudist.scores(
                    DEMO[collection], shards, f"{folder.replace('/', '-')}-{seed}-{len(values)}",
                    f"seed.init={seed}", f"seed.order={seed}",
                    "ensemble.members=1", "ensemble.vary=[init]", "ensemble.folds=none",
                    f"train.steps={steps}", "train.evaluate_every=0",
                    f"model.blocks=[{{layer: sage, width: 64, repeat: 4, {layer}}}]", *overrides)
            values.append(float(re.search(rf"{folder}/valid .*noise ceiling ([\d.]+)", made)[1]))
            row(collection, str(seed), *values)
            rows.append(values)
        row(collection, "mean", *np.mean(rows, axis=0))


def alexnet(tpudist, npz, seeds, overrides):
    graph = [additive_models.Graph(pathlib.Path(npz) / "layout/xla/random" / split /
                                   "alexnet_train_batch_32.npz") for split in ("train", "valid")]
    row("model", "tau on valid")
    row("---", "---")
    runtime = graph[1].runtime
    row("ridge, one-hot states", additive_models.tau(additive_models.ridge_on_one_hot(*graph), runtime))
    for depth in (1, 3, 6):
        row(f"boosted trees of depth {depth}",
            additive_models.tau(additive_models.trees_on_codes(*graph, depth), runtime))
    tpudist.run("convert", npz, tpudist.work / "shards", "--collections", "layout:xla:random")
    for seed in range(1, seeds + 1):
        score, = tpudist.scores("alexnet.yaml", tpudist.work / "shards", f"alexnet-{seed}",
                                f"seed.init={seed}", f"seed.order={seed}", "ensemble.members=1",
                                "train.evaluate_every=0", *overrides)
        row(f"experiments/alexnet.yaml, one member, seed {seed}", score)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="folder of tpudist")
    parser.add_argument("--npz", help="folder of layout/xla/random/{train,valid} of the real data")
    parser.add_argument("--collection", choices=DEMO, action="append",
                        help="may be repeated; both random ones without it")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="of the experiments")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tpudist = Tpudist(arguments.build, pathlib.Path(folder))
        if arguments.npz:
            alexnet(tpudist, arguments.npz, arguments.seeds, arguments.overrides)
        else:
            synthetic(tpudist, arguments.collection or ["layout:xla:random", "layout:nlp:random"],
                      arguments.seeds, arguments.overrides)


if __name__ == "__main__":
    main()
