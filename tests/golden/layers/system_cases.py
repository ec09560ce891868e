"""Golden scores of published systems at full width: `system_cases.py FOLDER` writes them and prints the table of README.md.

Each network is written a second time, from its source's text or code, as plain functions of PyTorch and
PyTorch Geometric. Weights are made from their names, on both sides, so that no file holds them. Needs
torch, torch_geometric, numpy and safetensors.
"""
import sys
from pathlib import Path

import numpy
import torch
from torch.nn import functional as F
from torch_geometric.nn import GATv2Conv, GINEConv, SAGEConv

from case import CONFIG_NODES, CONFIGS, EDGES, NODES, U_TO_V, V_TO_U, save
from network_cases import (OPCODES, at_config_nodes, graph_inputs, layout_inputs,
                           on_every_node, range_of, tile_inputs)


def numbers(name, count):
    """`count` numbers in [-1, 1), a function of the name: splitmix64 of its FNV-1a hash plus 0, 1, 2 ..."""
    start = 0xcbf29ce484222325
    for byte in name.encode():
        start = (start ^ byte) * 0x100000001b3 % 2**64
    x = numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(start)
    x = x * numpy.uint64(0x9e3779b97f4a7c15)
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
    x = x ^ (x >> numpy.uint64(31))
    return torch.from_numpy((x >> numpy.uint64(40)).astype(numpy.float64) / 2**23 - 1)


class Weights:
    """Weights by name. Matrices are divided by the root of their last dimension; all others by 4."""

    def __init__(self):
        self.count = 0

    def __call__(self, name, *shape):
        size = int(numpy.prod(shape))
        self.count += size
        scale = shape[-1] ** 0.5 if len(shape) > 1 else 4
        return (numbers(name, size) / scale).view(shape)

    def linear(self, x, name, out, bias=True):
        weight = self(name + ".weight", out, x.shape[-1])
        return F.linear(x, weight, self(name + ".bias", out) if bias else None)

    def fill(self, module, prefix):
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(self(prefix + name, *parameter.shape))
        return module


def leaky(x):
    """With TensorFlow's slope."""
    return F.leaky_relu(x, 0.2)


def opcodes(w, graph, width):
    return w("encoder.opcode.weight", OPCODES, width)[graph["opcodes"]]


def scaled(graph, statistics):
    return (graph["node_features"] - statistics["node_mean"]) * statistics["node_scale"]


def with_configs(nodes):
    return nodes.expand(CONFIGS, *nodes.shape)


def adjacency():
    """A[v, u] for each edge from consumer u to producer v."""
    matrix = torch.zeros(NODES, NODES)
    return matrix.index_put_((U_TO_V[1], U_TO_V[0]), torch.ones(()), accumulate=True)


def head(w, y, widths, bias=True):
    for i, width in enumerate(widths):
        y = leaky(w.linear(y, f"head.{i}", width, bias))
    return w.linear(y, "head", 1, bias)[:, 0]


def resmodel(w, graph, configs, statistics):
    """tpu_graphs/baselines/layout/models.py, the pass over the whole graph."""
    states = 100 * configs
    nodes = torch.cat([opcodes(w, graph, 32), scaled(graph, statistics)], 1)
    x = leaky(w.linear(torch.cat([with_configs(nodes), states], 2), "encoder.join", 32))
    x = leaky(w.linear(x, "blocks.0.linear", 32))
    matrix = adjacency()
    matrix = matrix + matrix.T + torch.eye(NODES)
    root = matrix.sum(0).rsqrt()
    matrix = root[:, None] * matrix * root
    for block in (1, 2):
        name = f"blocks.{block}.blocks."
        y = matrix @ torch.cat([x, states], 2)
        y = leaky(w.linear(y, name + "1.gcn.lin", 32, bias=False) + w(name + "1.gcn.bias", 32))
        x = x + leaky(w.linear(y, name + "2.linear", 32))
    own = x[:, CONFIG_NODES].sum(1)
    pooled = [x.mean(1), F.normalize(x.sum(1), dim=1), F.normalize(own, dim=1)]
    return head(w, torch.cat(pooled, 1), [32], bias=False)


def sage_layers(w, x):
    matrix = adjacency()
    for block in (0, 2, 4):
        name = f"blocks.{block}.sage."
        y = (matrix + matrix.T) @ x
        x = F.normalize(leaky(w.linear(y, name + "lin_l", 64) +
                              w.linear(x, name + "lin_r", 64, bias=False)), dim=2)
    return x


def joined(w, graph, configs, statistics, width, early):
    nodes = torch.cat([opcodes(w, graph, width), scaled(graph, statistics)], 1)
    return torch.cat([with_configs(nodes), configs], 2) if early else with_configs(nodes)


def sage(early):
    """_SAGE of tpu_graphs/baselines/tiles/models.py."""
    def run(w, graph, configs, statistics):
        x = sage_layers(w, joined(w, graph, configs, statistics, 64, early)).sum(1)
        return head(w, x if early else torch.cat([configs[:, 0], x], 1), [64, 64])
    return run


def resgcn(early):
    """_ResGCN of the same file, undirected."""
    def run(w, graph, configs, statistics):
        x = leaky(w.linear(joined(w, graph, configs, statistics, 32, early), "encoder.join", 64))
        x = w.linear(x, "blocks.0.linear", 64)
        matrix = adjacency() + torch.eye(NODES)
        matrix = matrix / matrix.sum(1, keepdim=True)
        for block in (1, 2, 3):
            name = f"blocks.{block}.blocks."
            y = leaky(x)
            y = matrix @ y + matrix.T @ y + y
            y = w.linear(y, name + "1.gcn.lin", 64, bias=False) + w(name + "1.gcn.bias", 64)
            x = x + w.linear(leaky(y), name + "2.linear", 64)
        x = leaky(x).sum(1)
        return head(w, x if early else torch.cat([configs[:, 0], x], 1), [64])
    return run


def mlp(w, graph, configs, statistics):
    """MLP of the same file."""
    nodes = torch.cat([opcodes(w, graph, 32), scaled(graph, statistics)], 1)
    return head(w, torch.cat([configs[:, 0], nodes.sum(0).expand(CONFIGS, -1)], 1), [64, 64])


def latenciaga(layer, features="log", encoder=32, widths=(64, 64, 128, 128, 256, 256), residual=False,
               scale=1e-3):
    """The 2nd place's network with another layer: layer(w, prefix, x, width) gives its rows."""
    def run(w, graph, configs, statistics):
        raw = graph["node_features"]
        x = raw.sign() * raw.abs().log1p() if features == "log" else raw.relu().log1p()
        nodes = torch.cat([opcodes(w, graph, 12), w.linear(x, "encoder.node", 20)], 1)
        x = w.linear(torch.cat([with_configs(nodes), configs], 2), "encoder.join", encoder).relu()
        for i, width in enumerate(widths):
            y = layer(w, f"blocks.{i}.", x, width)
            x = (y + x if residual and y.shape == x.shape else y).relu()
        return scale * w.linear(x, "head", 1).sum(1)[:, 0]
    return run


def sage_conv(w, prefix, x, width):
    return w.fill(SAGEConv(x.shape[2], width), prefix + "sage.")(x, U_TO_V)


def both_directions(w, prefix, x, width):
    conv = SAGEConv(x.shape[2], width, root_weight=False, bias=False)
    with torch.no_grad():
        conv.lin_l.weight.copy_(w(prefix + "sage.lin_l_1.weight", width, x.shape[2]))
    return sage_conv(w, prefix, x, width) + conv(x, V_TO_U)


def gatv2(w, prefix, x, width):
    conv = w.fill(GATv2Conv(x.shape[2], width), prefix + "gatv2.")
    return torch.stack([conv(one, U_TO_V) for one in x])


def gine(w, prefix, x, width):
    name = prefix + "gine.nn."
    conv = GINEConv(lambda y: w.linear(w.linear(y, name + "0", width).relu(), name + "2", width))
    edge = w(prefix + "gine.edge", x.shape[2])
    return conv(x, U_TO_V, edge.expand(U_TO_V.shape[1], -1))


WIDE = {"encoder": 64, "widths": (256,) * 4 + (512,) * 4}
SYSTEMS = {
    "tpugraphs_layout_resmodel": resmodel, "tpugraphs_layout_sage": sage(True),
    "tpugraphs_tile_mlp": mlp, "tpugraphs_tile_resgcn_early": resgcn(True),
    "tpugraphs_tile_resgcn_late": resgcn(False), "tpugraphs_tile_sage_early": sage(True),
    "tpugraphs_tile_sage_late": sage(False), "latenciaga_xla": latenciaga(sage_conv),
    "latenciaga_xla_diffmat": latenciaga(sage_conv, "log_positive"),
    "latenciaga_nlp": latenciaga(sage_conv, residual=True, **WIDE),
    "latenciaga_tile": latenciaga(sage_conv, scale=1, **WIDE),
    "latenciaga_xla_dropout": latenciaga(
        lambda w, prefix, x, width: sage_conv(w, f"blocks.{2 * int(prefix[7:-1])}.", x, width)),
    "latenciaga_xla_both_directions": latenciaga(both_directions),
    "latenciaga_xla_gatv2": latenciaga(gatv2), "latenciaga_xla_gine": latenciaga(gine),
}


def main(folder):
    for name, run in SYSTEMS.items():
        graph = dict(zip(("node_features", "opcodes"), graph_inputs(name)), edges=EDGES)
        tile, statistics = "tile" in name, {}
        if not tile:
            graph["config_nodes"] = CONFIG_NODES
        raw = tile_inputs(name) if tile else layout_inputs(name)
        values = raw
        if name.startswith("tpugraphs"):
            statistics = {**range_of(graph["node_features"], "node"),
                          **range_of(raw.flatten(0, -2), "config")}
            values = (raw - statistics["config_mean"]) * statistics["config_scale"]
        w = Weights()
        output = run(w, graph, on_every_node(values) if tile else at_config_nodes(values), statistics)
        save(folder, name, {
            **{f"graph.{key}": value for key, value in graph.items()}, "configs": raw,
            **{f"statistics.{key}": value for key, value in statistics.items()}, "output": output},
            parameters=w.count)
        print(f"| `{name}` | {w.count} | {(output.max() - output.min()).item():.3g} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
