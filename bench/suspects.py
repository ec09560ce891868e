"""How often `tpudist inspect --suspects` finds injected faults, and how often it is wrong.

    pip install numpy
    python bench/suspects.py NPZ_ROOT WORK       e.g. a folder of `tpudist synth`; WORK is made

Every layout graph with at least 300 measurements is copied once for each fault, all graphs with a
fault are converted as one collection of their own, and its suspects are counted. `none` are the graphs
as they are, without those that `tpudist synth` has spoiled (the first families of seed 1).
"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

TPUDIST = os.environ.get("TPUDIST", "build/release/tpudist")
KEYS = ("node_feat", "node_opcode", "edge_index", "node_config_ids", "node_config_feat")


def none(t, draw):
    return t


def slow_stretch(share, factor):
    def spoil(t, draw):
        count = max(int(share * len(t)), 5)
        first = draw.integers(len(t) - count)
        t[first:first + count] *= factor
        return t
    return spoil


def linear_drift(amount):
    return lambda t, draw: t * (1 + amount * np.arange(len(t)) / len(t))


def frozen(count):
    def spoil(t, draw):
        first = draw.integers(len(t) - count)
        t[first:first + count] = t[first]
        return t
    return spoil


def other_outliers(share):
    def spoil(t, draw):
        rows = draw.random(len(t)) < share
        t[rows] *= np.exp(draw.uniform(0.1, 0.5, rows.sum()))
        return t
    return spoil


FAULTS = {
    "none": none,
    "stretch of 10 % twice as slow": slow_stretch(0.1, 2),
    "stretch of 10 % slower by 10 %": slow_stretch(0.1, 1.1),
    "stretch of 10 % slower by 2 %": slow_stretch(0.1, 1.02),
    "stretch of 3 % twice as slow": slow_stretch(0.03, 2),
    "drift of 1 %": linear_drift(0.01),
    "drift of 10 %": linear_drift(0.1),
    "10 equal run times": frozen(10),
    "5 equal run times": frozen(5),
    "3 % of the run times too long": other_outliers(0.03),
    "run times shifted by one": lambda t, draw: np.roll(t, 1),
    "run times shuffled": lambda t, draw: draw.permutation(t),
}


def suspects(files, spoil, order, work, number):
    collection = f"layout:fault{number}:{order}"
    folder = work / "npz" / "layout" / f"fault{number}" / order / "train"
    folder.mkdir(parents=True, exist_ok=True)
    for i, file in enumerate(files):
        arrays = dict(np.load(file))
        t = spoil(arrays["config_runtime"].astype(float), np.random.default_rng([number, i]))
        kept = {key: arrays[key] for key in KEYS}
        np.savez_compressed(folder / f"{i}-{file.name}", **kept,
                            config_runtime=np.maximum(np.round(t), 1).astype(np.int64))
    subprocess.run([TPUDIST, "convert", work / "npz", work / "shards", "--collections", collection,
                    "--quiet"], check=True, stdout=subprocess.DEVNULL)
    out = subprocess.run([TPUDIST, "inspect", work / "shards", "--collection", collection, "--suspects",
                          "--json"], check=True, capture_output=True, text=True).stdout
    found = [graph for graph in json.loads(out)[collection]["graphs"] if graph["suspect"]]
    kinds = [check["check"] for graph in found for check in graph["checks"] if check["suspect"]]
    return len(found), {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def main(root, work):
    for order in ("random", "default"):
        files = [file for file in sorted(root.glob(f"layout/*/{order}/*/*.npz"))
                 if len(times := np.load(file)["config_runtime"]) >= 300 and times.all()
                 and file.stem not in ("conv_sela.4x2.fp16", "attention_bano.4x2.fp16")]
        if not files:
            continue
        print(f"{order}: {len(files)} graphs")
        for number, (name, spoil) in enumerate(FAULTS.items()):
            count, kinds = suspects(files, spoil, order, work, number)
            by_kind = ", ".join(f"{kind} {n}" for kind, n in kinds.items())
            print(f"  {name:34} suspect {count:3} of {len(files)}   {by_kind}", flush=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
