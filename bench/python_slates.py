#!/usr/bin/env python3
"""Slates a second of tpudist.SlateDataset against PyTorch datasets over h5py and over NPZ, from the same files.

    make_config_npz.py npz && tpudist convert npz shards
    PYTHONPATH=build/release/python python_slates.py shards npz

A slate is 10 random configurations of the only train graph of layout:xla:random: as codes (the row of each node's
state), or decoded to float32 (by tpudist in the process that takes them). In one process the datasets are called in a
loop; with workers they are read by a DataLoader of 4 slates a batch, of tpudist by SlateDataset.loader. Slates per
second of processor time, so that a busy machine counts little: that of the process that takes most, or of all of them
over the cores where that is more. Medians of five measurements of a second; JSON has them with the slates per second
that passed. Needs torch, NumPy and h5py.
"""
import json
import multiprocessing
import os
import pathlib
import resource
import statistics
import sys
import time

import h5py
import numpy as np
import torch.utils.data

import tpudist as td

K, BATCH, SECONDS, REPEATS = 10, 4, 1.0, 5


def draw(configs):
    """Rows of 4,096 slates, drawn beforehand."""
    random = np.random.default_rng(1)
    return [np.sort(random.choice(configs, K, replace=False, shuffle=False)) for _ in range(4096)]


class H5py(torch.utils.data.Dataset):
    """Rows of config_codes without a chunk cache; the offsets of the nodes make them rows of the table."""

    def __init__(self, shard, decoded, cache_bytes=0):
        self.shard, self.decoded, self.cache_bytes = shard, decoded, cache_bytes
        self.file = None

    def __len__(self):
        return 1 << 30

    def __getitem__(self, item):
        if self.file is None:  # in the process that reads
            self.file = h5py.File(self.shard, rdcc_nbytes=self.cache_bytes)
            graph = self.file["graphs/000000"]
            self.codes, self.offsets = graph["config_codes"], graph["config_state_offset"][:-1]
            self.table = graph["config_states"][:].astype(np.float32)
            self.runtime, self.rows = graph["runtime"][:], draw(len(self.codes))
        rows = self.rows[item % len(self.rows)]
        states = self.offsets + self.codes[rows]
        return rows, self.table[states] if self.decoded else states, self.runtime[rows]


class Npz(torch.utils.data.Dataset):
    """Everything in memory as float32, as it is in the file."""

    def __init__(self, file):
        with np.load(file) as arrays:
            self.features, self.runtime = arrays["node_config_feat"], arrays["config_runtime"]
        self.rows = draw(len(self.features))

    def __len__(self):
        return 1 << 30

    def __getitem__(self, item):
        rows = self.rows[item % len(self.rows)]
        return rows, self.features[rows], self.runtime[rows]


def used(pids):
    """Seconds of processor time of this process and of these others."""
    others = [
        sum(int(task.read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
        for pid in pids
    ]
    return np.array([time.process_time(), *others])


def rates(dataset, workers, decode):
    """(slates a second of processor time, slates a second) REPEATS times, after a warm-up; `decode` is called for
    each."""
    if not workers:
        items = iter(range(1 << 30))
        read = lambda: (decode(dataset[next(items)]), 1)[1]
    else:
        if isinstance(dataset, td.SlateDataset):
            loader = dataset.loader(workers)
        else:
            loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=workers, collate_fn=list)
        batches = iter(loader)
        read = lambda: sum(1 for slate in next(batches) for _ in [decode(slate)])
    for _ in range(50):
        read()
    pids = [child.pid for child in multiprocessing.active_children()]
    found = []
    for _ in range(REPEATS):
        count, begin, before = 0, time.perf_counter(), used(pids)
        while (passed := time.perf_counter() - begin) < SECONDS:
            count += read()
        spent = used(pids) - before
        found.append((count / max(spent.max(), spent.sum() / os.cpu_count()), count / passed))
    return found


def main():
    shards, npz = map(pathlib.Path, sys.argv[1:])
    folder = pathlib.Path("layout/xla/random/train")
    (shard,) = (shards / folder).glob("*.h5")
    (file,) = (npz / folder).glob("*.npz")
    ours = dict(configs=K, batch=BATCH, duplicates="keep", steps=1 << 28)
    datasets = {
        "tpudist, codes": td.SlateDataset(shards, "layout:xla:random", **ours),
        "h5py, codes": H5py(shard, False),
        "tpudist, float32": td.SlateDataset(shards, "layout:xla:random", **ours),
        "h5py, float32": H5py(shard, True),
        "NPZ in memory, float32": Npz(file),
    }
    table = {}
    print(f"{'':24} {'one process':>12} {'1 worker':>12} {'2 workers':>12}")
    for name, dataset in datasets.items():
        decode = (lambda slate: slate.features) if name == "tpudist, float32" else (lambda slate: None)
        table[name] = [rates(dataset, workers, decode) for workers in (0, 1, 2)]
        print(f"{name:24} " + " ".join(f"{statistics.median(one for one, _ in found):12,.0f}" for found in table[name]), flush=True)
    print(json.dumps({"rates": table, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}))


main()
