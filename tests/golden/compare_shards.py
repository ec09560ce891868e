#!/usr/bin/env python3
"""Compares shards with their NPZ files bit by bit, by NumPy and h5py alone.

    compare_shards.py NPZ_ROOT SHARDS

Every array of every graph that the manifests list, configurations decoded as
config_states[config_state_offset[j] + config_codes[i, j]]. Also counts distinct configurations
with numpy.unique. Exits with 1 at the first difference.
"""
import json
import pathlib
import sys

import h5py
import numpy as np


def same_bits(what, stored, source):
    """Equal shape and, as the source's type, equal bits."""
    stored = np.ascontiguousarray(stored.astype(source.dtype))
    if stored.shape != source.shape or stored.tobytes() != np.ascontiguousarray(source).tobytes():
        sys.exit(f"{what} differs")


def decode(group):
    if "config_codes" not in group:
        return group["config_feat"][...].astype(np.float32)
    offsets = group["config_state_offset"][...]
    states = group["config_states"][...].astype(np.float32)
    return states[offsets[:-1] + group["config_codes"][...].astype(np.int64)]


def compare(what, npz, group):
    tile = "config_feat" in npz
    names = {"node_feat": "node_feat", "node_opcode": "node_opcode", "edge_index": "edge_index",
             "config_nodes": "node_config_ids", "node_splits": "node_splits",
             "runtime": "config_runtime", "runtime_normalizer": "config_runtime_normalizers"}
    for stored, source in names.items():
        if (stored in group) != (source in npz):
            sys.exit(f"{what}: {source} is only on one side")
        if stored in group:
            same_bits(f"{what}: {source}", group[stored][...], npz[source])
    features = npz["config_feat" if tile else "node_config_feat"]
    same_bits(f"{what}: configurations", decode(group), features)
    rows = features.reshape(len(features), -1)
    numbers = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    groups = group["config_group"][...]
    pairs = len(np.unique(np.stack([numbers, groups]), axis=1).T)
    if not len(np.unique(numbers)) == len(np.unique(groups)) == pairs:
        sys.exit(f"{what}: config_group is wrong")
    return features.nbytes, len(np.unique(groups))


def main():
    npz_root, shard_root = map(pathlib.Path, sys.argv[1:])
    graphs = 0
    for manifest in sorted(shard_root.rglob("manifest.json")):
        for shard in json.loads(manifest.read_text())["shards"]:
            with h5py.File(manifest.parent / shard["file"]) as file:
                assert file.attrs["format"] == "tpudist-shard" and file.attrs["complete"] == 1
                for graph in shard["graphs"]:
                    group = file[graph["group"]]
                    with np.load(npz_root / graph["source"]) as npz:
                        size, distinct = compare(graph["source"], npz, group)
                    graphs += 1
                    kind = "config_codes" if "config_codes" in group else "config_feat"
                    print(f"{graph['source']}: equal; {len(group['runtime'])} configurations, "
                          f"{distinct} distinct; {kind} {group[kind].dtype}, float32 is "
                          f"{size / group[kind].nbytes:.1f} times as large")
    print(f"{graphs} graphs are equal")
    sys.exit(0 if graphs else 1)


main()
