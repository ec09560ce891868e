#!/usr/bin/env python3
"""Conversion of one NPZ file by `tpudist convert` against NumPy and h5py (gzip 4), in the same run.

    make_config_npz.py npz && convert_against_h5py.py build/release/tpudist npz

Prints the rate in MB of float32 configuration features a second and the peak resident memory of
both, and the ratio of the rates. Needs NumPy and h5py; each conversion is a process of its own.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile

PYTHON = """
import sys, numpy, h5py
with h5py.File(sys.argv[2], "w") as out:
    for name, array in numpy.load(sys.argv[1]).items():
        out.create_dataset(name, data=array, compression="gzip", compression_opts=4)
"""


def measure(command):
    """Seconds and peak memory in MB of a child process."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} failed")
    return time.monotonic() - begin, usage.ru_maxrss / 1e3


def main():
    tpudist, npz_root = sys.argv[1], pathlib.Path(sys.argv[2])
    for npz in sorted(npz_root.glob("layout/*/*/*/*.npz")):
        # From the directory: an array loaded here would count as memory of the children.
        with zipfile.ZipFile(npz) as archive:
            megabytes = archive.getinfo("node_config_feat.npy").file_size / 1e6
        with tempfile.TemporaryDirectory() as folder:
            link = pathlib.Path(folder) / "npz" / npz.relative_to(npz_root)
            link.parent.mkdir(parents=True)
            link.symlink_to(npz.absolute())
            ours = measure([tpudist, "convert", f"{folder}/npz", f"{folder}/shards"])
            theirs = measure([sys.executable, "-c", PYTHON, str(npz), f"{folder}/out.h5"])
            sizes = [sum(f.stat().st_size for f in pathlib.Path(folder).rglob("*.h5"))]
            sizes.append(os.path.getsize(f"{folder}/out.h5"))
        print(f"{npz.stem}: {megabytes:.0f} MB of float32")
        for name, (seconds, peak), size in [("tpudist", ours, sizes[0] - sizes[1]),
                                            ("h5py", theirs, sizes[1])]:
            print(f"  {name:8} {seconds:6.2f} s  {megabytes / seconds:6.0f} MB/s  "
                  f"peak {peak:6.0f} MB  file {size / 1e6:7.1f} MB")
        print(f"  ratio    {theirs[0] / ours[0]:.1f}")


main()
