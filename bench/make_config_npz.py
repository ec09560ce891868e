#!/usr/bin/env python3
"""Writes one NPZ layout graph whose node_config_feat is (configs, config_nodes, 18) float32.

    make_config_npz.py NPZ_ROOT [--configs 20000] [--config-nodes 400] [--kind KIND]

repeating: 2 to 9 states for each node, drawn independently (what real graphs look like);
unique: whole numbers -1..5 that hardly ever repeat; floats: random float32 that never do.
The file becomes NPZ_ROOT/layout/xla/random/train/KIND.npz. Needs NumPy.
"""
import argparse
import pathlib

import numpy as np

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("npz_root", type=pathlib.Path)
parser.add_argument("--configs", type=int, default=20000)
parser.add_argument("--config-nodes", type=int, default=400)
parser.add_argument("--kind", choices=["repeating", "unique", "floats"], default="repeating")
options = parser.parse_args()
c, nc = options.configs, options.config_nodes
n = 4 * nc
random = np.random.default_rng(1)

if options.kind == "floats":
    features = random.standard_normal((c, nc, 18), dtype=np.float32)
elif options.kind == "unique":
    features = random.integers(-1, 6, (c, nc, 18), dtype=np.int8).astype(np.float32)
else:
    features = np.empty((c, nc, 18), np.float32)
    for j in range(nc):
        states = random.integers(-1, 6, (random.integers(2, 10), 18)).astype(np.float32)
        features[:, j] = states[random.integers(0, len(states), c)]

path = options.npz_root / "layout/xla/random/train" / f"{options.kind}.npz"
path.parent.mkdir(parents=True, exist_ok=True)
np.savez_compressed(
    path,
    node_feat=random.standard_normal((n, 140), dtype=np.float32),
    node_opcode=random.integers(1, 119, n).astype(np.uint8),
    edge_index=np.stack([np.arange(1, n), np.arange(n - 1)], 1),
    node_config_ids=np.arange(nc) * 4,
    node_config_feat=features,
    config_runtime=random.integers(1, 10**10, c),
)
print(f"{path}: {features.nbytes / 1e6:.0f} MB of float32 in {path.stat().st_size / 1e6:.1f} MB")
