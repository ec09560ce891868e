"""Golden numbers of tests/statistics/measurement_checks_test.cpp, made with NumPy and SciPy.

The series comes from a small integer generator that the test repeats, so that only results are stored.
"""
import numpy as np
from scipy.stats import entropy, rankdata, spearmanr

from combination import sequence

BINS, BLOCKS = 8, 10  # 260 values make ten blocks of 26


def divergences(series, blocks):
    ranks = rankdata(series)
    bins = np.minimum((BINS * (ranks - 0.5) / len(series)).astype(int), BINS - 1)
    whole = np.bincount(bins, minlength=BINS) / len(series)
    edges = [i * len(series) // blocks for i in range(blocks + 1)]
    return [entropy(np.bincount(bins[a:b], minlength=BINS) / (b - a), whole, base=2)
            for a, b in zip(edges, edges[1:])]


def main():
    series = sequence(260, 5, 40) + np.arange(260) // 20
    rho, p = spearmanr(np.arange(260), series)
    print("drift", repr(rho), "p of the t distribution", repr(p))
    found = divergences(series, BLOCKS)
    print("divergence", repr(max(found)), "of block", int(np.argmax(found)))


if __name__ == "__main__":
    main()
