"""Golden numbers of tests/statistics/{distributions,permutation,power,comparison}_test.cpp.

Made with NumPy, SciPy and statsmodels; scores as in statistics_intervals.py.

    pip install numpy scipy statsmodels
"""
import itertools

import numpy as np
from scipy import integrate, stats

from statistics_intervals import FAMILIES, FOLDS, cr2, show, table, two_way


def difference(a, b, axis=-1):
    return np.mean(a, axis=axis) - np.mean(b, axis=axis)


def within_folds(a, b):
    """Two-sided p by enumerating the labels of the runs of each fold."""
    folds = np.array(FOLDS)
    sums = [0.0]
    for fold in (0, 1):
        rows = folds == fold
        pooled = np.concatenate([a[rows].mean(0), b[rows].mean(0)])
        own = []
        for chosen in itertools.combinations(range(len(pooled)), a.shape[1]):
            mask = np.isin(np.arange(len(pooled)), chosen)
            own.append(rows.mean() * (pooled[mask].mean() - pooled[~mask].mean()))
        sums = [x + y for x in sums for y in own]
    return np.mean(np.abs(sums) >= abs(a.mean() - b.mean()) - 1e-12)


def main():
    for p, degrees in (0.975, 2.37), (0.9, 1), (0.3, 60):
        show(f"t {p} {degrees}", stats.t.ppf(p, degrees))
    show("chi2", stats.chi2.ppf(0.05, 6), stats.chi2.ppf(0.95, 6.5))
    bound = stats.t.ppf(0.975, 4)
    show("power", stats.nct.sf(bound, 4, 3.1) + stats.nct.cdf(-bound, 4, 3.1))
    show("loss", *(integrate.quad(lambda u: (u - s) * stats.t.pdf(u, 3.5), s, np.inf)[0]
                   for s in (0.0, 0.8, 2.5)))
    from statsmodels.stats.power import TTestIndPower
    power = TTestIndPower()
    show("runs for 80 %", power.solve_power(effect_size=0.7, power=0.8, alpha=0.05))

    first, second = table(1), table(11)
    exact = stats.permutation_test((first.mean(0), second.mean(0)), difference, n_resamples=np.inf)
    show("runs", exact.statistic, exact.pvalue)
    uneven = stats.permutation_test((first[0], second[0][:2]), difference, n_resamples=np.inf)
    # SciPy doubles the smaller tail where sides differ in size; the share beyond |difference|:
    show("uneven", uneven.statistic,
         np.mean(np.abs(uneven.null_distribution) >= abs(uneven.statistic) - 1e-12))
    show("within folds", within_folds(first, second))
    sums = [sum((first - second).mean(1)[[f == family for f in FAMILIES]]) for family in "abcd"]
    flips = stats.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=np.inf)
    show("signs", flips.pvalue)

    variance, degrees = cr2((first - second).mean(1), [0] * 7, FAMILIES)
    total, below = variance, variance ** 2 / degrees
    for values in first, second:
        of_run, of_cell = (square / 21 for square in two_way(values))
        if of_run > of_cell:
            total += of_run - of_cell
            below += of_run ** 2 / 2 + of_cell ** 2 / 12
    mean = first.mean() - second.mean()
    freedom = total ** 2 / below
    half = stats.t.ppf(0.975, freedom) * np.sqrt(total)
    show("families", mean, freedom, mean - half, mean + half,
         2 * stats.t.sf(abs(mean) / np.sqrt(total), freedom))
    show("shake-up", stats.t.cdf(abs(mean) / np.sqrt(2 * variance), degrees),
         integrate.quad(lambda u: u * stats.t.pdf(u + abs(mean) / np.sqrt(2 * variance), degrees),
                        0, np.inf)[0] * np.sqrt(2 * variance))


if __name__ == "__main__":
    main()
