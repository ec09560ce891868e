#!/usr/bin/env python3
"""Which folder may include which: fails with the file and the line of each include that goes against it.

    scripts/check_rooms.py [ROOT]

A folder may include itself, what its line in ROOMS names, and what these may include in turn. Every target has the
root as include folder, so the compiler alone finds nothing.
"""
import pathlib
import re
import subprocess
import sys

# From the bottom up: a line names only folders that stand above it.
ROOMS = {
    "core": "",
    "core/config": "core",
    "core/safetensors": "core",
    "schema": "core",
    "statistics/intervals": "core",
    "statistics/ranking": "statistics/intervals",
    "statistics/noise": "statistics/ranking",
    "data/npz": "core",
    "data/hlo": "data/npz schema",
    "data/hdf5": "core",
    "data/shards": "schema data/hdf5",
    "data/convert": "core/config data/hlo data/shards",
    "data/loading": "data/convert",
    "data/inspect": "data/shards statistics/noise",
    "data/synth": "data/hlo statistics/ranking",
    "models/parameters": "core",
    "models/plans": "core",
    "models/losses": "core/config",
    "models/kernels": "models/plans",
    "models/operators": "models/kernels",
    "models/device": "models/operators",
    "models/layers": "models/operators models/parameters core/config",
    "models/inputs": "models/layers schema",
    "models/network": "models/inputs models/device",
    "dist/collectives": "core",
    "dist/health": "dist/collectives",
    "doctor": "dist/collectives",
    "train/state": "models/parameters data/hdf5 core/config core/safetensors",
    "records": "train/state schema statistics/ranking",
    "python/extension": "records data/loading",
    "scores": "records data/loading statistics/noise",
    "report/charts": "core",
    "report": "report/charts scores data/inspect",
    "train/optimizer": "models/network",
    "experiment": "train/optimizer data/loading dist/health models/losses models/network",
    "train/units": "experiment",
    "inference": "train/units scores",
    "train/loop": "inference",
    "train/weights": "train/loop",
    "sweep": "train/loop",
    "launch/program": "dist/health models/network",
    "launch/commands": "launch/program data/inspect data/synth report doctor sweep train/weights",
    "launch": "launch/commands",
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
    allowed, wrong, seen = closures(), [], set()
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
            if include and include[1] not in allowed[room]:
                wrong.append(f"{name}:{number}: {room}/ may not include {include[1]}/")
    wrong += [f"scripts/check_rooms.py: {room} has no sources" for room in ROOMS if room not in seen]
    print("\n".join(wrong) if wrong else f"{len(seen)} folders include only what they may")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
