#!/usr/bin/env python3
"""What can be learned from the layouts of examples/measured_layouts: the table of docs/measured.md.

    bench/measured_layouts.py [--build build/release] [--work measured] [--seeds 3] [--steps 150]

Trains with five folds over the ten families, three times each, and scores every program by members that never saw its
family. Beside them: boosted trees on counts of states, fitted on the same folds, and the bytes of the copies in the
compiled program, which no model needs to learn. Needs NumPy, h5py and scikit-learn. Finished work in the folder stays.
"""
import argparse
import json
import pathlib
import shutil
import subprocess

import additive_models
import h5py
import numpy as np
from scipy.stats import t as student

SOURCE = pathlib.Path(__file__).resolve().parents[1]
DATA = SOURCE / "examples/measured_layouts"
COLLECTION = pathlib.Path("layout/measured/cpu")
TOPS = (1, 5, 10)
NETWORKS = {  # experiment, and what differs from it
    "best_xla's network": ("measured.yaml", []),
    "2nd place's network": ("xla.yaml", [
        "data.collection=layout:measured:cpu", "data.exclude={train: [], valid: []}", "predictions.rows=all",
        "train.evaluate_every=0", "train.checkpoint_every=0", "train.last_evaluation=none"]),
}


class Program:
    """A measured program."""

    def __init__(self, path, listed):
        self.name, self.graph = path.stem, additive_models.Graph(path)
        self.family = self.name.rsplit("_", 2)[0]
        with np.load(path) as npz:
            features = npz["node_config_feat"].astype(np.int8)
        _, first, group = np.unique(features.reshape(len(features), -1), axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)  # configurations by first occurrence, as in the manifest
        self.config = np.argsort(order)[group.ravel()]  # [rows]
        self.runtime = self.graph.runtime
        self.times = np.bincount(self.config, self.runtime) / np.bincount(self.config)
        self.default = int(self.config[0])  # the default is row 0
        self.copies, self.copied_bytes = np.array(listed["copies"]), np.array(listed["copied_bytes"])

    def judge(self, scores):
        """Tau of a score of each row, how much slower than the best the best of the first k is, and the speed-up of
        the first over the default."""
        scores = np.asarray(scores, dtype=float)
        by_config = np.bincount(self.config, scores) / np.bincount(self.config)
        shuffled = np.random.default_rng(0).random(len(by_config))
        order, best = np.lexsort((shuffled, by_config)), self.times.min()
        slower = [self.times[order[:top]].min() / best - 1 for top in TOPS]
        return [additive_models.tau(scores, self.runtime), *slower, self.times[self.default] / self.times[order[0]] - 1]

    def at_random(self, draws=200):
        random = np.random.default_rng(1)
        return np.mean([self.judge(random.permutation(len(self.times))[self.config]) for _ in range(draws)], axis=0)


def interval(programs, values):
    """Mean over programs, and the half width of its 95 % interval over families (which have equally many programs,
    or nearly so)."""
    means = [np.mean([value for own, value in zip(programs, values) if own.family == family])
             for family in sorted({own.family for own in programs})]
    return np.mean(values), student.ppf(0.975, len(means) - 1) * np.std(means, ddof=1) / len(means) ** 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("measured"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args()
    work, tpudist = options.work.resolve(), options.build.resolve() / "tpudist"

    def call(*words):
        return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True).stdout

    manifest = {one["name"]: one for one in json.loads((DATA / "manifest.json").read_text())["programs"]}
    accepted = [name for name, one in manifest.items() if one["accepted"]]
    npz = work / "npz" / COLLECTION / "train"
    npz.mkdir(parents=True, exist_ok=True)
    for name in accepted:
        shutil.copyfile(DATA / "npz" / COLLECTION / "train" / f"{name}.npz", npz / f"{name}.npz")
    call(tpudist, "convert", work / "npz", work / "shards")
    programs = [Program(npz / f"{name}.npz", manifest[name]) for name in sorted(accepted)]

    found, folds = {}, {}
    for title, (experiment, overrides) in NETWORKS.items():
        scores = {own.name: [] for own in programs}
        runs = []
        for seed in range(1, options.seeds + 1):
            run = work / f"{experiment.removesuffix('.yaml')}-{options.steps}-{seed}"
            if not (run / "predictions.h5").exists():
                shutil.rmtree(run, ignore_errors=True)
                call(tpudist, "train", SOURCE / "experiments" / experiment, f"data.shards={work / 'shards'}",
                     f"train.steps={options.steps}", f"seed.init={seed}", f"seed.order={seed}", *overrides, "--run-dir",
                     run, "--quiet")
            with h5py.File(run / "predictions.h5") as file:
                begin = file["graphs/begin"][:]
                for g, name in enumerate(file["graphs/name"].asstr()[:]):
                    own = file["rows/score"][begin[g]:begin[g + 1]][:, file["graphs/held_out"][g].astype(bool)]
                    folds[name] = int(file["graphs/fold"][g])
                    scores[name] += [(column - column.mean()) / (column.std() or 1) for column in own.T]
            taus = [additive_models.tau(scores[own.name][-1], own.runtime) for own in programs]
            runs.append(np.mean(taus))
        print(f"{title}: tau of each training {', '.join(f'{one:.3f}' for one in runs)}", flush=True)
        found[title] = [
            own.judge(np.mean(scores[own.name], axis=0)) for own in programs]

    trees = {}
    for fold in sorted(set(folds.values())):
        train = [own.graph for own in programs if folds[own.name] != fold]
        held = [own for own in programs if folds[own.name] == fold]
        inputs = additive_models.all_counts(train, [own.graph for own in held], True)
        trees |= {own.name: scores for own, scores in zip(held, additive_models.trees(train, *inputs))}
    found["boosted trees on counts and sizes"] = [own.judge(trees[own.name]) for own in programs]
    found["number of copies"] = [own.judge(own.copies[own.config]) for own in programs]
    found["bytes of copies"] = [own.judge(own.copied_bytes[own.config]) for own in programs]
    found["random order"] = [own.at_random() for own in programs]
    ceilings = [manifest[own.name]["ceiling"] for own in programs]

    print(f"{options.seeds} trainings of {options.steps} steps together; {len(programs)} programs, "
          f"{len({own.family for own in programs})} families")
    print("| | tau | slowdown at 1 | at 5 | at 10 | first against default |")
    print("|---|---|---|---|---|---|")
    for title, rows in found.items():
        cells = [interval(programs, column) for column in np.array(rows).T]
        tau, rest = cells[0], cells[1:]
        print(f"| {title} | {tau[0]:.3f} ± {tau[1]:.3f} | "
              + " | ".join(f"{100 * mean:.2f} ± {100 * half:.2f} %" for mean, half in rest) + " |")
    gains = [own.times[own.default] / own.times.min() - 1 for own in programs]
    mean, half = interval(programs, gains)
    print(f"| *best measured* | *{np.mean(ceilings):.3f} (ceiling)* | 0 | 0 | 0 | {100 * mean:.2f} ± {100 * half:.2f} % |")
    print("\n| family | " + " | ".join(found) + " | ceiling |\n|---|" + "---|" * (len(found) + 1))
    for family in sorted({own.family for own in programs}):
        own = [i for i, one in enumerate(programs) if one.family == family]
        cells = [np.mean([rows[i][0] for i in own]) for rows in found.values()]
        print(f"| {family} | " + " | ".join(f"{cell:.3f}" for cell in [*cells, np.mean([ceilings[i] for i in own])]) + " |")


if __name__ == "__main__":
    main()
