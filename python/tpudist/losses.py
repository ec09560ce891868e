"""Losses of a slate on torch tensors, as under `loss` in an experiment (docs/configuration.md)."""

from __future__ import annotations

import math
from typing import Any

from .optional import load

__all__ = ["list_mle"]


def list_mle(scores: Any, runtimes: Any, clip_norm: float = math.inf, temperature: float = 1.0) -> Any:
    """ListMLE: the negative log-likelihood of the order by run time, the slowest first, under Plackett and Luce.

    scores, runtimes: [K] tensors; a larger score means slower. The scores are divided by `temperature`, and scaled down
    to norm `clip_norm` if their norm is larger. Equal run times keep their order (`tpudist train` draws it). Returns a
    scalar with gradient.
    """
    torch = load("torch", "torch")
    values = scores / temperature
    values = values / torch.clamp(values.norm() / clip_norm, min=1)
    ordered = values[torch.argsort(runtimes, descending=True, stable=True)]
    ordered = ordered - ordered.max()
    tails = ordered.exp().flip(0).cumsum(0).flip(0)
    return ((tails + 1e-10).log() - ordered).sum()
