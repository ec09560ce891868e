#!/usr/bin/env python3
"""A plain training loop of PyTorch Geometric, fed from the shards of tpudist.

    examples/pyg_training.py tpudist-data layout:xla:random --steps 200

The network sees the slates that `tpudist train` would see: the same rows in the same order, of the same graphs. Needs
torch, torch_geometric and the package tpudist (docs/python.md).
"""
import argparse

import torch
import torch_geometric

import tpudist as td

WIDTH = 32


class Network(torch.nn.Module):
    """Two SAGE layers over the nodes, for all configurations of a slate at once; the sum over nodes is the score."""

    def __init__(self):
        super().__init__()
        self.opcode = torch.nn.Embedding(120, 16)
        self.input = torch.nn.Linear(16 + 140 + 18, WIDTH)
        self.convs = torch.nn.ModuleList(torch_geometric.nn.SAGEConv(WIDTH, WIDTH, aggr="mean") for _ in range(2))
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, data):
        nodes, configs = data.x.shape[0], data.config.shape[1]
        config = data.x.new_zeros(configs, nodes, 18)
        config[:, data.config_index] = data.config.transpose(0, 1)
        fixed = torch.cat([self.opcode(data.opcode), data.x.sign() * data.x.abs().log1p()], 1)
        state = self.input(torch.cat([fixed.expand(configs, -1, -1), config], 2)).relu()  # [K, n, WIDTH]
        for conv in self.convs:
            state = state + conv(state, data.edge_index).relu()
        return self.head(state).squeeze(2).mean(1)  # [K], larger is slower


def loss_of(network, data):
    return td.losses.list_mle(network(data), data.y[0])


def kendall_tau(scores, targets):
    """tau-b over all pairs."""
    a, b = ((v[:, None] - v[None, :]).sign() for v in (scores.double(), targets.double()))
    return float((a * b).sum() / (a.abs().sum() * b.abs().sum()).sqrt())


@torch.no_grad()
def score(network, graphs, rows=200):
    """Mean tau over the graphs, on up to `rows` configurations of each."""
    taus = []
    for graph in graphs.values():
        parts = [graph.to_pyg(slice(first, first + 50)) for first in range(0, min(rows, graph.configs), 50)]
        taus.append(kendall_tau(torch.cat([network(part) for part in parts]), torch.cat([part.y[0] for part in parts])))
    return sum(taus) / len(taus)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards", help="folder of the shards")
    parser.add_argument("collection", help="such as layout:xla:random")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--workers", type=int, default=0, help="processes that read")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    slates = td.SlateDataset(
        options.shards, options.collection, configs=10, batch=4, seed=options.seed, steps=options.steps
    )
    valid = td.open(options.shards, options.collection, "valid")
    network = Network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    for step, batch in enumerate(slates.loader(options.workers), 1):
        loss = sum(slate.weight * loss_of(network, slate.to_pyg()) for slate in batch)
        loss = loss / sum(slate.weight for slate in batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 50 == 0 or step == options.steps:
            print(f"step {step}: loss {loss.item():.4f}, tau on the validation split {score(network, valid):.4f}")


if __name__ == "__main__":
    main()
