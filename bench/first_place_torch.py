#!/usr/bin/env python3
"""Times training steps of the 1st place's layout network ("Fast or Slow?") in PyTorch and PyTorch
Geometric on one graph of TpuGraphs, for comparison with `tpudist train
experiments/systems/first_place_layout.yaml` on the same graph.

Needs torch, torch_geometric and numpy. Prints one line: nodes of the reduced graph, median seconds of
a step.
"""
import argparse
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import SAGEConv


class ChannelAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.squeeze, self.excite = nn.Linear(width, width // 8), nn.Linear(width // 8, width)

    def forward(self, x):
        return x * self.excite(self.squeeze(x).relu()).sigmoid()


class ConfigAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return torch.cat([x, x * (x / self.temperature).softmax(0)], 2)


def instance_norm(x):
    """Over the nodes of each configuration, x [configurations, nodes, channels]."""
    return F.instance_norm(x.transpose(1, 2)).transpose(1, 2)


class FirstPlace(nn.Module):
    def __init__(self, cross, width=256):
        super().__init__()
        inner = width // 2 if cross else width
        self.opcode, self.code = nn.Embedding(120, 16), nn.Embedding(8, 4)
        columns = 16 + 134 + 4 * (6 + 18)
        self.linears = nn.ModuleList([nn.Linear(columns, inner), nn.Linear(width, inner)])
        self.sages = nn.ModuleList([SAGEConv(width, inner), SAGEConv(width, inner)])
        self.channels = nn.ModuleList([ChannelAttention(inner) for _ in range(4)])
        self.crosses = nn.ModuleList([ConfigAttention() if cross else nn.Identity()
                                      for _ in range(4)])
        self.head = nn.Linear(width, 1)

    def forward(self, features, codes, opcodes, configs, edges):
        nodes = torch.cat([self.opcode(opcodes), features, self.code(codes).flatten(-2)], 1)
        x = torch.cat([nodes.expand(len(configs), *nodes.shape), self.code(configs).flatten(-2)], 2)
        for i, linear in enumerate(self.linears):
            x = F.gelu(self.crosses[i](self.channels[i](instance_norm(linear(x)))))
        for i, sage in enumerate(self.sages):
            y = self.crosses[i + 2](self.channels[i + 2](sage(instance_norm(x), edges)))
            x = F.dropout(F.gelu(y + x), 0.2)
        return self.head(x.mean(1))[:, 0]


def reduced(archive):
    """Configurable nodes and their neighbours, and the edges that touch a configurable node."""
    edges, config_nodes = archive["edge_index"], archive["node_config_ids"]
    configurable = np.zeros(len(archive["node_opcode"]), bool)
    configurable[config_nodes] = True
    edges = edges[configurable[edges].any(1)]
    kept = np.unique(np.concatenate([edges.ravel(), config_nodes]))
    place = np.zeros(len(configurable), np.int64)
    place[kept] = np.arange(len(kept))
    return kept, place[edges], place[config_nodes]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("npz")
    parser.add_argument("--configs", type=int, default=64)
    parser.add_argument("--cross", action="store_true", help="with cross-configuration attention")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    archive = np.load(arguments.npz)
    kept, edges, config_nodes = reduced(archive)
    raw = archive["node_feat"][kept].astype(np.float32)
    spread = raw[:, :134].std(0)
    features = torch.from_numpy((raw[:, :134] - raw[:, :134].mean(0)) / np.where(spread > 0, spread, 1))
    codes = torch.from_numpy(raw[:, 134:].astype(np.int64) + 2)
    opcodes = torch.from_numpy(archive["node_opcode"][kept].astype(np.int64))
    edges = torch.from_numpy(edges.T.copy())
    values, times = archive["node_config_feat"], archive["config_runtime"].astype(np.float64)
    network = FirstPlace(arguments.cross)
    optimizer = torch.optim.AdamW(network.parameters(), 1e-3, weight_decay=1e-5)
    random = np.random.default_rng(1)
    seconds = []
    for _ in range(arguments.steps + 3):
        rows = np.sort(random.choice(len(times), arguments.configs, replace=len(times) < arguments.configs))
        configs = np.zeros((arguments.configs, len(kept), 18), np.int64)
        configs[:, config_nodes] = values[rows].astype(np.int64) + 2
        target = torch.from_numpy(times[rows])
        start = time.perf_counter()
        scores = network(features, codes, opcodes, torch.from_numpy(configs), edges)
        slower = target[:, None] > target[None, :]
        loss = (F.relu(1 - (scores[:, None] - scores[None, :])) * slower).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    print(f"{len(kept)} nodes, {statistics.median(seconds[3:]):.4f} s a step")


if __name__ == "__main__":
    main()
