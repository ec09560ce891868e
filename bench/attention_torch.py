#!/usr/bin/env python3
"""Times training steps of four blocks of linear attention or GATv2 in PyTorch and PyTorch Geometric on
one whole graph of TpuGraphs, for comparison with `tpudist train` (bench/README section 12).

A block is 4 heads of 32 channels, ReLU, around which goes a residual. Needs torch, torch_geometric and
numpy. Prints one line: nodes, median seconds of a step.
"""
import argparse
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import GATv2Conv

WIDTH, HEADS = 128, 4


class LinearAttention(nn.Module):
    """Between the nodes of each configuration, x [configurations, nodes, channels]."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x, edges):
        q, k, v = (layer(x).unflatten(2, (HEADS, -1)).transpose(1, 2)
                   for layer in (self.query, self.key, self.value))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        weights = q @ k.sum(2).unsqueeze(3)
        return (q @ (k.transpose(2, 3) @ v) / weights).transpose(1, 2).flatten(2)


class Gatv2(nn.Module):
    """All configurations as one graph without edges between them."""

    def __init__(self):
        super().__init__()
        self.conv = GATv2Conv(WIDTH, WIDTH // HEADS, HEADS)

    def forward(self, x, edges):
        return self.conv(x.flatten(0, 1), edges).view_as(x)


class Network(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.opcode, self.join = nn.Embedding(120, 12), nn.Linear(12 + 140 + 18, WIDTH)
        self.layers = nn.ModuleList(layer() for _ in range(4))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, features, opcodes, configs, edges):
        nodes = torch.cat([self.opcode(opcodes), features], 1)
        x = self.join(torch.cat([nodes.expand(len(configs), *nodes.shape), configs], 2)).relu()
        for layer in self.layers:
            x = x + layer(x, edges).relu()
        return self.head(x.mean(1))[:, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("npz")
    parser.add_argument("layer", choices=["linear_attention", "gatv2"])
    parser.add_argument("--configs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    archive, count = np.load(arguments.npz), arguments.configs
    raw = torch.from_numpy(archive["node_feat"].astype(np.float32))
    features = raw.sign() * raw.abs().log1p()
    opcodes = torch.from_numpy(archive["node_opcode"].astype(np.int64))
    one = torch.from_numpy(archive["edge_index"].astype(np.int64).T.copy())
    edges = (one[:, None] + len(raw) * torch.arange(count)[:, None]).flatten(1)
    values, times = archive["node_config_feat"], archive["config_runtime"].astype(np.float64)
    network = Network({"linear_attention": LinearAttention, "gatv2": Gatv2}[arguments.layer])
    optimizer = torch.optim.AdamW(network.parameters(), 1e-3)
    random = np.random.default_rng(1)
    seconds = []
    for _ in range(arguments.steps + 2):
        rows = np.sort(random.choice(len(times), count, replace=len(times) < count))
        configs = np.zeros((count, len(raw), 18), np.float32)
        configs[:, archive["node_config_ids"]] = values[rows]
        target = torch.from_numpy(times[rows])
        start = time.perf_counter()
        scores = network(features, opcodes, torch.from_numpy(configs), edges)
        slower = target[:, None] > target[None, :]
        loss = (F.relu(1 - (scores[:, None] - scores[None, :])) * slower).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    print(f"{len(raw)} nodes, {statistics.median(seconds[2:]):.4f} s a step")


if __name__ == "__main__":
    main()
