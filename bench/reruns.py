#!/usr/bin/env python3
"""How far scores move between reruns, from the predictions of a sweep's runs (needs numpy, scipy, h5py).

    bench/reruns.py SWEEP_FOLDER...

A rerun is a run with another seed: new initial parameters, new order of data, same split. The score is
the mean Kendall tau-b over the graphs of the validation split, all rows, weights of the last step. A line
for each variant: the standard deviation over reruns of one member (the first of each run) and of all
members of a run together (mean of z-scores), each with its 95 % interval by chi-square. Two reruns differ by less than
2.8 standard deviations in 95 % of pairs. Where variants are compared: in how many pairs of reruns, one of
each, the variant with the higher mean scores higher.
"""
import argparse
import itertools
import json
import pathlib
import sys

import h5py
import numpy as np
from scipy import stats


def scores_of(path):
    """Mean tau over validation graphs of the first member and of all together."""
    with h5py.File(path) as file:
        begin, split = file["graphs/begin"][:], file["graphs/split"].asstr()[:]
        taus = []
        for graph in np.flatnonzero(split == "valid"):
            rows = slice(begin[graph], begin[graph + 1])
            times, scores = file["rows/runtime"][rows], file["rows/score"][rows].astype(float)
            together = ((scores - scores.mean(0)) / scores.std(0)).mean(1)
            taus.append([stats.kendalltau(s, times).statistic for s in (scores[:, 0], together)])
    if not taus:
        sys.exit(f"{path}: no graph of the validation split is scored")
    return np.mean(taus, axis=0)


def deviation_text(values):
    free, deviation = len(values) - 1, np.std(values, ddof=1)
    low, high = (deviation * np.sqrt(free / stats.chi2.ppf(p, free)) for p in (0.975, 0.025))
    return f"mean {np.mean(values):.4f}  SD {deviation:.4f} ({low:.4f} to {high:.4f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sweeps", type=pathlib.Path, nargs="+")
    found = {}
    for sweep in parser.parse_args().sweeps:
        for run in json.loads((sweep / "sweep.json").read_text())["runs"]:
            path = sweep / "runs" / run["id"] / "predictions.h5"
            if path.exists():
                found.setdefault(f"{sweep.name} {run['variant']}", []).append(scores_of(path))
    tables = {name: np.array(rows) for name, rows in found.items() if len(rows) > 1}
    if not tables:
        sys.exit("no sweep has two runs with predictions")
    for name, rows in tables.items():
        print(f"{name}: {len(rows)} reruns")
        for column, who in enumerate(("one member", "all members")):
            print(f"  {who:12} {deviation_text(rows[:, column])}")
    for (one, a), (other, b) in itertools.combinations(tables.items(), 2):
        for column, who in enumerate(("one member", "all members")):
            higher = (a[:, None, column] > b[None, :, column]).mean()
            print(f"{one} above {other}, {who}: {100 * higher:.0f} of 100 pairs of reruns")


if __name__ == "__main__":
    main()
