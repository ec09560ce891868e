"""Writes tests/models/losses/golden.json: losses and their gradients by PyTorch's autograd in double. Needs PyTorch.

    python tests/golden/losses.py > tests/models/losses/golden.json
"""
import itertools
import math

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def diff_mat(s, t, margin, scale):
    upper = torch.triu_indices(len(s), len(s), offset=1)
    d, y = s[None, :] - s[:, None], t[None, :] - t[:, None]
    d, y = d[upper[0], upper[1]], y[upper[0], upper[1]]
    return scale * F.margin_ranking_loss(d, torch.zeros_like(d), torch.sign(y), margin=margin)


TIE_KEY = 1  # of every evaluation in the test


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., SC 2011): four words."""
    a, b, c, d = counter
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = right >> 32 ^ b ^ key[0], right % 2**32, left >> 32 ^ d ^ key[1], left % 2**32
        key = (key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32
    return a, b, c, d


# Known answers of the authors' Random123.
assert philox((0, 0, 0, 0), (0, 0)) == (0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8)
assert philox((0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344), (0xa4093822, 0x299f31d0)) == (
    0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1)


def permutations(n, count, key=TIE_KEY):
    """The random permutations of core/random.hpp: Fisher-Yates from the end, with Lemire's numbers below i."""
    words = (word for block in itertools.count() for word in philox((block, 0, 0, 0), (key, 0)))

    def below(i):
        while True:
            product = (next(words) | next(words) << 32) * i
            if product % 2**64 >= 2**64 % i:
                return product >> 64

    for _ in range(count):
        order = list(range(n))
        for i in range(n, 1, -1):
            j = below(i)
            order[i - 1], order[j] = order[j], order[i - 1]
        yield order


def margin_ranking(s, t, margin, count, reduction):
    """PyTorch's, of scores and permuted ones; the value is without the margins that equal targets add."""
    def of_one(order):
        y = torch.sign(t - t[order])
        equal = (y == 0).to(s.dtype)
        equal = equal.mean() if reduction == "mean" else equal.sum()
        return F.margin_ranking_loss(s, s[order], y, margin=margin, reduction=reduction) - margin * equal

    total = sum(of_one(order) for order in permutations(len(s), count))
    return total / count if reduction == "mean" else total


def over_pairs(values, t, reduction):
    values = torch.where(t[:, None] > t[None, :], values, torch.zeros_like(values))
    return values.sum() if reduction == "sum" else values.mean()


def pairs_of(values, t, hardest=1, top=0, top_weight=1, count=0):
    """Sum of the hardest pairs over K * K times the share taken, of equal ones the first; `values` [slower, faster].
    `count`: pairs of so many random permutations instead, over K * count."""
    if top:
        fastest = torch.sort(t).values[min(top, len(t)) - 1]
        values = torch.where(t[None, :] <= fastest, top_weight * values, values)
    pairs, size = [(i, j) for i in range(len(t)) for j in range(i + 1, len(t))], len(t) ** 2
    if count:
        pairs = [pair for order in permutations(len(t), count) for pair in enumerate(order)]
        size = len(t) * count
    pairs = [(i, j) if t[i] > t[j] else (j, i) for i, j in pairs if t[i] != t[j]]
    kept = sorted(pairs, key=lambda pair: -values[pair].item())[:math.ceil(hardest * len(pairs))]
    return sum((values[pair] for pair in kept), 0 * values.sum()) / (size * len(kept) / max(len(pairs), 1) or 1)


def differences(s):
    return s[:, None] - s[None, :]


def softplus(x):
    return torch.logaddexp(torch.zeros_like(x), x)


def hinge(s, t, margin, reduction):
    return over_pairs((margin - differences(s)).clamp(min=0), t, reduction)


def logistic(s, t, sigma, reduction):
    return over_pairs(softplus(-sigma * differences(s)), t, reduction)


def mape(s, t, unit):
    return ((s - unit * t).abs() / (unit * t).abs().clamp(min=1.17e-6)).mean()


def mse(s, t, unit):
    return F.mse_loss(s, unit * t)


SLATES = {
    "plain": ([0.5, -1.25, 3.0, 0.75, -4.0], [3.0, 9.0, 1.0, 4.0, 2.0]),
    "ties": ([0.3, 0.3, -0.2, 1.1, 0.3, 0.0], [7.0, 7.0, 2.0, 7.0, 1.0, 2.0]),
    "equal": ([0.3, -0.1, 2.0], [5.0, 5.0, 5.0]),
    "large": ([800.0, -900.0, 1e5, 1e5, -3.0, 0.1], [3.0, 1.0, 2.0, 8.0, 5.0, 4.0]),
    # Run times of about a second in nanoseconds, and scores in seconds.
    "seconds": ([0.91, 0.9205, 0.9255, 0.915, 1.2], [910_900_000.0, 925_600_000.0, 911_000_000.0, 911_000_000.0, 0.0]),
}
LOSSES = [
    ("{diff_mat: {margin: 0.1}}", lambda s, t: diff_mat(s, t, 0.1, 1)),
    ("{diff_mat: {margin: 0.01, scale: inverse_margin}}", lambda s, t: diff_mat(s, t, 0.01, 100)),
    ("{diff_mat: {margin: 0.01, scale: inverse_margin}, mape: {unit: seconds}}",
     lambda s, t: diff_mat(s, t, 0.01, 100) + mape(s, t, 1e-9)),
    ("{pairwise_hinge: {}}", lambda s, t: hinge(s, t, 1, "mean")),
    ("{pairwise_hinge: {margin: 0.25, reduction: sum}}", lambda s, t: hinge(s, t, 0.25, "sum")),
    ("{pairwise_logistic: {}}", lambda s, t: logistic(s, t, 1, "mean")),
    ("{pairwise_logistic: {sigma: 0.1, reduction: sum}}", lambda s, t: logistic(s, t, 0.1, "sum")),
    ("{mape: {}}", lambda s, t: mape(s, t, 1)),
    ("{mape: {unit: seconds}}", lambda s, t: mape(s, t, 1e-9)),
    ("{mse: {}}", lambda s, t: mse(s, t, 1)),
    ("{mse: {unit: milliseconds, weight: 0.02}, pairwise_hinge: {weight: 3}}",
     lambda s, t: 0.02 * mse(s, t, 1e-6) + 3 * hinge(s, t, 1, "mean")),
    ("{pairwise_logistic: {hardest: 0.3}}",
     lambda s, t: pairs_of(softplus(-differences(s)), t, hardest=0.3)),
    ("{pairwise_logistic: {top: 2, top_weight: 5}}",
     lambda s, t: pairs_of(softplus(-differences(s)), t, top=2, top_weight=5)),
    ("{pairwise_hinge: {margin: 30, hardest: 0.5, top: 1, top_weight: 3}}",
     lambda s, t: pairs_of((30 - differences(s)).clamp(min=0), t, 0.5, 1, 3)),
    ("{pairwise_hinge: {permutations: 1}}", lambda s, t: margin_ranking(s, t, 1, 1, "mean")),
    ("{pairwise_hinge: {margin: 0.25, permutations: 7}}", lambda s, t: margin_ranking(s, t, 0.25, 7, "mean")),
    ("{pairwise_hinge: {margin: 0, permutations: 5}}", lambda s, t: margin_ranking(s, t, 0, 5, "mean")),
    ("{pairwise_hinge: {margin: 2, permutations: 3, reduction: sum}}",
     lambda s, t: margin_ranking(s, t, 2, 3, "sum")),
    ("{pairwise_hinge: {margin: 30, permutations: 3, hardest: 0.5, top: 1, top_weight: 3}}",
     lambda s, t: pairs_of((30 - differences(s)).clamp(min=0), t, 0.5, 1, 3, count=3)),
    ("{pairwise_logistic: {sigma: 2, permutations: 3}}",
     lambda s, t: pairs_of(softplus(-2 * differences(s)), t, count=3)),
]
# Slates of different length and run time, of which one has equal run times, and one is of a single configuration.
BATCH = [([0.5, -1.25, 3.0, 0.75], [3.0, 9.0, 1.5, 4.0]), ([0.3, 0.3, -0.2], [700.0, 700.0, 200.0]), ([0.1], [5.0]),
         ([1.0, -0.5], [0.125, 0.25])]
BATCH_LOSSES = [
    ("{weight: 1}", False, lambda s, t: hinge(s, t, 1, "mean")),
    ("{margin: 0.25, reduction: sum, weight: 2}", False, lambda s, t: 2 * hinge(s, t, 0.25, "sum")),
    ("{relative: true}", True, lambda s, t: hinge(s, t, 1, "mean")),
    ("{relative: true, weight: 0.5, margin: 3, hardest: 0.4, top: 2, top_weight: 5}", True,
     lambda s, t: 0.5 * pairs_of((3 - differences(s)).clamp(min=0), t, 0.4, 2, 5)),
    ("{relative: true, margin: 0.5, permutations: 4}", True, lambda s, t: margin_ranking(s, t, 0.5, 4, "mean")),
]


def numbers(values):
    return "[" + ", ".join(f"{v:.17g}" for v in values) + "]"


def value_and_gradient(loss, scores, targets):
    s = torch.tensor(scores, requires_grad=True)
    value = loss(s, targets)
    value.backward()
    return f"{value.item():.17g}, {numbers(s.grad.tolist())}"


def main():
    """Slates by name, [slate, loss, value, gradient], and losses of the joined slates of a batch."""
    slates = [f'  "{name}": [{numbers(scores)}, {numbers(targets)}]' for name, (scores, targets) in SLATES.items()]
    losses = [f'  ["{name}", "loss: {yaml}", {value_and_gradient(loss, scores, torch.tensor(targets))}]'
              for name, (scores, targets) in SLATES.items() for yaml, loss in LOSSES]
    batch = [f"[{numbers(scores)}, {numbers(targets)}]" for scores, targets in BATCH]
    scores, batch_losses = [score for slate, _ in BATCH for score in slate], []
    for yaml, relative, loss in BATCH_LOSSES:
        of_slates = [torch.tensor(targets) for _, targets in BATCH]
        targets = torch.cat([slate / slate.min() if relative else slate for slate in of_slates])
        batch_losses.append(f'  ["loss: {{batch_hinge: {yaml}}}", {value_and_gradient(loss, scores, targets)}]')
    print('{"slates": {\n' + ",\n".join(slates) + '},\n"losses": [\n' + ",\n".join(losses) + "],")
    print('"batch": [' + ", ".join(batch) + '],\n"batch_losses": [\n' + ",\n".join(batch_losses) + "]}")


if __name__ == "__main__":
    main()
