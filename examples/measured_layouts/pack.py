#!/usr/bin/env python3
"""Makes the data set of what collect.py measured: npz/ and manifest.json beside this file.

    examples/measured_layouts/pack.py WORK [--tpudist build/release/tpudist]

Programs that were packed before and are not in WORK stay.
A program is accepted if its noise ceiling is at least 0.8 and repeats deviate by at most 1 %. The others are named.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
COLLECTION = pathlib.Path("layout/measured/cpu/train")
LEAST_CEILING, MOST_DEVIATION = 0.8, 0.01


def described(folder):
    """The journal of a program in a few numbers. `copies` and `copied_bytes`: of each configuration, in the order of
    the NPZ's rows."""
    lines = [json.loads(line) for line in (folder / "measured.jsonl").read_text().splitlines()]
    configs, rounds = [one for one in lines if "config" in one], [one for one in lines if "round" in one]
    failed = {one["failed"] for one in lines if "failed" in one}
    timed = {program for one in rounds for program in one["programs"]} - failed
    order = [n for n, one in enumerate(configs) if one.get("program") in timed]
    times = np.array([one["ns"][one["programs"].index(0)] for one in rounds])
    return {
        "device": lines[0]["measured"]["device"], "jax": lines[0]["measured"]["jax"],
        "configurations": len(order), "programs": len({configs[n]["program"] for n in order}),
        "failed": sum("error" in one for one in configs) + len(failed), "rounds": len(rounds),
        "rounds_of_a_program": min(
            sum(program in one["programs"] for one in rounds) for program in {configs[n]["program"] for n in order}),
        "default_ms": round(float(np.median(times)) / 1e6, 3),
        "kept": sum(configs[n]["kept"] for n in order), "forced": sum(configs[n]["forced"] for n in order),
        "copies": [configs[n]["copies"] for n in order], "copied_bytes": [configs[n]["copied_bytes"] for n in order]}


def deviation(arrays):
    """Of the logarithm of a time from that of the other rounds of its configuration, pooled."""
    rows = arrays["node_config_feat"].astype(np.int8).reshape(len(arrays["config_runtime"]), -1)
    _, config = np.unique(rows, axis=0, return_inverse=True)
    logs, config = np.log(arrays["config_runtime"].astype(float)), config.ravel()
    count = np.bincount(config)
    rest = logs - (np.bincount(config, logs) / count)[config]
    return float(np.sqrt(np.square(rest).sum() / max(len(logs) - len(count), 1)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--tpudist", type=pathlib.Path, default=HERE.parents[1] / "build/release/tpudist")
    options = parser.parse_args()
    out, manifest, programs = HERE / "npz" / COLLECTION, HERE / "manifest.json", []
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(options.work.glob("*/measured.npz")):
        with np.load(path) as file:
            arrays = dict(file)
        np.savez_compressed(out / f"{path.parent.name}.npz", **arrays)
        programs.append({"name": path.parent.name, **described(path.parent), "deviation": round(deviation(arrays), 5)})
    # What was packed before, of another WORK, stays.
    before = json.loads(manifest.read_text())["programs"] if manifest.exists() else []
    programs += [one for one in before if one["name"] not in {own["name"] for own in programs}]
    programs.sort(key=lambda one: one["name"])
    with tempfile.TemporaryDirectory() as shards:
        subprocess.run([options.tpudist, "convert", HERE / "npz", shards, "--quiet"], check=True)
        words = [options.tpudist, "inspect", shards, "--ceiling", "--json"]
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE)
    ceilings = {one["name"]: one["ceiling"] for one in json.loads(done.stdout)["layout:measured:cpu"]["graphs"]}
    for one in programs:
        one["ceiling"] = ceilings[one["name"]]
        one["accepted"] = (one["ceiling"] or 0) >= LEAST_CEILING and one["deviation"] <= MOST_DEVIATION
        if not one["accepted"]:
            print(f"{one['name']}: not accepted: ceiling {one['ceiling']}, deviation {100 * one['deviation']:.2f} %")
    lines = ",\n".join(json.dumps(one) for one in programs)
    manifest.write_text(f'{{"programs": [\n{lines}\n]}}\n')
    accepted = [one for one in programs if one["accepted"]]
    rows = sum(one["configurations"] for one in programs)
    print(f"{len(accepted)} of {len(programs)} programs accepted; {rows} configurations")


if __name__ == "__main__":
    main()
