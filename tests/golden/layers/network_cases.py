"""Golden cases of complete networks: `network_cases.py FOLDER` writes them and prints the table of README.md.

The networks of the 1st and the 2nd place of the Kaggle competition "Fast or Slow?", from their
descriptions, narrower, and small ones for what an encoder or a readout can do. Needs torch,
torch_geometric and safetensors.
"""
import copy
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.transforms import AddRandomWalkPE

from case import (CODES, CONFIG_NODES, CONFIGS, EDGES, NODE_CLASS, NODES, float32_errors, generator_of,
                  gradients, random, randomise, rounded, save)

OPCODES, NODE_FEATURES, LAYOUT_FEATURES, TILE_FEATURES = 120, 140, 18, 24
PADDED = 134  # columns from here on are dimensions, padded with -1


def graph_inputs(name):
    """Raw features and opcodes like those of TpuGraphs: counts, a few negative and a few constant
    columns, dimensions padded with -1. Nodes of equal class are equal."""
    generator = generator_of("graph of " + name)
    counts = torch.randint(0, 200, (6, PADDED), generator=generator).double()
    counts = counts * (torch.rand(6, PADDED, generator=generator) < 0.3)
    counts[:, 3] = -counts[:, 4] / 2
    counts[:, 7] = 5
    dimensions = torch.randint(-1, 6, (6, NODE_FEATURES - PADDED), generator=generator).double()
    opcodes = torch.randint(0, OPCODES, (6,), generator=generator)
    return torch.cat([counts, dimensions], 1)[NODE_CLASS], opcodes[NODE_CLASS]


def layout_inputs(name):
    """[configs, configurable nodes, 18], whole numbers from -1 to 5."""
    generator = generator_of("configurations of " + name)
    return torch.randint(-1, 6, (3, LAYOUT_FEATURES), generator=generator).double()[CODES]


def tile_inputs(name):
    """[configs, 24] of a kernel; the last two configurations share many columns."""
    generator = generator_of("configurations of " + name)
    features = torch.randint(0, 65, (CONFIGS, TILE_FEATURES), generator=generator).double()
    features[2, 6:] = features[1, 6:]
    features[:, 5] = 1
    return features


class Latenciaga(nn.Module):
    """The 2nd place. `features`: signed_log (ListMLE) or log_relu (DiffMat)."""

    def __init__(self, config_features, encoder, widths, features, residual, scale):
        super().__init__()
        self.features, self.residual, self.scale = features, residual, scale
        self.encoder = nn.ModuleDict({"opcode": nn.Embedding(OPCODES, 4),
                                      "node": nn.Linear(NODE_FEATURES, 4),
                                      "join": nn.Linear(4 + 4 + config_features, encoder)})
        self.blocks = nn.ModuleList(nn.ModuleDict({"sage": SAGEConv(a, b)})
                                    for a, b in zip([encoder, *widths], widths))
        self.head = nn.Linear(widths[-1], 1)

    def forward(self, graph, configs):
        raw = graph["node_features"]
        x = raw.sign() * raw.abs().log1p() if self.features == "signed_log" else raw.relu().log1p()
        x = torch.cat([self.encoder["opcode"](graph["opcodes"]), self.encoder["node"](x)], 1)
        x = self.encoder["join"](torch.cat([x.expand(CONFIGS, *x.shape), configs], 2)).relu()
        for block in self.blocks:
            y = block["sage"](x, graph["edges"].T)
            x = (y + x if self.residual and y.shape == x.shape else y).relu()
        return self.scale * self.head(x).sum(1)[:, 0]


def at_config_nodes(features):
    """Layout features at configurable nodes, zeros elsewhere: [configs, nodes, 18]."""
    x = torch.zeros(CONFIGS, NODES, LAYOUT_FEATURES)
    x[:, CONFIG_NODES] = features
    return x


def on_every_node(features):
    return features[:, None].expand(CONFIGS, NODES, TILE_FEATURES)


class ChannelAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(width, width // 8), nn.Linear(width // 8, width)

    def forward(self, x):
        return x * self.linear2(self.linear1(x).relu()).sigmoid()


class CrossConfigAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([x, x * (x / self.temperature).softmax(0)], 2)


def instance_norm(x):
    """Over the nodes of each configuration, x [configs, nodes, C]; no affine part."""
    mean = x.mean(1, keepdim=True)
    variance = (x - mean).square().mean(1, keepdim=True)
    return (x - mean) / (variance + 1e-5).sqrt()


class NormLinear(nn.Module):
    """Linear, InstanceNorm, channel attention, cross-config attention or none, GELU."""

    def __init__(self, before, width, cross):
        super().__init__()
        inner = width // 2 if cross else width
        self.linear, self.channel = nn.Linear(before, inner), ChannelAttention(inner)
        if cross:
            self.cross = CrossConfigAttention()

    def forward(self, x, edges):
        x = self.channel(instance_norm(self.linear(x)))
        return F.gelu(self.cross(x) if hasattr(self, "cross") else x)


class NormSage(nn.Module):
    """InstanceNorm, SAGE, channel attention, cross-config attention or none, + input, GELU."""

    def __init__(self, width, cross):
        super().__init__()
        inner = width // 2 if cross else width
        self.sage, self.channel = SAGEConv(width, inner), ChannelAttention(inner)
        if cross:
            self.cross = CrossConfigAttention()

    def forward(self, x, edges):
        y = self.channel(self.sage(instance_norm(x), edges.T))
        return F.gelu((self.cross(y) if hasattr(self, "cross") else y) + x)


def body(columns, width, cross):
    return nn.ModuleList([NormLinear(columns, width, cross), NormLinear(width, width, cross),
                          NormSage(width, cross), NormSage(width, cross)])


class FirstPlace(nn.Module):
    """What layout and tile have in common. [opcode | standardised | dimensions (| configuration)]."""

    def __init__(self, columns, width, cross):
        super().__init__()
        self.encoder = nn.ModuleDict({"opcode": nn.Embedding(OPCODES, 4),
                                      "layout": nn.Embedding(8, 2)})
        self.blocks = body(4 + PADDED + 2 * (NODE_FEATURES - PADDED) + columns, width, cross)

    def tokens(self, values):
        """The one embedding of whole numbers from -2 (not configurable) to 5, joined column by column."""
        return self.encoder["layout"](values.long() + 2).flatten(-2)

    def nodes(self, graph, statistics):
        raw = graph["node_features"]
        standardised = (raw[:, :PADDED] - statistics["node_mean"]) * statistics["node_scale"]
        return torch.cat([self.encoder["opcode"](graph["opcodes"]), standardised,
                          self.tokens(raw[:, PADDED:])], 1)

    def run(self, x, edges):
        for block in self.blocks:
            x = block(x, edges)
        return x


class FirstPlaceLayout(FirstPlace):
    def __init__(self, cross, width=32):
        super().__init__(2 * LAYOUT_FEATURES, width, cross)
        self.head = nn.Linear(width, 1)

    def forward(self, graph, configs, statistics):
        nodes = self.nodes(graph, statistics)
        values = torch.full((CONFIGS, len(nodes), LAYOUT_FEATURES), -2.0, dtype=configs.dtype)
        values[:, graph["config_nodes"]] = configs
        x = torch.cat([nodes.expand(CONFIGS, *nodes.shape), self.tokens(values)], 2)
        return self.head(self.run(x, graph["edges"]).mean(1))[:, 0]


class FirstPlaceTile(FirstPlace):
    """The graph once, without configurations; its pooled states beside those of the configurations."""

    def __init__(self, width=32):
        super().__init__(0, width, False)
        self.config = nn.ModuleList([nn.Linear(TILE_FEATURES, width), nn.Linear(width, width)])
        self.head = nn.ModuleList([nn.Linear(3 * width, width), nn.Linear(width, width),
                                   nn.Linear(width, 1)])

    def forward(self, graph, configs, statistics):
        x = self.run(self.nodes(graph, statistics)[None], graph["edges"])[0]
        pooled = torch.cat([x.amax(0), x.mean(0)])
        y = (configs - statistics["config_mean"]) * statistics["config_scale"]
        for linear in self.config:
            y = F.gelu(linear(y))
        y = torch.cat([y, pooled.expand(CONFIGS, -1)], 1)
        for linear in self.head[:-1]:
            y = F.gelu(linear(y))
        return self.head[-1](y)[:, 0]


def reduced(graph):
    """Configurable nodes and their direct neighbours, with the edges that touch a configurable node."""
    configurable = torch.zeros(NODES, dtype=torch.bool)
    configurable[CONFIG_NODES] = True
    edges = EDGES[configurable[EDGES].any(1)]
    kept = torch.cat([edges.flatten(), CONFIG_NODES]).unique()
    place = torch.full((NODES,), -1)
    place[kept] = torch.arange(len(kept))
    return {"nodes": kept, "edges": place[edges], "config_nodes": place[CONFIG_NODES],
            "node_features": graph["node_features"][kept], "opcodes": graph["opcodes"][kept]}


def statistics_of(features, prefix):
    """Mean and 1 / standard deviation of each column; 0 where it is constant."""
    mean, deviation = features.mean(0), features.std(0, unbiased=False)
    scale = torch.where(deviation > 0, 1 / deviation.clamp(min=1e-12), torch.zeros(()))
    return {f"{prefix}_mean": rounded(mean), f"{prefix}_scale": rounded(scale)}


def range_of(features, prefix):
    """Minimum and 1 / (maximum - minimum) of each column; 0 where it is constant."""
    least, width = features.amin(0), features.amax(0) - features.amin(0)
    scale = torch.where(width > 0, 1 / width.clamp(min=1e-12), torch.zeros(()))
    return {f"{prefix}_mean": rounded(least), f"{prefix}_scale": rounded(scale)}


def dimension_features(features):
    """log(1 + x mod 128) and log(1 + x div 128) of the dimensions, columns 21 to 26."""
    sizes = features[:, 21:27]
    return torch.cat([(sizes % 128).log1p(), (sizes // 128).log1p()], 1)


def return_probabilities(steps, loops):
    """Of walks along the edges of both directions, with an edge from each node to itself for `loops`.
    Rounded, as features are float32. PyTorch Geometric takes parallel edges for one in a small graph,
    so that it gives the same without them."""
    def edges_of(edges):
        edges = torch.cat([edges.T, edges.T.flip(0)], 1)
        return torch.cat([edges, torch.arange(NODES).expand(2, NODES)], 1) if loops else edges

    def walks(edges):
        counts = torch.zeros(NODES, NODES).index_put(tuple(edges), torch.ones(edges.shape[1]), True)
        step = counts / counts.sum(1, keepdim=True).clamp(min=1)
        return torch.stack([step.matrix_power(k + 1).diagonal() for k in range(steps)], 1)

    single = edges_of(EDGES.unique(dim=0))
    geometric = AddRandomWalkPE(steps, attr_name="walks")(Data(edge_index=single, num_nodes=NODES))
    assert (geometric["walks"] - walks(single)).abs().max() < 1e-12
    return rounded(walks(edges_of(EDGES)))


def violation_ratio(features, configs, tensor, order, unset):
    """Of each configuration: the share of its configurable nodes whose largest dimension does not lie
    along the lanes. `configs` [configs, configurable nodes, 18]."""
    def largest(node):
        sizes = features[node, 21:27].tolist()
        return {d for d, size in enumerate(sizes) if size == max(sizes) > 0}

    ratios = []
    for states in configs:
        violations = []
        for node, state in zip(CONFIG_NODES.tolist(), states):
            operands = [producer for consumer, producer in EDGES.tolist() if consumer == node]
            if tensor == "output":
                sizes = largest(node)
            elif len(operands) < (2 if tensor == "kernel" else 1):
                continue
            else:
                candidates = {frozenset(largest(operand)) for operand in operands}
                sizes = candidates.pop() if len(candidates) == 1 else set()
            first = 6 * ["output", "input", "kernel"].index(tensor)
            values = [int(value) for value in state[first:first + 6]]
            if order == "minor_to_major":
                lanes = values[0]
            else:
                lanes = ([-1] + [value for value in values if value >= 0])[-1]
            if not sizes or (lanes < 0 and unset == "skip"):
                continue
            violations.append(unset == "violates" if lanes < 0 else lanes not in sizes)
        ratios.append(sum(violations) / len(violations) if violations else 0.0)
    return torch.tensor(ratios)


class Small(nn.Module):
    """[opcode | node features (| configuration)], a Linear over them if `width`, one SAGE, a readout.

    `late`: the configuration joins the rows after the SAGE, side by side. `pools`: what is pooled,
    side by side, before a Linear, or an MLP with one hidden layer of 5 and LeakyReLU (`hidden`).
    `beside`: the configuration of a tile stands in front of it. `added`: features of the nodes that
    follow theirs; `ratio`: one number for each configuration that follows the pooled states."""

    def __init__(self, config_features, width=0, late=False, factor=1, pools=("mean",), hidden=False,
                 bias=True, beside=False, added=None, ratio=None):
        super().__init__()
        self.added, self.ratio = added, ratio
        self.late, self.factor, self.pools, self.beside = late, factor, pools, beside
        self.encoder = nn.ModuleDict({"opcode": nn.Embedding(OPCODES, 4)})
        columns = 4 + NODE_FEATURES + (0 if late or beside else config_features)
        columns += 0 if added is None else added.shape[1]
        if width:
            self.encoder["join"] = nn.Linear(columns, width)
        self.blocks = nn.ModuleList([nn.ModuleDict({"sage": SAGEConv(width or columns, 5)})])
        pooled = (5 + (config_features if late else 0)) * len(pools)
        pooled += config_features if beside else 0
        pooled += 0 if ratio is None else 1
        self.head = nn.Linear(5 if hidden else pooled, 1, bias=bias)
        if hidden:
            self.head.add_module("0", nn.Linear(pooled, 5, bias=bias))

    def forward(self, graph, configs, statistics):
        def scaled(x, kind):
            if kind + "_mean" not in statistics:
                return x
            return (x - statistics[kind + "_mean"]) * statistics[kind + "_scale"]

        nodes = torch.cat([self.encoder["opcode"](graph["opcodes"]),
                           scaled(graph["node_features"], "node")], 1)
        if self.added is not None:
            nodes = torch.cat([nodes, self.added.to(nodes.dtype)], 1)
        # Nodes without a configuration keep zeros.
        state = self.factor * scaled(configs, "config") * graph["configurable"]
        x = nodes.expand(CONFIGS, *nodes.shape)
        if not self.late and not self.beside:
            x = torch.cat([x, state], 2)
        if "join" in self.encoder:
            x = self.encoder["join"](x).relu()
        x = self.blocks[0]["sage"](x, graph["edges"].T).relu()
        if self.late:
            x = torch.cat([x, state], 2)
        own = x * graph["configurable"]
        pool = {"sum": lambda: x.sum(1), "mean": lambda: x.mean(1), "max": lambda: x.amax(1),
                "l2_sum": lambda: F.normalize(x.sum(1), dim=1), "config_sum": lambda: own.sum(1),
                "config_mean": lambda: own.sum(1) / graph["configurable"].sum(),
                "config_l2_sum": lambda: F.normalize(own.sum(1), dim=1)}
        y = torch.cat([state[:, 0]] * self.beside + [pool[name]() for name in self.pools], 1)
        if self.ratio is not None:
            y = torch.cat([y, self.ratio.to(y.dtype)[:, None]], 1)
        for hidden in self.head.children():
            y = F.leaky_relu(hidden(y), 0.2)
        return self.head(y)[:, 0]


class EdgeMlp(nn.Module):
    """A row for each edge from a configurable node to its operand, as in the 4th place, and no messages."""

    def __init__(self, columns=6, width=3, hidden=5, config_width=2, config_hidden=4):
        super().__init__()
        self.encoder = nn.ModuleDict({"opcode": nn.Embedding(OPCODES, 4)})
        rows = 4 + columns
        self.columns = columns
        self.blocks = nn.ModuleList([nn.ModuleDict({"edge_mlp": nn.ModuleDict({
            "own": nn.Linear(rows, hidden), "neighbour": nn.Linear(rows, hidden, bias=False),
            "edge": nn.Linear(hidden, width), "state": nn.Linear(3, config_hidden),
            "mean": nn.Linear(width, config_hidden, bias=False),
            "config": nn.Linear(config_hidden, config_width)})})])
        self.head = nn.Linear((width + 1) * config_width, 1, bias=False)

    def forward(self, graph, configs):
        layers = self.blocks[0]["edge_mlp"]
        raw = graph["node_features"][:, :self.columns]
        nodes = torch.cat([self.encoder["opcode"](graph["opcodes"]), raw.sign() * raw.abs().log1p()], 1)
        edges = [edge for edge in EDGES.tolist() if edge[0] in CONFIG_NODES.tolist()]
        consumers, producers = (torch.tensor(ends) for ends in zip(*edges))
        f = layers["own"](nodes[consumers]) + layers["neighbour"](nodes[producers])
        f = layers["edge"](f.relu())
        c = layers["state"](configs[:, consumers][:, :, [2, 0, 7]]) + layers["mean"](f.mean(0))
        c = layers["config"](c.relu())
        return self.head(torch.cat([torch.einsum("ef,keg->kfg", f, c).flatten(1), c.mean(1)], 1))[:, 0]


def edge_mlp(folder):
    name = "edge_mlp"
    graph = dict(zip(("node_features", "opcodes"), graph_inputs(name)), edges=EDGES,
                 config_nodes=CONFIG_NODES)
    raw = layout_inputs(name)
    finish(folder, name, EdgeMlp(), graph, graph, (raw, at_config_nodes(raw)), {}, "small",
           model="encoder: {opcode_width: 4, node_columns: 0-5, node_width: 0, join: late, width: 0}\n"
           "blocks: [{layer: edge_mlp, width: 3, hidden: 5, config_width: 2, config_hidden: 4, "
           "config_columns: [2, 0, 7]}]\nreadout: {pool: sum, scale: 1, bias: false}\n")


def small(folder, name, model, tile=False, transforms=("raw", "raw"), **options):
    """`model`: the network as an experiment file says it."""
    graph = dict(zip(("node_features", "opcodes"), graph_inputs(name)), edges=EDGES)
    if not tile:
        graph["config_nodes"] = CONFIG_NODES
    raw = tile_inputs(name) if tile else layout_inputs(name)
    placed = on_every_node(raw) if tile else at_config_nodes(raw)
    configurable = torch.full((NODES, 1), float(tile))
    configurable[CONFIG_NODES] = 1
    measure = {"min_max": range_of, "standardised": statistics_of}
    statistics = {}
    for kind, transform, rows in (("node", transforms[0], graph["node_features"]),
                                  ("config", transforms[1], raw.flatten(0, -2))):
        if transform in measure:
            statistics |= measure[transform](rows, kind)
    if "ratio" in options:
        options["ratio"] = violation_ratio(graph["node_features"], raw, *options["ratio"])
    if "added" in options:
        options["added"] = torch.cat([make(graph["node_features"]) for make in options["added"]], 1)
    network = Small(placed.shape[2], **options)
    finish(folder, name, network, graph, {**graph, "configurable": configurable}, (raw, placed),
           statistics, "small", model=model)


def finish(folder, name, network, graph, run_graph, configs, statistics, source, **facts):
    generator = generator_of(name)
    randomise(network, generator, scale=1.5)
    coefficients = random(generator, CONFIGS)

    def results(network, convert):
        graph = {key: convert(value) for key, value in run_graph.items()}
        arguments = [{key: convert(value) for key, value in statistics.items()}]
        arguments = arguments if statistics or isinstance(network, Small) else []
        output = network(graph, convert(configs[1]), *arguments)
        return {"output": output, **gradients(network, output, convert(coefficients), {})}

    exact = results(network, lambda tensor: tensor)
    single = results(copy.deepcopy(network).float(),
                     lambda tensor: tensor.float() if tensor.is_floating_point() else tensor)
    tensors = {f"graph.{key}": value for key, value in graph.items()}
    if "nodes" in run_graph:
        tensors |= {f"reduced.{key}": run_graph[key] for key in ("nodes", "edges", "config_nodes")}
    save(folder, name, {
        **tensors, "configs": configs[0], "coefficients": coefficients,
        **{f"weights.{key}": value for key, value in network.named_parameters()},
        **{f"statistics.{key}": value for key, value in statistics.items()},
        **exact, **float32_errors(exact, single)}, source=source, **facts)
    count = sum(p.numel() for p in network.parameters())
    spread = (exact["output"].max() - exact["output"].min()).item()
    print(f"| `{name}` | {source} | {count} | {spread:.3g} |")


def latenciaga(folder, name, widths, encoder, features, residual, tile):
    graph = dict(zip(("node_features", "opcodes"), graph_inputs(name)), edges=EDGES)
    if not tile:
        graph["config_nodes"] = CONFIG_NODES
    raw = tile_inputs(name) if tile else layout_inputs(name)
    placed = on_every_node(raw) if tile else at_config_nodes(raw)
    network = Latenciaga(placed.shape[2], encoder, widths, features, residual, 1 if tile else 1e-3)
    finish(folder, name, network, graph, graph, (raw, placed), {}, "2nd place")


def first_place(folder, name, cross):
    graph = dict(zip(("node_features", "opcodes"), graph_inputs(name)), edges=EDGES,
                 config_nodes=CONFIG_NODES)
    raw = layout_inputs(name)
    statistics = statistics_of(graph["node_features"][:, :PADDED], "node")
    finish(folder, name, FirstPlaceLayout(cross), graph, reduced(graph), (raw, raw), statistics,
           "1st place")


def first_place_tile(folder, name):
    graph = dict(zip(("node_features", "opcodes"), graph_inputs(name)), edges=EDGES)
    raw = tile_inputs(name)
    statistics = {**statistics_of(graph["node_features"][:, :PADDED], "node"),
                  **statistics_of(raw, "config")}
    finish(folder, name, FirstPlaceTile(), graph, graph, (raw, raw), statistics, "1st place")


def main(folder):
    xla, wide = [8, 8, 16, 16, 32, 32], [16] * 4 + [32] * 4
    latenciaga(folder, "latenciaga_xla_diff_mat", xla, 4, "log_relu", False, False)
    latenciaga(folder, "latenciaga_xla_list_mle", xla, 4, "signed_log", False, False)
    latenciaga(folder, "latenciaga_nlp_diff_mat", wide, 8, "log_relu", False, False)
    latenciaga(folder, "latenciaga_nlp_list_mle", wide, 8, "signed_log", True, False)
    latenciaga(folder, "latenciaga_tile_diff_mat", wide, 8, "log_relu", False, True)
    latenciaga(folder, "latenciaga_tile_list_mle", wide, 8, "signed_log", False, True)
    first_place(folder, "first_place_layout", False)
    first_place(folder, "first_place_layout_crossattn", True)
    first_place_tile(folder, "first_place_tile")
    edge_mlp(folder)
    sage = "blocks: [{layer: sage, width: 5}"
    small(folder, "encoder_min_max", "encoder: {opcode_width: 4, node_width: 0, width: 6, "
          "node_transform: min_max, config_transform: min_max, config_scale: 100}\n"
          f"{sage}]\nreadout: {{pool: mean, scale: 1}}\n",
          transforms=("min_max", "min_max"), width=6, factor=100)
    small(folder, "encoder_min_max_tile", "encoder: {opcode_width: 4, node_width: 0, width: 6, "
          "node_transform: min_max, config_transform: min_max}\n"
          f"{sage}]\nreadout: {{pool: mean, scale: 1}}\n",
          tile=True, transforms=("min_max", "min_max"), width=6)
    small(folder, "encoder_without_linear", "encoder: {opcode_width: 4, node_width: 0, width: 0, "
          "node_transform: standardised, config_transform: standardised}\n"
          f"{sage}]\nreadout: {{pool: mean, scale: 1}}\n",
          transforms=("standardised", "standardised"))
    small(folder, "encoder_late_join", "encoder: {opcode_width: 4, node_width: 0, width: 0, "
          "node_transform: standardised, config_scale: 10, join: late}\n"
          f"{sage}, {{layer: join_config}}]\nreadout: {{pool: mean, scale: 1}}\n",
          transforms=("standardised", "raw"), late=True, factor=10)
    begin = ("encoder: {opcode_width: 4, node_width: 0, width: 6, node_transform: min_max, "
             f"config_transform: min_max}}\n{sage}]\n")
    both = {"transforms": ("min_max", "min_max"), "width": 6}
    for name, pools in (("l2", "mean+l2_sum+config_l2_sum"), ("config", "config_sum+config_mean+max"),
                        ("config_sum", "config_sum")):
        hidden = name == "l2"
        small(folder, f"readout_{name}", f"{begin}readout: {{pool: {pools}, scale: 1" + (
            ", widths: [5], bias: false, activation: leaky_relu_0.2}\n" if hidden else "}\n"),
            pools=pools.split("+"), hidden=hidden, bias=not hidden, **both)
    small(folder, "readout_without_bias", f"{begin}readout: {{pool: sum, scale: 1, bias: false}}\n",
          pools=["sum"], bias=False, **both)
    small(folder, "readout_config_late", begin.replace("width: 6", "width: 6, join: late").replace(
          "5}]", "5}, {layer: join_config}]") + "readout: {pool: config_l2_sum+sum, scale: 1}\n",
          pools=["config_l2_sum", "sum"], late=True, **both)
    small(folder, "readout_join_config_tile", begin.replace("width: 6", "width: 6, join: late") +
          "readout: {pool: sum+config_sum, widths: [5], join_config: true, "
          "activation: leaky_relu_0.2, scale: 1}\n",
          pools=["sum", "config_sum"], hidden=True, beside=True, tile=True, **both)
    small(folder, "encoder_walks", "encoder: {opcode_width: 4, node_width: 0, width: 6, "
          "node_transform: standardised, dimension_features: true, random_walk: 7}\n"
          f"{sage}]\nreadout: {{pool: mean, scale: 1}}\n", transforms=("standardised", "raw"), width=6,
          added=[dimension_features, lambda _: return_probabilities(7, False)])
    small(folder, "encoder_walks_with_loops", "encoder: {opcode_width: 4, node_width: 0, width: 6, "
          "node_transform: raw, random_walk: 4, random_walk_loops: true}\n"
          f"{sage}]\nreadout: {{pool: mean, scale: 1}}\n", width=6,
          added=[lambda _: return_probabilities(4, True)])
    for tensor, order, unset in (("output", "minor_to_major", "skip"),
                                 ("input", "major_to_minor", "violates"),
                                 ("kernel", "minor_to_major", "fits")):
        small(folder, f"readout_violations_{tensor}", f"{begin}readout: {{pool: mean+config_sum, "
              f"scale: 1, violation_ratio: {tensor}, violation_order: {order}, "
              f"violation_unset: {unset}}}\n", pools=["mean", "config_sum"],
              ratio=(tensor, order, unset), **both)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
