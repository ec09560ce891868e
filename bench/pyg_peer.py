#!/usr/bin/env python3
"""A training step on several graphs, or scoring of one, in PyTorch Geometric.

    python3 -m venv peer && peer/bin/pip install torch==2.11.0 torch_geometric numpy
    peer/bin/python bench/pyg_peer.py train graphs/*.npz --configs 4 --slates 10 [--compile]

The counterpart of tpudist's steps: the NPZ files are layout graphs in the arrays of TpuGraphs. A step
draws graphs, each once before any comes again, and configurations of each, builds one batch of all
slates, runs the network forward and backward, and updates. --compile: the network is compiled by
torch.compile(dynamic=True), before the first measured step. Prints one line of JSON.
"""
import argparse
import json
import time

import numpy as np
import torch
from pyg_network import PRESETS, Graph, Network, kendall_tau_b, list_mle, scores_of


class Training:
    def __init__(self, graphs, network, arguments):
        self.graphs, self.network = graphs, network
        self.slates, self.configs = arguments.slates, arguments.configs
        self.distinct = [graph.distinct() for graph in graphs]
        least = min(len(rows) for rows, _ in self.distinct)
        if self.configs > least:
            raise SystemExit(f"--configs {self.configs}: a graph has {least} distinct ones")
        self.optimizer = network.optimizer()
        if arguments.compile:
            self.network = torch.compile(network, dynamic=True)
        self.left = []  # graphs of the epoch

    def step(self):
        copies, targets = [], []
        for _ in range(self.slates):
            self.left = self.left or torch.randperm(len(self.graphs)).tolist()
            graph = self.left.pop()
            rows, times = self.distinct[graph]
            draw = torch.randperm(len(rows))[:self.configs]
            copies += self.graphs[graph].copies(rows[draw])
            targets.append(times[draw])
        scores = scores_of(self.network, copies).view(self.slates, self.configs)
        loss = sum(map(list_mle, scores, targets)) / self.slates
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 100)
        self.optimizer.step()
        return loss.item()


@torch.no_grad()
def score_runs(graph, network, block, runs):
    """Scores of these runs of the graph, [runs]."""
    return torch.cat([scores_of(network, graph.copies(rows)) for rows in runs.split(block)])


def score(graph, network, block, limit=None):
    """Scores of the graph's first runs, [runs]."""
    runs = torch.arange(min(limit or len(graph.configs), len(graph.configs)))
    return score_runs(graph, network, block, runs)


def tau_of(graph, network, arguments):
    """Kendall tau over all runs of the graph; where evenly spread runs (--probe) lie more than 0.05
    below the target, over those alone: scoring all takes as long as many steps."""
    def tau(runs):
        scores = score_runs(graph, network, arguments.block, runs).cpu().numpy()
        return kendall_tau_b(scores, graph.targets[runs].numpy())

    runs = torch.arange(len(graph.configs))
    if arguments.probe:
        probed = tau(runs[::max(1, len(runs) // arguments.probe)])
        if probed < arguments.target - 0.05:
            return probed
    return tau(runs)


def synchronise(arguments):
    if arguments.device != "cpu":
        torch.cuda.synchronize(arguments.device)


def timed(run, arguments, line):
    """Measures calls of `run` after the warm-up; returns what the first one gave."""
    seconds, first = [], None
    for i in range(arguments.warm_up + arguments.steps):
        if sum(seconds) >= arguments.seconds:
            break
        begin = time.monotonic()
        result = run()
        synchronise(arguments)
        taken = time.monotonic() - begin
        first = result if i == 0 else first
        if i >= arguments.warm_up:
            seconds.append(taken)
    line.update(steps=len(seconds), seconds_median=float(np.median(seconds)),
                seconds_min=min(seconds), seconds_max=max(seconds))
    return first


def train(graphs, network, arguments, line):
    training = Training(graphs, network, arguments)
    line["loss_first"] = timed(training.step, arguments, line)


def infer(graphs, network, arguments, line):
    scores = timed(lambda: score(graphs[0], network, arguments.block, arguments.limit), arguments, line)
    line.update(block=arguments.block, runs=len(scores),
                runs_per_second=len(scores) / line["seconds_median"])


def train_to_tau(graphs, network, arguments, line):
    """Trains until the valid graph is ranked well; the time of evaluations does not count."""
    training = Training(graphs, network, arguments)
    valid = Graph(arguments.valid, arguments.device)
    milestones = [round(arguments.steps * share) for share in (0.6, 0.7, 0.8, 0.9)]
    schedule = torch.optim.lr_scheduler.MultiStepLR(training.optimizer, milestones, 0.316228)
    line.update(tau=[], reached=False)
    total = 0.0
    for step in range(1, arguments.steps + 1):
        begin = time.monotonic()
        training.step()
        schedule.step()
        synchronise(arguments)
        total += time.monotonic() - begin
        if step % arguments.evaluate_every == 0:
            tau = tau_of(valid, network, arguments)
            line["tau"].append([step, total, tau])
            line["reached"] = bool(tau >= arguments.target)
        if line["reached"] or total >= arguments.seconds:
            break
    line.update(steps=step, total_seconds=total, seconds_median=total / step)


def peak_rss_mb():
    # Not getrusage: its number survives exec, so that it may be the peak of whoever started this.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1.024e-3


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["train", "infer", "tau"])
    parser.add_argument("npz", nargs="+", help="infer: one")
    parser.add_argument("--model", choices=list(PRESETS), default="latenciaga_xla")
    parser.add_argument("--configs", type=int, default=10, help="configurations of a slate")
    parser.add_argument("--slates", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--compile", action="store_true", help="train, tau: by torch.compile")
    parser.add_argument("--steps", type=int, default=20, help="most measured steps or passes")
    parser.add_argument("--seconds", type=float, default=1e9,
                        help="no step starts after so many measured seconds")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before that are not measured")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--block", type=int, default=16, help="infer, tau: graphs of a batch")
    parser.add_argument("--limit", type=int, help="infer: only the first runs of the graph")
    parser.add_argument("--valid", help="tau: the graph to rank")
    parser.add_argument("--evaluate-every", type=int, default=20, help="tau: steps")
    parser.add_argument("--probe", type=int, default=0,
                        help="tau: runs that are scored first; all only where these come near")
    parser.add_argument("--target", type=float, default=0.74, help="tau: stop at this Kendall tau")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    graphs = [Graph(npz, arguments.device) for npz in arguments.npz]
    network = Network(arguments.model).to(arguments.device)
    nodes = sum(len(graph.opcodes) for graph in graphs) / len(graphs)
    line = {"mode": arguments.mode, "graphs": len(graphs), "nodes": nodes, "compiled": arguments.compile, "model": arguments.model,
            "configs": arguments.configs, "slates": arguments.slates, "threads": arguments.threads, "device": arguments.device}
    modes = {"train": train, "infer": infer, "tau": train_to_tau}
    modes[arguments.mode](graphs, network, arguments, line)
    line["peak_rss_mb"] = peak_rss_mb()
    print(json.dumps(line))


if __name__ == "__main__":
    main()
