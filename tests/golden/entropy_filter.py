"""Numbers of tests/data/shards/entropy_filter_test.cpp: the 2nd place's filter of corrupted run times, with SciPy and NumPy.

Run times are made by the same linear congruential generator as in the test. Prints which blocks of 100 are kept.
"""
import numpy as np
from scipy.stats import entropy


def times(count, still, seed):
    """`still`: (first, last) measurement of a stretch with hardly any differences."""
    state, result = seed, []
    for i in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        noise = state >> 44  # below 2^20
        result.append(1_000_000 + (500_000 + noise // 1000 if still[0] <= i < still[1] else noise))
    return np.array(result, dtype=np.int64)


def kept(t, threshold):
    x = (t - t.min() + 5e-4) / (t.max() - t.min() + 1e-3)
    blocks = x[: len(x) // 100 * 100].reshape(-1, 100)
    values = np.array([entropy(blocks[i + 1], blocks[i]) for i in range(len(blocks) - 1)])
    good = np.convolve(values, np.ones(5) / 5, mode="same") >= threshold
    print("    values", np.array2string(np.convolve(values, np.ones(5) / 5, mode="same"), precision=4))
    if good.mean() < 0.1:
        return []
    return [i for i in range(len(blocks)) if (i == 0 or good[i - 1]) and (i == len(good) or good[i])]


for count, still, threshold in ((2050, (600, 1300), 0.3), (2050, (0, 0), 0.3), (1000, (150, 1000), 0.3), (2050, (600, 1300), 0.2)):
    print(count, still, threshold, kept(times(count, still, 7), threshold))
