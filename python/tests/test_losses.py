"""Losses against their definition."""

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from tpudist import losses  # noqa: E402


def test_list_mle_is_the_likelihood_of_the_order():
    """Plackett and Luce draw the slowest first, each time in proportion to exp(score)."""
    scores = torch.tensor([0.5, -1.25, 3.0, 0.75], dtype=torch.float64)
    total = 0.0
    for runtimes in itertools.permutations([1.0, 2.0, 3.0, 4.0]):
        left, probability = scores.exp().tolist(), 1.0
        for place in sorted(range(4), key=lambda i: -runtimes[i]):
            probability *= left[place] / sum(left)
            left[place] = 0.0
        loss = losses.list_mle(scores, torch.tensor(runtimes, dtype=torch.float64))
        assert float(loss) == pytest.approx(-math.log(probability), abs=1e-8)
        total += math.exp(-float(loss))
    assert total == pytest.approx(1)


def test_list_mle_clips_the_norm_and_has_its_gradient():
    scores = torch.tensor([30.0, -40.0, 3.0], dtype=torch.float64, requires_grad=True)
    runtimes = torch.tensor([3, 9, 1])
    clipped = losses.list_mle(scores, runtimes, clip_norm=5)
    norm = float(scores.detach().norm())
    assert float(clipped) == pytest.approx(float(losses.list_mle(scores * 5 / norm, runtimes)))
    assert torch.autograd.gradcheck(lambda s: losses.list_mle(s, runtimes, clip_norm=5, temperature=2), scores)
