"""Numbers of tests/train/optimizer/schedule_test.cpp: torch.optim's linear warm-up followed by its cosine. Needs PyTorch."""
import torch

STEPS, WARM, FLOOR = 40, 6, 0.05
optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))], lr=1.0)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1 / WARM, total_iters=WARM - 1)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS - WARM, eta_min=FLOOR)
schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[WARM])
factors = []
for _ in range(STEPS):
    factors.append(optimizer.param_groups[0]["lr"])
    optimizer.step()
    schedule.step()
print("{" + ", ".join(f"{f:.15g}" for f in factors) + "}")
