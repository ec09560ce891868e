"""Loads weights that `tpudist weights export` wrote into the 2nd place's network in PyTorch Geometric and
compares its scores with those of `tpudist rank`:

    tpudist weights export RUN weights.safetensors --member 0
    tpudist rank GRAPH.npz --run RUN --combine mean --top 0 --json > ranking.json
    python3 tests/golden/exported_weights.py GRAPH.npz weights.safetensors ranking.json [--residual]

RUN: one member, a layout collection, model.preset latenciaga_xla or (with --residual) latenciaga_nlp. Needs torch,
torch_geometric, safetensors and NumPy. Exits with 1 where a score is further than 1e-5 of the largest one away.
"""
import argparse
import json

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch_geometric.nn import SAGEConv


class Network(nn.Module):
    """Of the widths that the tensors have; the names of its parameters are those of the file."""

    def __init__(self, tensors, residual):
        super().__init__()
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        count = sum(name.endswith("lin_l.weight") for name in shapes)
        linear = lambda name: nn.Linear(*reversed(shapes[f"{name}.weight"]))
        self.encoder = nn.ModuleDict({"opcode": nn.Embedding(*shapes["encoder.opcode.weight"]),
                                      "node": linear("encoder.node"), "join": linear("encoder.join")})
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"sage": SAGEConv(*reversed(shapes[f"blocks.{i}.sage.lin_l.weight"]))})
            for i in range(count))
        self.head = linear("head")
        self.residual = residual
        self.load_state_dict(tensors, strict=True)

    def forward(self, features, opcodes, configs, edge_index):
        """Scores [configurations] of `configs` [configurations, nodes, 18]."""
        x = features.sign() * features.abs().log1p()
        x = torch.cat([self.encoder["opcode"](opcodes), self.encoder["node"](x)], 1)
        x = self.encoder["join"](torch.cat([x.expand(len(configs), *x.shape), configs], 2)).relu()
        for block in self.blocks:
            y = block["sage"](x, edge_index)
            x = (x + y if self.residual and x.shape == y.shape else y).relu()
        return 1e-3 * self.head(x).sum(1)[:, 0]


def scores(network, arrays, numbers, dtype):
    network.to(dtype)
    features = torch.from_numpy(arrays["node_feat"]).to(dtype)
    opcodes = torch.from_numpy(arrays["node_opcode"].astype(np.int64))
    edges = torch.from_numpy(arrays["edge_index"].astype(np.int64).T.copy())
    nodes = torch.from_numpy(arrays["node_config_ids"].astype(np.int64))
    result = []
    with torch.no_grad():
        for number in numbers:
            configs = torch.zeros(1, len(features), 18, dtype=dtype)
            configs[0, nodes] = torch.from_numpy(arrays["node_config_feat"][number]).to(dtype)
            result.append(network(features, opcodes, configs, edges)[0].item())
    return np.array(result)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("graph")
    parser.add_argument("weights")
    parser.add_argument("ranking")
    parser.add_argument("--residual", action="store_true")
    parser.add_argument("--save", help="write the module's weights to this file, for `tpudist weights import`")
    parser.add_argument("--configs", type=int, default=200, help="how many are compared")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    ranking = json.load(open(arguments.ranking))["ranking"]
    step = max(1, len(ranking) // arguments.configs)
    ranking = ranking[::step][:arguments.configs]
    ours = np.array([entry["score"] for entry in ranking])
    network = Network(load_file(arguments.weights), arguments.residual)
    if arguments.save:
        save_file(network.state_dict(), arguments.save)
    arrays = np.load(arguments.graph)
    worst = 0
    for dtype in (torch.float64, torch.float32):
        theirs = scores(network, arrays, [entry["config"] for entry in ranking], dtype)
        # A ranking's scores need not hold what all configurations of a graph have in common.
        error = np.abs((theirs - theirs.mean()) - (ours - ours.mean())).max()
        largest, spread = np.abs(theirs).max(), np.ptp(theirs)
        whole = np.abs(theirs - ours).max()
        print(f"{len(ours)} configurations, {dtype}: largest score {largest:.6g}, spread {spread:.6g}, "
              f"largest difference {whole:.3g}, about the mean {error:.3g} "
              f"({error / largest:.3g} of the largest score, {error / spread:.3g} of the spread)")
        worst = max(worst, error / largest)
    raise SystemExit(int(worst > 1e-5))
