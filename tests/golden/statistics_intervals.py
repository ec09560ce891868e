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


def deviations(values, folds):
    """SDs of graph, run and residual with Williams's 90 % intervals, by projections of all scores."""
    graphs, runs = values.shape
    y = values.ravel()
    fold = np.repeat(folds, runs)
    graph, run = np.repeat(np.arange(graphs), runs), fold * 100 + np.tile(np.arange(runs), graphs)
    columns = lambda labels: (labels[:, None] == np.unique(labels)[None, :]).astype(float)
    def square(larger, smaller):
        """The mean square of what `larger` explains beyond `smaller`, with its degrees."""
        degrees = np.linalg.matrix_rank(larger) - np.linalg.matrix_rank(smaller)
        project = lambda x: x @ np.linalg.pinv(x)
        return y @ (project(larger) - project(smaller)) @ y / degrees, degrees
    of_graph, graph_degrees = square(columns(graph), columns(fold))
    of_run, run_degrees = square(columns(run), columns(fold))
    rest, degrees = square(np.eye(len(y)), np.hstack([columns(graph), columns(run)]))
    result = []
    for mean_square, own, count in ((of_graph, graph_degrees, runs),
                                    (of_run, run_degrees, graphs / len(set(folds)))):
        low = own * (mean_square - stats.f.ppf(0.95, own, degrees) * rest) / stats.chi2.ppf(0.95, own)
        high = own * (max(mean_square, rest) - stats.f.ppf(0.05, own, degrees) * rest) / stats.chi2.ppf(0.05, own)
        result += [max(0, v / count) ** 0.5 for v in (mean_square - rest, low, high)]
    return result + [(rest * scale) ** 0.5 for scale in (1, degrees / stats.chi2.ppf(0.95, degrees),
                                                         degrees / stats.chi2.ppf(0.05, degrees))]


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
            show(f"deviations {name} {folds.max() + 1} folds", *deviations(values, folds))


if __name__ == "__main__":
    main()
