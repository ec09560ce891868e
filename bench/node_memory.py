#!/usr/bin/env python3
"""Memory of the ranks of a node, each with its own copy of the data and with one for all.

    bench/node_memory.py --build build/release --ranks 8 experiments/nlp.yaml [key=value ...]

Starts the training three times, without data.cache_dir, with it, and with what the second one made.
Waits for step --steps, by which every rank should have seen all graphs, adds up the proportional set
sizes (Pss in /proc/PID/smaps_rollup) of the ranks, and ends the job. A page that several processes map
counts once in the sum. What a step holds for itself comes and goes: the median of some sums is taken.
The cache is made in --cache-dir, in a folder that is removed; where it lies in /dev/shm, its pages are
those that the ranks map.
"""
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

import mpi_training


def proportional_bytes(process):
    for line in open(f"/proc/{process}/smaps_rollup"):
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no Pss")


def ranks_of(job):
    """The processes that mpirun started."""
    children = []
    for task in pathlib.Path(f"/proc/{job.pid}/task").iterdir():
        children += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in children
            if pathlib.Path(f"/proc/{child}/comm").read_text().startswith("tpudist")]


def steps_done(folder):
    return max([line["step"] for line in mpi_training.logged(folder, "step")], default=0)


def measure(arguments, folder, cache):
    words = mpi_training.command(arguments, arguments.ranks, folder, "train.steps=1000000",
                                 "train.log_every=1", "dist.threads=1", "data.cache=memory",
                                 f"data.cache_dir={cache}")
    begin = time.monotonic()
    job = subprocess.Popen(words, env={**mpi_training.ENVIRONMENT, "OMP_NUM_THREADS": "1"},
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while steps_done(folder) < arguments.steps:
            if job.poll() is not None:
                raise SystemExit(f"the job ended with exit code {job.returncode}")
            time.sleep(0.2)
        seconds = time.monotonic() - begin
        ranks = ranks_of(job)
        if len(ranks) != arguments.ranks:
            raise SystemExit(f"found {len(ranks)} ranks and not {arguments.ranks}")
        sums = []
        for _ in range(arguments.samples):
            sums.append(sum(proportional_bytes(rank) for rank in ranks))
            time.sleep(0.3)
        return statistics.median(sums), seconds
    finally:
        if job.poll() is None:
            job.send_signal(signal.SIGTERM)
        job.wait()


def main():
    parser = mpi_training.parser(__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20, help="steps before memory is measured")
    parser.add_argument("--samples", type=int, default=15, help="sums of which the median is taken")
    parser.add_argument("--cache-dir", default="/dev/shm", help="where the cache is made")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, \
            tempfile.TemporaryDirectory(dir=arguments.cache_dir) as cache:
        work = pathlib.Path(work)
        apart, apart_s = measure(arguments, work / "apart", "none")
        first, first_s = measure(arguments, work / "first", cache)
        together, again_s = measure(arguments, work / "again", cache)
        paths = list(pathlib.Path(cache).rglob("*.cache"))
        files = sum(path.stat().st_size for path in paths)
        prepared = sum(path.stat().st_size for path in paths if ".prepared." in path.name)
    print(f"| | sum of Pss, MiB | seconds to step {arguments.steps} |\n|---|---|---|")
    for name, size, seconds in (("a copy for each rank", apart, apart_s),
                                ("one copy, written", first, first_s),
                                ("one copy, found", together, again_s)):
        print(f"| {name} | {size / 2**20:.0f} | {seconds:.1f} |")
    print(f"\nfiles: {files / 2**20:.0f} MiB, of these {prepared / 2**20:.0f} MiB prepared graphs; "
          f"saved: {(apart - together) / files:.2f} times that with {arguments.ranks} ranks")


if __name__ == "__main__":
    main()
