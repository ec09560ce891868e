#!/usr/bin/env python3
"""Random slates by `Dataset` against h5py and NumPy, from the same files, in the same run.

    make_config_npz.py npz && tpudist convert npz shards
    slates_against_h5py.py build/release/bench/slate_bench shards npz

A slate is 10 random configurations of the first train graph of layout:xla:random. h5py reads the
rows of config_codes and adds the offsets of their nodes; NumPy takes the rows of node_config_feat,
either from memory or loading the member first, as a program does that cannot hold it. Slates per
second of processor time on one core, with a warm page cache. Needs NumPy and h5py.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

import h5py
import numpy as np

K = 10


def rate(slate, configs, seconds=2.0):
    """Calls slate(rows) for about `seconds`; calls per second of processor time."""
    random = np.random.default_rng(1)
    slate(np.arange(K))
    calls, begin, wall = 0, time.process_time(), time.monotonic()
    while time.monotonic() - wall < seconds:
        slate(np.sort(random.choice(configs, K, replace=False, shuffle=False)))
        calls += 1
    return calls / (time.process_time() - begin)


def main():
    bench, shards, npz_root = sys.argv[1:]
    folder = pathlib.Path("layout/xla/random")
    shard = sorted((shards / folder / "train").glob("*.h5"))[0]
    theirs = {}
    for name, cache_bytes in {"h5py, no cache": 0, "h5py, cache of 100 %": 1 << 30}.items():
        with h5py.File(shard, rdcc_nbytes=cache_bytes) as file:
            graph = file["graphs/000000"]
            codes, offsets = graph["config_codes"], graph["config_state_offset"][:-1]
            configs, nodes = codes.shape
            codes[:]  # into its cache
            theirs[name] = rate(lambda rows: offsets + codes[rows], configs)
            npz = npz_root / pathlib.Path(graph.attrs["source"])
            chunk_rows = codes.chunks[0]
    print(f"{npz.stem}: {configs} configurations of {nodes} nodes, chunks of {chunk_rows} rows")

    load = lambda: np.load(npz)["node_config_feat"]
    theirs["np.load of the member, then rows"] = rate(lambda rows: load()[rows], configs)
    features = load()
    theirs["NumPy, float32 in memory"] = rate(lambda rows: features[rows], configs)

    wanted = {"BM_SlateFromChunks/0": "tpudist, no cache",
              "BM_SlateFromChunks/10": "tpudist, cache of 10 %",
              "BM_SlateFromChunks/100": "tpudist, cache of 100 %",
              "BM_SlateFromMemory": "tpudist, codes in memory"}
    command = [bench, "--benchmark_format=json",
               "--benchmark_filter=^(" + "|".join(wanted) + ")$"]
    output = subprocess.run(command, check=True, capture_output=True, text=True,
                            env=os.environ | {"TPUDIST_BENCH_SHARDS": str(shards)}).stdout
    ours = {run["name"]: run["items_per_second"] for run in json.loads(output)["benchmarks"]}

    base = theirs["h5py, no cache"]
    print(f"{'':34} slates/s    ratio")
    for name, value in theirs.items():
        print(f"{name:34} {value:8.3g} {value / base:8.3g}")
    for name, text in wanted.items():
        print(f"{text:34} {ours[name]:8.3g} {ours[name] / base:8.3g}")


sys.argv[2:] = map(pathlib.Path, sys.argv[2:])
main()
