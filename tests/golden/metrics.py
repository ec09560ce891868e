"""Golden numbers of tests/statistics/metrics_test.cpp, made with SciPy (1.17.1).

The inputs come from a small integer generator that the test repeats, so that only results are stored.
"""
from scipy.stats import kendalltau


def sequence(n, seed, levels):
    """n whole numbers below `levels`, many ties where levels is small (Knuth's MMIX generator)."""
    state, values = seed, []
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append((state >> 33) % levels)
    return values


def main():
    for n, levels_x, levels_y in [(2, 1000, 1000), (3, 3, 3), (5, 4, 4), (10, 5, 100), (25, 3, 3), (60, 2, 40),
                                  (100, 1000, 1000), (257, 20, 50), (1000, 10**6, 10**6), (1000, 7, 900), (2000, 300, 5),
                                  (2000, 10**9, 2000)]:
        x = sequence(n, n + 1, levels_x)
        noise = sequence(n, n + 2, levels_y)
        y = [(a * levels_y // levels_x + b) // 2 for a, b in zip(x, noise)]  # correlated, with ties
        print(f"      {{{n}, {levels_x}, {levels_y}, {float(kendalltau(x, y).statistic)!r}}},")


if __name__ == "__main__":
    main()
