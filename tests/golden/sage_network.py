"""Numbers of tests/models/network_golden_test.cpp: PyTorch Geometric's SAGEConv in the 2nd place's network, tiny.

Needs PyTorch and torch_geometric. Arguments: the aggregation of each of the three layers. Parameters and inputs are small binary fractions from one formula.
"""
import sys

import torch
from torch_geometric.nn import SAGEConv

torch.set_default_dtype(torch.float64)
WIDTHS, ENCODER, OPCODE, NODE, CONFIG = [16, 16, 8], 16, 12, 20, 18
NODES, EDGES = 5, [(1, 0), (2, 0), (2, 1), (2, 1), (3, 2), (4, 0)]  # (consumer, producer)
CONFIG_NODES, CONFIGS = [1, 3], 3


def fill(*shape, salt):
    n = torch.Size(shape).numel()
    return torch.tensor([((i * 7 + salt * 5) % 31 - 15) / 64 for i in range(n)]).view(shape)


salt = 0
parameters = {}


def parameter(name, *shape):
    global salt
    salt += 1
    parameters[name] = fill(*shape, salt=salt).requires_grad_()
    return parameters[name]


def main():
    raw = torch.tensor([[((v * 13 + j * 5) % 17 - 4) * 10.0 for j in range(140)] for v in range(NODES)])
    features = raw.sign() * raw.abs().log1p()
    opcodes = torch.tensor([(v * 37) % 120 for v in range(NODES)])
    states = torch.tensor([[[(k * 5 + j * 3 + c) % 7 - 1.0 for c in range(CONFIG)]
                            for j in range(len(CONFIG_NODES))] for k in range(CONFIGS)])
    edge_index = torch.tensor(EDGES).T

    opcode = parameter("encoder.opcode.weight", 120, OPCODE)
    node_weight, node_bias = parameter("encoder.node.weight", 140, NODE), parameter("encoder.node.bias", NODE)
    join_weight = parameter("encoder.join.weight", OPCODE + NODE + CONFIG, ENCODER)
    join_bias = parameter("encoder.join.bias", ENCODER)
    layers, width = [], ENCODER
    aggregations = sys.argv[1:] or ["mean"] * len(WIDTHS)
    for i, out in enumerate(WIDTHS):
        prefix = f"blocks.{i}.sage."
        layers.append([parameter(prefix + "neighbours.weight", width, out),
                       parameter(prefix + "self.weight", width, out), parameter(prefix + "neighbours.bias", out)])
        width = out
    head_weight, head_bias = parameter("head.weight", width, 1), parameter("head.bias", 1)

    scores = []
    for k in range(CONFIGS):
        config = torch.zeros(NODES, CONFIG)
        config[CONFIG_NODES] = states[k]
        x = torch.cat([opcode[opcodes], features @ node_weight + node_bias, config], dim=1)
        x = torch.relu(x @ join_weight + join_bias)
        for (left, right, bias), aggregation in zip(layers, aggregations):
            conv = SAGEConv(left.shape[0], left.shape[1], aggr=aggregation)
            state = {"lin_l.weight": left.T, "lin_l.bias": bias, "lin_r.weight": right.T}
            out = torch.func.functional_call(conv, state, (x, edge_index))
            x = torch.relu(out + x if out.shape == x.shape else out)
        scores.append(1e-3 * (x @ head_weight + head_bias).sum())
    scores = torch.stack(scores)
    print("scores", [float(f"{s:.12g}") for s in scores.tolist()])
    (scores * torch.tensor([1.0, -2.0, 0.5])).sum().backward()
    for name, value in parameters.items():
        pattern = fill(*value.shape, salt=4)
        print(f'{{"{name}", {float((value.grad * pattern).sum()):.12g}}},')


main()
