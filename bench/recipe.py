#!/usr/bin/env python3
"""Trains an experiment with several seeds and tells what its members reach, and how soon.

    recipe.py --build build/release [--ranks 2] [--seeds 1,2,3] [--target 0.74] FILE [key=value ...]

For each seed (of parameters and order): seconds of training, the score of each member after the
last step and of the ensemble, and when each member was first scored --target or better in the
evaluations on the way (train.evaluate_every). Seconds are those of training alone, without
evaluations.
"""
import argparse
import pathlib
import statistics
import subprocess
import tempfile

import mpi_training


def train(options, seed, folder):
    program = [str(pathlib.Path(options.build) / "tpudist"), "train", options.file]
    if options.ranks > 1:
        program = ["mpirun", "-np", str(options.ranks), "--bind-to", "none", "--oversubscribe",
                   *program]
    subprocess.run([*program, *options.overrides, f"seed.init={seed}", f"seed.order={seed}",
                    "--run-dir", folder], check=True, env=mpi_training.ENVIRONMENT,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return mpi_training.logged(folder, "evaluation")


def first_at(evaluations, member, target):
    """Step and seconds of the first evaluation that gave the member this score, None if none."""
    for line in evaluations:
        if (line["members"][member] or -1) >= target:
            return line["step"], line["train_seconds"]
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", required=True, help="folder of the program")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--target", type=float, default=0.74)
    parser.add_argument("file", help="experiment file")
    parser.add_argument("overrides", nargs="*", help="key=value, e.g. train.steps=100")
    options = parser.parse_args()
    seconds, soonest = [], []
    for seed in options.seeds.split(","):
        with tempfile.TemporaryDirectory() as folder:
            evaluations = train(options, seed, folder + "/run")
        last = evaluations[-1]
        first = [first_at(evaluations, m, options.target) for m in range(len(last["members"]))]
        seconds.append(last["train_seconds"])
        soonest += [at[1] if at else float("inf") for at in first]
        print(f"seed {seed}: {last['step']} steps in {last['train_seconds']:.1f} s; members",
              *(f"{score:.4f}" for score in last["members"]), f"ensemble {last['ensemble']:.4f};",
              f"{options.target} at",
              ", ".join(f"step {at[0]} ({at[1]:.1f} s)" if at else "never" for at in first),
              flush=True)
    print(f"medians: {statistics.median(seconds):.1f} s of training, {options.target} after "
          f"{statistics.median(soonest):.1f} s")


if __name__ == "__main__":
    main()
