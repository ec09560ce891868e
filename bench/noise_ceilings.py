#!/usr/bin/env python3
"""The noise ceiling that `tpudist inspect --ceiling` estimates, against the truth of synthetic graphs.

    bench/noise_ceilings.py --build build/release [--seed 1]

Needs numpy and scipy. Takes the test graphs of `tpudist synth --preset demo --truth`, whose times
without noise are known, gives them their run times, and compares per graph: Kendall's tau-b between the
times without noise and the measured ones, as they are (configurations of equal time tied) and with ties
between configurations that differ broken at random, and the estimate of the ceiling.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np
from scipy.stats import kendalltau

COLLECTIONS = ["layout:xla:random", "layout:xla:default", "layout:nlp:random", "layout:nlp:default"]


def measured_graph(hidden, truth, target):
    """Writes the graph with its run times; returns tau of the true times, tied and strictly ordered."""
    with np.load(hidden) as graph, np.load(truth) as known:
        arrays = dict(graph)
        arrays["config_runtime"], times = known["config_runtime"], known["config_time"]
    features = arrays["node_config_feat"]
    config = np.unique(features.reshape(len(features), -1), axis=0, return_inverse=True)[1].ravel()
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, **arrays)
    broken = times * (1 + 1e-12 * np.random.default_rng(0).random(config.max() + 1)[config])
    return [kendalltau(t, arrays["config_runtime"])[0] for t in (times, broken)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="folder of tpudist")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    program = pathlib.Path(arguments.build).resolve() / "tpudist"
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)

        def run(*words):
            return subprocess.run([program, *map(str, words)], check=True, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

        run("synth", work / "npz", "--preset", "demo", "--seed", arguments.seed,
            "--collections", ",".join(COLLECTIONS), "--truth", work / "truth")
        known = {}
        for collection in COLLECTIONS:
            folder = pathlib.Path(*collection.split(":"))
            for file in sorted((work / "npz" / folder / "test").glob("*.npz")):
                known[collection, file.stem] = measured_graph(
                    file, work / "truth" / folder / "test" / file.name,
                    work / "measured" / folder / "valid" / file.name)
        run("convert", work / "measured", work / "shards")
        found = json.loads(run("inspect", work / "shards", "--ceiling", "--json"))
    print("| collection | graph | true times | ties broken | ceiling | interval | error |")
    print("|---|---|---|---|---|---|---|")
    for collection, table in found.items():
        for graph in table["graphs"]:
            tied, broken = known[collection, graph["name"]]
            if graph["ceiling"] is None:
                estimate = f"none: {graph['reason']} | |"
            else:
                low, high = graph["interval"]
                estimate = (f"{graph['ceiling']:.4f} | {low:.3f} to {high:.3f} | "
                            f"{graph['ceiling'] - broken:+.4f}")
            print(f"| {collection} | {graph['name']} | {tied:.4f} | {broken:.4f} | {estimate} |")


if __name__ == "__main__":
    main()
