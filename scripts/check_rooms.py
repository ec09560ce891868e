#!/usr/bin/env python3
"""Which folder may include which: fails with the file and the line of each include that goes against it.

    scripts/check_rooms.py [ROOT]

A folder may include itself, what its line in ROOMS names, and what the named folders may include. No two folders of
the top include each other. Every target has the root as include folder, so the compiler alone finds nothing.
"""
import pathlib
import re
import subprocess
import sys

# From the bottom up: a line names only folders that stand above it.
ROOMS = {
    "core": "",
    "core/config": "core",
    "core/parameters": "core",
    "core/safetensors": "core",
    "statistics/intervals": "core",
    "statistics/ranking": "statistics/intervals",
    "statistics/noise": "statistics/ranking",
    "data/schema": "core",
    "data/npz": "core",
    "data/hlo": "data/npz data/schema",
    "data/hdf5": "core",
    "data/shards": "data/schema data/hdf5",
    "data/convert": "core/config data/hlo data/shards",
    "data/loading": "data/convert",
    "data/synth": "data/hlo statistics/ranking",
    "models/plans": "core",
    "models/losses": "core/config",
    "models/kernels": "models/plans",
    "models/operators": "models/kernels",
    "models/device": "models/operators",
    "models/layers": "models/operators core/parameters core/config",
    "models/inputs": "models/layers data/schema",
    "models/network": "models/inputs models/device",
    "dist/collectives": "core",
    "dist/health": "dist/collectives",
    "dist/doctor": "dist/collectives",
    "results/checkpoints": "core/parameters data/hdf5 core/config core/safetensors",
    "results/records": "results/checkpoints data/schema statistics/ranking",
    "results/scores": "results/records data/loading statistics/noise",
    "results/inspect": "data/shards statistics/noise",
    "results/report/charts": "core",
    "results/report": "results/report/charts results/scores",
    "train/optimizer": "models/network",
    "train/experiment": "train/optimizer results/records data/loading dist/health models/losses",
    "train/units": "train/experiment",
    "train/scoring": "train/units results/scores",
    "train/loop": "train/scoring dist/doctor",
    "train/weights": "train/loop",
    "launch/sweep": "train/loop",
    "launch/program": "dist/health models/network",
    "launch/commands": "launch/program launch/sweep results/report results/inspect data/synth dist/doctor train/weights",
    "launch": "launch/commands",
    "python/extension": "results/records data/loading",
}


def closures():
    """Folder -> all folders that it may include."""
    allowed = {}
    for room, below in ROOMS.items():
        allowed[room] = {room}
        for name in below.split():
            if name not in allowed:
                sys.exit(f"check_rooms: the line of {room} names {name}, which does not stand above it")
            allowed[room] |= allowed[name]
    return allowed


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    try:
        files = subprocess.check_output(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], text=True,
                                        stderr=subprocess.DEVNULL).splitlines()
    except (OSError, subprocess.CalledProcessError):  # no git, an unpacked archive, another user's checkout
        files = []
    if not files:
        files = [str(path.relative_to(root)) for path in root.rglob("*.*") if path.relative_to(root).parts[0] != "build"]
    allowed, wrong, seen, arrows = closures(), [], set(), set()
    for name in files:
        path = root / name
        room = str(pathlib.PurePath(name).parent)
        if path.suffix not in {".cpp", ".hpp", ".cu", ".cuh"} or not path.exists() or name.startswith(("tests/", "bench/", "examples/")):
            continue
        seen.add(room)
        if room not in allowed:
            wrong.append(f"{name}: the folder {room} has no line in ROOMS of scripts/check_rooms.py")
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            include = re.match(r'#include "([^"]+)/[^"/]+"', line)
            if not include:
                continue
            arrows.add((room.split("/")[0], include[1].split("/")[0]))
            if include[1] not in allowed[room]:
                wrong.append(f"{name}:{number}: {room}/ may not include {include[1]}/")
    wrong += [f"scripts/check_rooms.py: {room} has no sources" for room in ROOMS if room not in seen]
    wrong += [f"{a}/ and {b}/ include each other" for a, b in sorted(arrows) if a < b and (b, a) in arrows]
    between = sum(a != b for a, b in arrows)
    print("\n".join(wrong) if wrong else f"{len(seen)} folders include only what they may; between the "
          f"{len({a for a, _ in arrows})} at the top are {between} arrows, and no two include each other")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
