"""Golden numbers of tests/statistics/{interval,family_variance,score_intervals,variance_components}_test.cpp.

Made with NumPy, SciPy and statsmodels, from the textbook matrices and not from the closed forms of
statistics/. Scores come from a small integer generator that the tests repeat.

    pip install numpy scipy statsmodels
"""
import numpy as np
from scipy import linalg, optimize, stats

FAMILIES = list("aaabbcd")
FOLDS = [0, 0, 0, 1, 1, 0, 1]


def sequence(n, seed, levels):
    """n whole numbers below `levels` (Knuth's MMIX generator), as in combination.py."""
    state, values = seed, []
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append((state >> 33) % levels)
    return np.array(values, dtype=float)


def table(seed):
    """7 graphs x 3 runs: a graph, a run and a cell each."""
    graph, run, cell = sequence(7, seed, 400), sequence(3, seed + 1, 90), sequence(21, seed + 2, 120)
    return 0.4 + (graph[:, None] + run[None, :] + cell.reshape(7, 3)) / 1000


def show(name, *values):
    print(name, ", ".join(repr(float(v)) for v in values))


def cr2(values, collections, families):
    """V and degrees of freedom of the mean over collections, by the matrices of Bell and McCaffrey."""
    values, n = np.asarray(values), len(values)
    names = sorted(set(collections))
    design = np.array([[float(c == name) for name in names] for c in collections])
    bread = np.linalg.inv(design.T @ design)
    contrast = np.full(len(names), 1 / len(names))
    hat = design @ bread @ design.T
    residual = values - hat @ values
    columns, variance = [], 0
    for family in sorted(set(families)):
        rows = np.array([f == family for f in families])
        root = linalg.fractional_matrix_power(np.eye(rows.sum()) - hat[np.ix_(rows, rows)], -0.5).real
        weight = root @ design[rows] @ bread @ contrast
        variance += (weight @ residual[rows]) ** 2
        columns.append((np.eye(n) - hat)[:, rows] @ weight)
    products = np.array(columns) @ np.array(columns).T
    return variance, np.trace(products) ** 2 / np.sum(products ** 2)


def two_way(values):
    graphs, runs = values.shape
    mean, of_graph, of_run = values.mean(), values.mean(1), values.mean(0)
    cell = values - of_graph[:, None] - of_run[None, :] + mean
    return graphs * of_run.var(ddof=1), (cell ** 2).sum() / ((graphs - 1) * (runs - 1))


def howe(terms, level=0.95):
    """Sum of variances and the degrees with which Student's t has Howe's half width."""
    terms = [(variance, degrees) for variance, degrees in terms if variance > 0]
    total = sum(variance for variance, _ in terms)
    factor = lambda degrees: stats.t.ppf((1 + level) / 2, degrees) ** 2
    square = sum(factor(degrees) * variance for variance, degrees in terms)
    least, most = min(d for _, d in terms), max(d for _, d in terms)
    if least == most:
        return total, least
    return total, optimize.brentq(lambda d: factor(d) * total - square, least, most, xtol=1e-13)


def run_term(values):
    """What other runs add to the variance, with its degrees."""
    graphs, runs = values.shape
    of_run, of_cell = two_way(values)
    return max(0, of_run - of_cell) / (runs * graphs), runs - 1


def family_interval(values, families):
    total, degrees = howe([cr2(values.mean(1), [0] * len(values), families), run_term(values)])
    half = stats.t.ppf(0.975, degrees) * np.sqrt(total)
    return total, degrees, values.mean() - half, values.mean() + half


def reml(values, folds):
    """SDs of graph, run and residual with 90 % profile intervals, from the dense covariance."""
    graphs, runs = values.shape
    y = values.ravel()
    graph = np.repeat(np.arange(graphs), runs)
    run = np.repeat(folds, runs) * 100 + np.tile(np.arange(runs), graphs)
    same_graph = (graph[:, None] == graph[None, :]).astype(float)
    same_run = (run[:, None] == run[None, :]).astype(float)
    ones = np.ones(len(y))

    def minus_twice(sd):
        v = sd[0] ** 2 * same_graph + sd[1] ** 2 * same_run + max(sd[2], 1e-7) ** 2 * np.eye(len(y))
        inverse = np.linalg.inv(v)
        information = ones @ inverse @ ones
        e = y - ones @ inverse @ y / information
        return np.linalg.slogdet(v)[1] + np.log(information) + e @ inverse @ e

    def least(fixed, start):
        free = [i for i in range(3) if i not in fixed]
        def function(x):
            sd = np.zeros(3)
            sd[free] = np.abs(x)
            for i, value in fixed.items():
                sd[i] = value
            return minus_twice(sd)
        options = {"xatol": 1e-10, "fatol": 1e-11, "maxiter": 4000, "maxfev": 4000}
        # From several starts: one variance at 0 is a ridge on which a simplex may stay.
        starts = [np.asarray(start)[free], np.full(len(free), 0.05), np.full(len(free), 0.2)]
        fits = [optimize.minimize(function, s, method="Nelder-Mead", options=options) for s in starts]
        best = min(fits, key=lambda fit: fit.fun)
        return best.fun, np.abs(best.x)

    top, best = least({}, [0.1, 0.03, 0.03])
    result = []
    for k in range(3):
        beyond = lambda s: least({k: s}, best)[0] - top - stats.chi2.ppf(0.9, 1)
        low = 0.0 if beyond(0.0) <= 0 else optimize.brentq(beyond, 1e-6, best[k], xtol=1e-9)
        result += [best[k], low, optimize.brentq(beyond, max(best[k], 1e-4), 3, xtol=1e-9)]
    return result


def statsmodels_sds(values, folds):
    """The same SDs by statsmodels' MixedLM, where all is one group and graph and run are components."""
    import pandas
    import statsmodels.formula.api as formula
    graphs, runs = values.shape
    frame = pandas.DataFrame({
        "y": values.ravel(), "all": 1, "graph": np.repeat(np.arange(graphs), runs),
        "run": np.repeat(folds, runs) * 100 + np.tile(np.arange(runs), graphs)})
    fit = formula.mixedlm("y ~ 1", frame, groups="all", re_formula="0",
                          vc_formula={"graph": "0 + C(graph)", "run": "0 + C(run)"}).fit(reml=True)
    return list(np.sqrt(fit.vcomp)) + [np.sqrt(fit.scale)]


def main():
    first, second = table(1), table(11)
    runs = first.mean(0)
    t = stats.ttest_1samp(runs, 0).confidence_interval(0.95)
    show("runs", runs.mean(), t.low, t.high)
    welch = stats.ttest_ind(first.mean(0), second.mean(0), equal_var=False)
    ends = welch.confidence_interval(0.95)
    show("welch", first.mean() - second.mean(), welch.df, ends.low, ends.high)
    without = first.mean(1)
    error = np.sqrt((len(without) - 1) / len(without) * ((without - without.mean()) ** 2).sum())
    show("jackknife", *stats.t.interval(0.95, len(without) - 1, 0.7, error))

    show("cr2 3/2/1/1", *cr2(without, [0] * 7, FAMILIES))
    show("cr2 1x7", *cr2(without, [0] * 7, range(7)))
    import statsmodels.api as sm
    hc2 = sm.OLS(without, np.ones(7)).fit(cov_type="HC2")
    assert np.isclose(hc2.bse[0] ** 2, cr2(without, [0] * 7, range(7))[0], rtol=1e-12)
    both = np.concatenate([without, second.mean(1)[:5]])
    show("cr2 two collections", *cr2(both, [0] * 7 + [1] * 5, FAMILIES + list("aabce")))
    for name, values in ("first", first), ("second", second):
        show(f"families {name}", *family_interval(values, FAMILIES))
    for name, values in ("first", first), ("second", second):
        for folds in (np.zeros(7, int), np.array(FOLDS)):
            ours, theirs = reml(values, folds), statsmodels_sds(values, folds)
            assert np.allclose(ours[::3], theirs, rtol=2e-2, atol=2e-3), (ours, theirs)
            show(f"reml {name} {folds.max() + 1} folds", *ours)


if __name__ == "__main__":
    main()
