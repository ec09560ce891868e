"""Models that look at no edges, for scripts/systems_table.py: of what each configurable node
chose, and of the numbers of tile configurations."""
import pathlib

import numpy as np
from scipy.stats import kendalltau
from sklearn.ensemble import HistGradientBoostingRegressor

ELEMENTS = 28  # the column of node_feat with the product of a shape
STRENGTHS = 10.0 ** np.arange(-4, 5)


class Graph:
    """The configurations of one layout NPZ file, and how long they took."""

    def __init__(self, path):
        with np.load(path) as npz:
            nodes = npz["node_config_ids"]
            features, opcodes = npz["node_config_feat"], npz["node_opcode"][nodes]
            self.runtime = npz["config_runtime"].astype(np.float64)
            elements = npz["node_feat"][nodes, ELEMENTS].astype(np.float64)
        self.sizes = elements / elements.mean()  # [nodes], of the outputs
        # [configurations, nodes]: the state of each node as bytes that hold opcode and content.
        content = np.concatenate([np.broadcast_to(opcodes[None, :, None], (*features.shape[:2], 1)),
                                  features + 1], axis=2).astype(np.uint8)
        self.states = np.ascontiguousarray(content).view(f"V{content.shape[2]}")[..., 0]


class Kernel:
    """The configurations of one tile NPZ file, and how long they took."""

    def __init__(self, path):
        with np.load(path) as npz:
            self.runtime = npz["config_runtime"] / npz["config_runtime_normalizers"]
            features = npz["config_feat"].astype(np.float64)
            kernel = np.log1p(np.abs(npz["node_feat"].astype(np.float64)).sum(axis=0))
        self.configs = np.sign(features) * np.log1p(np.abs(features))  # [configurations, 24]
        self.inputs = np.concatenate(  # and what is the same for all of them, for trees
            [self.configs, np.broadcast_to(kernel, (len(features), len(kernel)))], axis=1)


def read_split(folder, kind=Graph):
    return [kind(path) for path in sorted(pathlib.Path(folder).glob("*.npz"))]


def ranks(graph):
    """Ranks of the run times from 0 to below 1, centred."""
    rank = graph.runtime.argsort().argsort() / len(graph.runtime)
    return rank - rank.mean()


def tau(prediction, runtime):
    """Kendall's tau-b of a full ranking: equal predictions stand in random order. Left equal, they
    are no pairs that a prediction can get wrong, and coarse models that rank AlexNet with 0.68 score
    0.82."""
    shuffled = np.random.default_rng(0).random(len(prediction))
    return kendalltau(np.lexsort((shuffled, prediction)).argsort(), runtime)[0]


def counts(graph, numbers, sized):
    """[configurations, states]: how often each state of `numbers` occurs, centred; `sized`: beside it
    the same sum weighted by the sizes of the nodes' outputs."""
    result = np.zeros((2 if sized else 1, len(graph.states), len(numbers)))
    for column, size in zip(graph.states.T, graph.sizes):
        values, inverse = np.unique(column, return_inverse=True)
        known = np.array([numbers.get(value.tobytes(), -1) for value in values])[inverse.ravel()]
        rows = np.flatnonzero(known >= 0)
        for plane, weight in zip(result, (1, size)):
            plane[rows, known[rows]] += weight
    result = np.concatenate(result, axis=1)
    return result - result.mean(axis=0)


def all_counts(train, valid, sized):
    """counts() of the graphs of both splits, of the states of the training graphs."""
    distinct = sorted({value.tobytes() for graph in train for value in np.unique(graph.states)})
    numbers = {value: i for i, value in enumerate(distinct)}
    return [[counts(graph, numbers, sized) for graph in graphs] for graphs in (train, valid)]


def ridge(train, inputs, valid_inputs):
    """Predictions for each matrix of `valid_inputs` of one ridge regression for all graphs; targets are
    ranks. Inputs are centred per graph. Every training graph is predicted by the others to choose the
    strength."""
    squares = [x.T @ x / len(x) for x in inputs]
    products = [x.T @ ranks(graph) / len(x) for graph, x in zip(train, inputs)]

    def fit(strength, left_out=None):
        kept = [i for i in range(len(train)) if i != left_out]
        square = sum(squares[i] for i in kept) + strength * np.eye(inputs[0].shape[1])
        return np.linalg.solve(square, sum(products[i] for i in kept))

    def left_out_tau(strength):
        return np.mean([tau(inputs[i] @ fit(strength, i), train[i].runtime)
                        for i in range(len(train))])

    weights = fit(max(STRENGTHS, key=left_out_tau))
    return [x @ weights for x in valid_inputs]


def trees(train, inputs, valid_inputs):
    """As ridge(), of boosted trees of depth 6."""
    model = HistGradientBoostingRegressor(max_depth=6, max_iter=300, early_stopping=False, random_state=0)
    model.fit(np.concatenate(inputs), np.concatenate([ranks(graph) for graph in train]))
    return [model.predict(x) for x in valid_inputs]


def codes(train, valid):
    """The states of one graph as small numbers, node by node: [runs, nodes] of both splits."""
    both = np.concatenate([train.states, valid.states])
    numbers = np.stack([np.unique(column, return_inverse=True)[1].ravel() for column in both.T], 1)
    return numbers[:len(train.states)], numbers[len(train.states):]


def ridge_on_one_hot(train, valid):
    """Predictions for `valid` of a ridge regression of log run time on one-hot states of one graph.
    Every tenth stretch of the training runs chooses the strength."""
    train_codes, valid_codes = codes(train, valid)
    sizes = np.maximum(train_codes.max(axis=0), valid_codes.max(axis=0)) + 1
    hot = [np.concatenate([np.eye(n)[column] for n, column in zip(sizes, part.T)], 1)
           for part in (train_codes, valid_codes)]
    target = np.log(train.runtime)
    held = np.arange(len(target)) * 50 // len(target) % 10 == 9

    def predict(strength, rows, inputs):
        x, y = hot[0][rows], target[rows]
        mean = x.mean(axis=0)
        square = (x - mean).T @ (x - mean) + strength * np.eye(x.shape[1])
        return (inputs - mean) @ np.linalg.solve(square, (x - mean).T @ (y - y.mean()))

    best = max(STRENGTHS, key=lambda s: tau(predict(s, ~held, hot[0][held]), train.runtime[held]))
    return predict(best, np.ones_like(held), hot[1])


def trees_on_codes(train, valid, depth):
    """Predictions for `valid` of boosted trees of log run time on the numbers of the states of one
    graph."""
    train_codes, valid_codes = codes(train, valid)
    model = HistGradientBoostingRegressor(
        max_depth=depth, max_iter=2000 if depth == 1 else 1000,
        learning_rate=0.1 if depth < 6 else 0.05, early_stopping=False,
        categorical_features=list(range(train_codes.shape[1])))
    model.fit(train_codes, np.log(train.runtime))
    return model.predict(valid_codes)
