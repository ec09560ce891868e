#!/usr/bin/env python3
"""A network in PyTorch Geometric, fed by tpudist.SlateDataset, against `tpudist train` with the same network.

    tpudist synth npz --preset demo && tpudist convert npz shards
    PYTHONPATH=build/release/python bench/python_same_network.py shards --steps 200

experiments/demo.yaml without folds: five members of one run, which differ by their initial weights, and five trainings
of the same network (pyg_network.py, maxima_64) on the same slates in the same order. Prints the mean Kendall tau on the
whole validation split, and the 95 % interval of the difference (Welch's, with the fewest degrees of freedom). Needs torch and torch_geometric.
"""
import argparse
import json
import math
import pathlib
import statistics
import tempfile

import torch
from pyg_network import Network, kendall_tau_b, list_mle

import tpudist as td

SCALE = 0.03  # readout.scale of the demo; pyg_network.py has the 2nd place's 1e-3


def scores(network, data):
    """[K], of a slate as Slate.to_pyg makes it: the configurations side by side, not as copies of the graph."""
    nodes, configs = data.x.shape[0], data.config.shape[1]
    config = data.x.new_zeros(configs, nodes, 18)
    config[:, data.config_index] = data.config.transpose(0, 1)
    fixed = torch.cat([network.opcode(data.opcode), network.node(data.x.sign() * data.x.abs().log1p())], 1)
    state = network.join(torch.cat([fixed.expand(configs, -1, -1), config], 2)).relu()
    for conv in network.convs:
        state = conv(state, data.edge_index).relu()
    return SCALE * network.head(state).sum((1, 2))


def train(slates, steps, rate, seed):
    torch.manual_seed(seed)
    network = Network("maxima_64")
    optimizer = network.optimizer()
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [int(steps * 0.6), int(steps * 0.8)], 0.316228)
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] = rate
    schedule.base_lrs = [rate] * len(optimizer.param_groups)
    for step in range(steps):
        batch = slates.step(step)
        loss = sum(
            slate.weight * list_mle(scores(network, slate.to_pyg()), torch.from_numpy(slate.targets)) for slate in batch
        ) / sum(slate.weight for slate in batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 100)
        optimizer.step()
        schedule.step()
    return network


@torch.no_grad()
def tau(network, graphs):
    found = []
    for graph in graphs.values():
        parts = [graph.to_pyg(slice(first, first + 64)) for first in range(0, graph.configs, 64)]
        own = torch.cat([scores(network, part) for part in parts])
        found.append(kendall_tau_b(own.double().numpy(), graph.targets))
    return statistics.mean(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, choices=range(2, 6), default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)

    experiment = td.Experiment.load(
        pathlib.Path(__file__).parents[1] / "experiments/demo.yaml",
        **{
            "data.shards": str(options.shards.resolve()), "train.steps": options.steps, "train.evaluate_every": 0,
            "predictions.rows": "none", "ensemble": {"members": options.seeds, "vary": ["init"]},
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        run = td.train(experiment, run_dir=pathlib.Path(folder) / "run", quiet=True)
        evaluation = [line for line in run.lines() if line["kind"] == "evaluation"][-1]
    ours = evaluation["members"]
    print("tpudist", [round(score, 4) for score in ours], flush=True)

    slates = td.SlateDataset.of(experiment, steps=options.steps)
    valid = td.open(options.shards, experiment.config["data"]["collection"], "valid")
    theirs = []
    for seed in range(options.seeds):
        theirs.append(tau(train(slates, options.steps, experiment.config["optimizer"]["lr"], seed), valid))
        print("PyTorch Geometric, seed", seed, round(theirs[-1], 4), flush=True)

    difference = statistics.mean(ours) - statistics.mean(theirs)
    error = math.sqrt(statistics.variance(ours) / len(ours) + statistics.variance(theirs) / len(theirs))
    t = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}[options.seeds]  # Welch's degrees of freedom are at least seeds - 1
    print(
        f"tpudist {statistics.mean(ours):.4f}, PyTorch Geometric {statistics.mean(theirs):.4f}, difference "
        f"{difference:+.4f}, 95 % interval {difference - t * error:+.4f} to {difference + t * error:+.4f}"
    )
    print(json.dumps({"tpudist": ours, "pyg": theirs}))


if __name__ == "__main__":
    main()
