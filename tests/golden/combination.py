"""Golden numbers of tests/statistics/combination_test.cpp, made with NumPy and SciPy.

The scores come from a small integer generator that the test repeats, so that only results are stored.
"""
import numpy as np
from scipy.special import log_softmax, logsumexp
from scipy.stats import rankdata, zscore


def sequence(n, seed, levels):
    """n whole numbers below `levels`, many ties where levels is small (Knuth's MMIX generator)."""
    state, values = seed, []
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append((state >> 33) % levels)
    return np.array(values, dtype=float)


def main():
    members = np.stack([sequence(8, 1, 5), 100 + sequence(8, 2, 1000), -0.25 * sequence(8, 3, 3)])
    weights = np.array([1.0, 2.0, 0.5])
    average = lambda rows: np.average(rows, axis=0, weights=weights)
    low, high = members.min(axis=1, keepdims=True), members.max(axis=1, keepdims=True)
    rules = {
        "mean": average(members),
        "z_score": average(zscore(members, axis=1)),
        "min_max": average((members - low) / (high - low)),
        "rank_mean": average(rankdata(members, axis=1)),
        "borda": average(rankdata(members, method="max", axis=1) - members.shape[1]),
        "reciprocal_rank": average(-1 / rankdata(members, axis=1)),
        "softmax": -logsumexp(log_softmax(-zscore(members, axis=1) / 0.5, axis=1), axis=0,
                              b=(weights / weights.sum())[:, None]),
    }
    for name, values in rules.items():
        print(f'      {{"{name}", {{{", ".join(repr(float(v)) for v in values)}}}}},')


if __name__ == "__main__":
    main()
