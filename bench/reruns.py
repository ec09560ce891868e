#!/usr/bin/env python3
"""How far scores move between reruns, from the predictions of a sweep's runs (needs numpy, scipy, h5py).

    bench/reruns.py SWEEP_FOLDER... [--svg FILE [--labels TEXT...]]

A rerun is a run with another seed: new initial parameters, new order of data, same split. The score is
the mean Kendall tau-b over the graphs of the validation split, all rows, weights of the last step. A line
for each variant: the standard deviation over reruns of one member (the first of each run) and of all
members of a run together (mean of z-scores), each with its 95 % interval by chi-square. Two
reruns differ by less than 2.8 standard deviations in 95 % of pairs. Where variants are compared: in how many pairs of reruns, one of
each, the first scores higher. --svg draws all of them, a point for a rerun.
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


def strip_chart(rows):
    """SVG of (label, scores): a line of points for each, with mean and 2 standard deviations."""
    every = np.concatenate([scores for _, scores in rows])
    low, high = np.floor(every.min() * 100) / 100, np.ceil(every.max() * 100) / 100
    left, right, height = 190, 700, 44

    def place(score):
        return left + (score - low) / (high - low) * (right - left)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height * len(rows) + 40}" '
             'font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="#fff"/>']
    for tick in np.arange(low, high + 1e-9, 0.01):
        parts.append(f'<path d="M{place(tick):.1f} 8V{height * len(rows) + 12}" stroke="#ddd"/>'
                     f'<text x="{place(tick):.1f}" y="{height * len(rows) + 30}" fill="#444" '
                     f'text-anchor="middle">{tick:.2f}</text>')
    for line, (label, scores) in enumerate(rows):
        y, mean, deviation = height * line + 30, scores.mean(), scores.std(ddof=1)
        parts.append(f'<text x="{left - 12}" y="{y + 4}" fill="#222" text-anchor="end">{label}</text>'
                     f'<path d="M{place(mean - 2 * deviation):.1f} {y + 12}H{place(mean + 2 * deviation):.1f}" '
                     f'stroke="#c33" stroke-width="2"/><path d="M{place(mean):.1f} {y - 10}V{y + 16}" '
                     'stroke="#c33" stroke-width="2"/>')
        parts += [f'<circle cx="{place(score):.1f}" cy="{y}" r="4" fill="#26a" fill-opacity="0.45"/>'
                  for score in scores]
    return "\n".join(parts + ["</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sweeps", type=pathlib.Path, nargs="+")
    parser.add_argument("--svg", type=pathlib.Path, help="file for a chart")
    parser.add_argument("--labels", nargs="*", default=[], help="of the chart's lines, in order")
    options = parser.parse_args()
    found = {}
    for sweep in options.sweeps:
        plan = json.loads((sweep / "sweep.json").read_text())
        for run in plan["runs"]:
            variant = plan["variants"][run["variant"]]["label"]
            path = sweep / "runs" / run["id"] / "predictions.h5"
            if path.exists():
                found.setdefault(f"{sweep.name} {variant}", []).append(scores_of(path))
    tables = {name: np.array(rows) for name, rows in found.items() if len(rows) > 1}
    if not tables:
        sys.exit("no sweep has two runs with predictions")
    for name, rows in tables.items():
        print(f"{name}: {len(rows)} reruns")
        for column, who in enumerate(("one member", "all members")):
            print(f"  {who:12} {deviation_text(rows[:, column])}")
    if options.svg:
        chart = [(f"{who}, {name}", rows[:, column]) for name, rows in tables.items()
                 for column, who in enumerate(("one", "together")) if column == 0 or
                 (rows[:, 0] != rows[:, 1]).any()]
        labels = options.labels + [label for label, _ in chart[len(options.labels):]]
        options.svg.write_text(strip_chart([(label, scores)
                                            for label, (_, scores) in zip(labels, chart)]))
    for (one, a), (other, b) in itertools.combinations(tables.items(), 2):
        for column, who in enumerate(("one member", "all members")):
            higher = (a[:, None, column] > b[None, :, column]).mean()
            print(f"{one} above {other}, {who}: {100 * higher:.0f} of 100 pairs of reruns")


if __name__ == "__main__":
    main()
