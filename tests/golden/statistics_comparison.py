"""Golden numbers of tests/statistics/{distributions,power,comparison}_test.cpp.

Made with NumPy, SciPy and statsmodels; scores as in statistics_intervals.py.

    pip install numpy scipy statsmodels
"""
import numpy as np
from scipy import integrate, optimize, stats

from statistics_intervals import FAMILIES, cr2, howe, run_term, show, table


LOSSES = ((0.0, 3.5, 1e4), (0.8, 3.5, 1e4), (2.5, 3.5, 3), (1.0, 1.0, 50))
SYSTEMS = ([0.71, 0.74, 0.69, 0.73], [0.66, 0.70, 0.675, 0.655], [0.72, 0.75, 0.76, 0.71])
UNEVEN = ([0.71, 0.94, 0.39, 0.53], [0.66, 0.6601, 0.6605, 0.6602], [0.72, 0.75, 0.76, 0.71])


def main():
    for p, degrees in (0.975, 2.37), (0.9, 1), (0.3, 60):
        show(f"t {p} {degrees}", stats.t.ppf(p, degrees))
    show("chi2", stats.chi2.ppf(0.05, 6), stats.chi2.ppf(0.95, 6.5))
    show("f", stats.f.ppf(0.05, 2.5, 12), stats.f.ppf(0.95, 6, 8))
    bound = stats.t.ppf(0.975, 4)
    show("power", stats.nct.sf(bound, 4, 3.1) + stats.nct.cdf(-bound, 4, 3.1))
    show("loss", *(integrate.quad(stats.t(degrees).sf, shift, shift + most, limit=500)[0]
                   for shift, degrees, most in LOSSES))
    show("range", stats.studentized_range.cdf(3.5, 3, 10), stats.studentized_range.cdf(3.5, 8, 16),
         stats.studentized_range.cdf(2, 2, 4), stats.studentized_range.ppf(0.95, 3, 6),
         stats.studentized_range.ppf(0.95, 8, 16), stats.studentized_range.ppf(0.95, 4, 4))
    from statsmodels.stats.power import TTestIndPower
    power = TTestIndPower()
    show("runs for 80 %", power.solve_power(effect_size=0.7, power=0.8, alpha=0.05))

    first, second = table(1), table(11)
    a, b = first.mean(0), second.mean(0)
    show("runs", a.mean() - b.mean())
    show("welch", stats.ttest_ind(a, b, equal_var=False).pvalue)

    mean = first.mean() - second.mean()
    families = cr2((first - second).mean(1), [0] * 7, FAMILIES)
    runs = [run_term(first), run_term(second)]  # of equal numbers: by Satterthwaite
    added = sum(variance for variance, _ in runs)
    terms = [families, (added, added ** 2 / sum(v ** 2 / d for v, d in runs))]
    total, freedom = howe(terms)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(total)
    show("families", mean, freedom, mean - half, mean + half, howe_p(mean, terms))
    means = [np.mean((first - second).mean(1)[[f == family for f in FAMILIES]]) for family in "abcd"]
    total, freedom = howe([(np.var(means, ddof=1) * 1.25, 3), terms[1]])
    half, centre = stats.t.ppf(0.975, freedom) * np.sqrt(total), np.mean(means)
    show("the next family", centre - half, centre + half, *lead(centre, total, freedom))
    total, freedom = howe(terms, 1 - 0.05 / 3)
    half = stats.t.ppf(1 - 0.05 / 6, freedom) * np.sqrt(total)
    show("one of three looks", mean - half, mean + half)
    show("rates", 1 - 0.05 ** (1 / 3), stats.beta.ppf(0.95, 2, 9))
    by_pairs()


def howe_p(mean, terms):
    """1 minus the level at which Howe's interval ends at 0."""
    excess = lambda p: sum(stats.t.isf(p / 2, d) ** 2 * v for v, d in terms if v > 0) - mean ** 2
    return optimize.brentq(excess, 1e-12, 1, xtol=1e-14)


def lead(mean, variance, freedom):
    """The leader's chance, and the expected regret of at most 2."""
    error = np.sqrt(variance)
    shift = abs(mean) / error
    return stats.t.cdf(shift, freedom), integrate.quad(stats.t(freedom).sf, shift, shift + 2 / error,
                                                       limit=500)[0] * error


def by_pairs():
    """Three systems of Tukey's and of Holm's."""
    result = stats.tukey_hsd(*SYSTEMS)
    show("tukey", result.pvalue[0, 1], result.pvalue[0, 2], result.pvalue[1, 2],
         result.confidence_interval(0.95).low[0, 2], result.confidence_interval(0.95).high[0, 2])
    show("bartlett", stats.bartlett(*SYSTEMS).pvalue, stats.bartlett(*UNEVEN).pvalue)
    p = [stats.ttest_ind(UNEVEN[i], UNEVEN[j], equal_var=False).pvalue
         for i, j in ((0, 1), (0, 2), (1, 2))]
    from statsmodels.stats.multitest import multipletests
    show("holm", *multipletests(p, method="holm")[1])
    means = np.array([np.mean(values) for values in SYSTEMS])
    error = np.mean([np.var(values, ddof=1) for values in SYSTEMS]) / 4
    between = max(0, np.var(means, ddof=1) - error)
    show("shrunk", *(means.mean() + between / (between + error) * (means - means.mean())))


if __name__ == "__main__":
    main()
