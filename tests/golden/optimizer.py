"""Numbers of tests/train/optimizer/optimizer_test.cpp: torch.optim on two members with three tensors each.

Needs PyTorch. Values are small binary fractions, so that both programs start from the same bits.
"""
import torch

SIZES = [6, 3, 3]  # weight, bias, output layer
FACTORS = [1.0, 0.5, 0.25, 2.0]  # of the rate, step by step
SITS_OUT = (1, 2)  # (member, step)


def fill(size, first, scale, salt):
    return torch.tensor([((first + i) * 11 + salt) % 29 - 14 for i in range(size)]) * scale


def tensors(member, step=None):
    """Parameters, or the gradients of a step."""
    salt, scale = (member * 3, 1 / 32) if step is None else (member * 5 + step * 7 + 1, 1 / 8)
    return [fill(size, sum(SIZES[:i]), scale, salt) for i, size in enumerate(SIZES)]


def run(title, optimizer, lr, decay, output_decay, clip, of_tensors=False, clips_decay=False, **options):
    """`clips_decay`: the decay is the gradient of a term of the loss, decay / 2 times the squared parameters."""
    print(title)
    for member in range(2):
        parameters = [torch.nn.Parameter(t) for t in tensors(member)]
        adam = optimizer(
            [{"params": parameters[:2], "weight_decay": 0 if clips_decay else decay},
             {"params": parameters[2:], "weight_decay": 0 if clips_decay else output_decay}], lr=lr, **options)
        for step, factor in enumerate(FACTORS):
            if (member, step) == SITS_OUT:
                continue
            for group in adam.param_groups:
                group["lr"] = lr * factor
            for parameter, gradient in zip(parameters, tensors(member, step)):
                parameter.grad = gradient
            if clips_decay:  # adds its gradients to those
                squares = [(p**2).sum() for p in parameters]
                (decay / 2 * (squares[0] + squares[1]) + output_decay / 2 * squares[2]).backward()
            if of_tensors:
                for parameter in parameters:
                    torch.nn.utils.clip_grad_norm_([parameter], clip)
            elif clip:
                torch.nn.utils.clip_grad_norm_(parameters, clip)
            adam.step()
        print("    {" + ", ".join(f"{v:.9g}f" for p in parameters for v in p.tolist()) + "},")


run("adamw, clip", torch.optim.AdamW, 1e-2, 0.01, 0.5, 1.5, eps=1e-6)
run("adam, L2", torch.optim.Adam, 1e-1, 0.25, 0.5, None, betas=(0.8, 0.9))
run("adam, L2, clip of tensors", torch.optim.Adam, 1e-1, 0.25, 0.5, 1.5, of_tensors=True, eps=1e-3)
run("adam, clip of tensors with L2", torch.optim.Adam, 1e-1, 0.25, 0.5, 1.5, of_tensors=True, clips_decay=True, eps=1e-3)


def run_groups():
    """One decay for each group of parameters, two steps."""
    print("groups")
    parameters = [torch.nn.Parameter(torch.tensor([0.5 + g, -0.25])) for g in range(5)]
    adam = torch.optim.AdamW([{"params": [p], "weight_decay": d} for p, d in zip(parameters, (0.1, 0, 0.2, 0.3, 0.4))], lr=1e-2)
    for _ in range(2):
        for parameter in parameters:
            parameter.grad = torch.tensor([0.125, -2.0])
        adam.step()
    print("    {" + ", ".join(f"{v:.9g}f" for p in parameters for v in p.tolist()) + "},")


run_groups()
