#!/usr/bin/env python3
"""Splits the training runs of one NPZ layout graph into training and validation runs.

    split_graph.py SOURCE.npz NPZ_ROOT [--valid 0.2] [--seed 1]

To choose a recipe without looking at the validation split: both parts come from the training runs
of SOURCE, and all runs of one configuration go to the same part. The files become
NPZ_ROOT/layout/xla/random/{train,valid}/, named as SOURCE. Needs NumPy.
"""
import argparse
import pathlib

import numpy as np

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("source", type=pathlib.Path)
parser.add_argument("npz_root", type=pathlib.Path)
parser.add_argument("--valid", type=float, default=0.2, help="share of the configurations")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()

graph = dict(np.load(options.source))
features = graph["node_config_feat"]
number = np.unique(features.reshape(len(features), -1).astype(np.int8), axis=0,
                   return_inverse=True)[1].reshape(-1)
held = np.random.default_rng(options.seed).random(number.max() + 1) < options.valid
for split, rows in (("train", ~held[number]), ("valid", held[number])):
    path = options.npz_root / "layout/xla/random" / split / options.source.name
    path.parent.mkdir(parents=True, exist_ok=True)
    part = {key: graph[key][rows] if key in ("node_config_feat", "config_runtime") else value
            for key, value in graph.items()}
    np.savez_compressed(path, **part)
    print(f"{path}: {rows.sum()} runs of {len(np.unique(number[rows]))} configurations")
