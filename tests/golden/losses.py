"""Writes tests/models/losses/golden_losses.hpp: losses and their gradients by PyTorch's autograd in double. Needs PyTorch.

    python tests/golden/losses.py > tests/models/losses/golden_losses.hpp
"""
import math

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def diff_mat(s, t, margin, scale):
    upper = torch.triu_indices(len(s), len(s), offset=1)
    d, y = s[None, :] - s[:, None], t[None, :] - t[:, None]
    d, y = d[upper[0], upper[1]], y[upper[0], upper[1]]
    return scale * F.margin_ranking_loss(d, torch.zeros_like(d), torch.sign(y), margin=margin)


def over_pairs(values, t, reduction):
    values = torch.where(t[:, None] > t[None, :], values, torch.zeros_like(values))
    return values.sum() if reduction == "sum" else values.mean()


def pairs_of(values, t, hardest=1, top=0, top_weight=1):
    """Sum of the hardest pairs over K * K times the share taken, of equal ones the first; `values` [slower, faster]."""
    if top:
        fastest = torch.sort(t).values[min(top, len(t)) - 1]
        values = torch.where(t[None, :] <= fastest, top_weight * values, values)
    pairs = [(i, j) if t[i] > t[j] else (j, i) for i in range(len(t)) for j in range(i + 1, len(t)) if t[i] != t[j]]
    kept = sorted(pairs, key=lambda pair: -values[pair].item())[:math.ceil(hardest * len(pairs))]
    return sum((values[pair] for pair in kept), 0 * values.sum()) / (len(t) ** 2 * len(kept) / max(len(pairs), 1) or 1)


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


def log_huber(s, t, delta, unit):
    return F.huber_loss(s, (unit * t).clamp(min=1e-30).log(), delta=delta)


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
    ("{log_huber: {}}", lambda s, t: log_huber(s, t, 1, 1)),
    ("{log_huber: {delta: 0.5, unit: seconds}}", lambda s, t: log_huber(s, t, 0.5, 1e-9)),
    ("{pairwise_logistic: {hardest: 0.3}}",
     lambda s, t: pairs_of(softplus(-differences(s)), t, hardest=0.3)),
    ("{pairwise_logistic: {top: 2, top_weight: 5}}",
     lambda s, t: pairs_of(softplus(-differences(s)), t, top=2, top_weight=5)),
    ("{pairwise_hinge: {margin: 30, hardest: 0.5, top: 1, top_weight: 3}}",
     lambda s, t: pairs_of((30 - differences(s)).clamp(min=0), t, 0.5, 1, 3)),
]


def numbers(values):
    return "{" + ", ".join(f"{v:.17g}" for v in values) + "}"


def main():
    print("#pragma once\n\n// Made by tests/golden/losses.py.\n\n#include <vector>\n\nnamespace tpudist {\n")
    print("struct GoldenLoss {\n  const char* slate;\n  const char* yaml;\n  std::vector<double> scores, targets;")
    print("  double loss;\n  std::vector<double> gradient;\n};\n")
    print("// clang-format off\ninline const std::vector<GoldenLoss> kGoldenLosses = {")
    for slate, (scores, targets) in SLATES.items():
        for yaml, loss in LOSSES:
            s = torch.tensor(scores, requires_grad=True)
            value = loss(s, torch.tensor(targets))
            value.backward()
            print(f'    {{"{slate}", "loss: {yaml}",\n     {numbers(scores)}, {numbers(targets)},\n'
                  f"     {value.item():.17g}, {numbers(s.grad.tolist())}}},")
    print("};\n// clang-format on\n\n}  // namespace tpudist")


if __name__ == "__main__":
    main()
