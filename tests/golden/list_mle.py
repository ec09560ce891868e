"""Numbers of tests/models/losses/losses_test.cpp: allRank's ListMLE on clipped predictions, by autograd in double. Needs PyTorch."""
import torch

torch.set_default_dtype(torch.float64)


def loss(scores, targets, clip_norm, temperature):
    q = scores / temperature
    p = q / torch.clamp(q.norm() / clip_norm, min=1)
    p = p[targets.argsort(descending=True)]
    p = p - p.max()
    tails = p.exp().flip(0).cumsum(0).flip(0)
    return (torch.log(tails + 1e-10) - p).sum()


for clip_norm, temperature in ((1e9, 1.0), (2.0, 1.0), (1e9, 8.0), (30.0, 0.25), (30.0, 8.0)):
    s = torch.tensor([0.5, -1.25, 3.0, 0.75, -40.0], requires_grad=True)
    value = loss(s, torch.tensor([3.0, 9.0, 1.0, 4.0, 2.0]), clip_norm, temperature)
    value.backward()
    print(clip_norm, temperature, f"{value.item():.13g}", [float(f"{g:.13g}") for g in s.grad.tolist()])
