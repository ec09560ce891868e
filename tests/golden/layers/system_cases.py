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
from torch_geometric.nn import GATConv, GATv2Conv, GINEConv, InstanceNorm, SAGEConv

from case import CONFIG_EDGES, CONFIG_NODES, CONFIGS, EDGES, NODES, U_TO_V, V_TO_U, save
from layer_cases import LinearAttention, SelfAttention
from network_cases import (OPCODES, at_config_nodes, dimension_features, graph_inputs, layout_inputs,
                           on_every_node, range_of, return_probabilities, statistics_of, tile_inputs,
                           violation_ratio)


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


def head(w, y, widths, bias=True, activation=leaky):
    for i, width in enumerate(widths):
        y = activation(w.linear(y, f"head.{i}", width, bias))
    return w.linear(y, "head", 1, bias)[:, 0]


def resmodel(attention=False, ratio=False, columns=None):
    """tpu_graphs/baselines/layout/models.py, the pass over the whole graph. Harvard's attention, ratio
    and columns."""
    def run(w, graph, configs, statistics):
        states = 100 * configs
        features = scaled(graph, statistics)
        nodes = torch.cat([opcodes(w, graph, 32), features if columns is None else features[:, columns]], 1)
        x = leaky(w.linear(torch.cat([with_configs(nodes), states], 2), "encoder.join", 32))
        x = leaky(w.linear(x, "blocks.0.linear", 32))
        first = 1
        if attention:
            x = self_attention(w, "blocks.1.self_attention.", x, 16, 32, 0.1)
            x = leaky(w.linear(x, "blocks.2.linear", 32))
            first = 3
        matrix = adjacency()
        matrix = matrix + matrix.T + torch.eye(NODES)
        root = matrix.sum(0).rsqrt()
        matrix = root[:, None] * matrix * root
        for block in (first, first + 1):
            name = f"blocks.{block}.blocks."
            y = matrix @ torch.cat([x, states], 2)
            y = leaky(w.linear(y, name + "1.gcn.lin", 32, bias=False) + w(name + "1.gcn.bias", 32))
            x = x + leaky(w.linear(y, name + "2.linear", 32))
        own = x[:, CONFIG_NODES].sum(1)
        pooled = [x.mean(1), F.normalize(x.sum(1), dim=1), F.normalize(own, dim=1)]
        if ratio:
            pooled.append(violation_ratio(graph["node_features"], graph["configs"], "output",
                                          "minor_to_major", "skip")[:, None])
        return head(w, torch.cat(pooled, 1), [32], bias=False)
    return run


def self_attention(w, prefix, x, heads, width, others):
    layer = SelfAttention(heads, width, others, "both", channels=x.shape[2])
    return w.fill(layer, prefix)(x)


def linear_attention(w, prefix, x, heads, width, bias=True):
    return w.fill(LinearAttention(heads, width, bias, channels=x.shape[2]), prefix)(x)


def both_sage(w, prefix, x, width, shared=False):
    """GraphSAGE in both directions with a weight for each, or one on the sum of both means."""
    matrix = adjacency()
    means = [m / m.sum(1, keepdim=True).clamp(min=1) @ x for m in (matrix, matrix.T)]
    y = w.linear(means[0] + means[1] if shared else means[0], prefix + "lin_l", width)
    if not shared:
        y = y + w.linear(means[1], prefix + "lin_l_1", width, bias=False)
    return y + w.linear(x, prefix + "lin_r", width, bias=False)


def layer_norm(w, x, prefix):
    width = x.shape[2]
    return F.layer_norm(x, [width], w(prefix + "weight", width), w(prefix + "bias", width))


def log_features(graph):
    raw = graph["node_features"]
    return raw.sign() * raw.abs().log1p()


def boston(attention):
    """Two graph convolutions with an MLP, the input of each beside it."""
    def run(w, graph, configs, statistics):
        nodes = torch.cat([opcodes(w, graph, 32), scaled(graph, statistics)], 1)
        x = leaky(w.linear(torch.cat([with_configs(nodes), configs], 2), "encoder.join", 64))
        if attention:
            x = self_attention(w, "blocks.0.self_attention.", x, 4, 16, 1.0)
        for block in (int(attention), int(attention) + 1):
            name = f"blocks.{block}.blocks."
            y = leaky(both_sage(w, name + "0.sage.", x, 64, shared=True))
            x = torch.cat([leaky(w.linear(y, name + "1.linear", 64)), x], 2)
        return head(w, x.mean(1), [64])
    return run


def third_place(w, graph, configs, statistics):
    nodes = torch.cat([opcodes(w, graph, 32), log_features(graph), return_probabilities(16, True)], 1)
    x = F.silu(w.linear(torch.cat([with_configs(nodes), configs], 2), "encoder.join", 128))
    for block in range(4):
        name = f"blocks.{block}.blocks."
        left = F.silu(both_sage(w, name + "0.branches.0.0.sage.", x, 128))
        right = linear_attention(w, name + "0.branches.1.0.linear_attention.", x, 4, 32, bias=False)
        y = F.silu(w.linear(torch.cat([left, right], 2), name + "1.linear", 128))
        x = x + layer_norm(w, y, name + "2.layer_norm.")
    sent = w.linear(x.sum(1), "blocks.4.virtual_node.nn.0", 128).relu()
    x = x + F.silu(w.linear(sent, "blocks.4.virtual_node.nn.2", 128))[:, None]
    return 1e-3 * w.linear(x, "head", 1).sum(1)[:, 0]


def fourth_place(w, graph, configs, statistics):
    """A row for each edge from a configurable node to its operand."""
    chosen = list(range(21, 30)) + [134, 135, 136]
    nodes = torch.cat([opcodes(w, graph, 16), log_features(graph)[:, chosen]], 1)
    edges = [(c, p) for c, p in EDGES.tolist() if c in CONFIG_NODES.tolist()]
    consumers, producers = (torch.tensor(ends) for ends in zip(*edges))
    name = "blocks.0.edge_mlp."
    rows = (w.linear(nodes[consumers], name + "own", 64) +
            w.linear(nodes[producers], name + "neighbour", 64, bias=False))
    f = w.linear(rows.relu(), name + "edge", 16)
    states = configs[:, consumers][:, :, [0, 1, 2, 6, 7, 8, 12, 13]]
    hidden = (w.linear(states, name + "state", 64) +
              w.linear(f.mean(0), name + "mean", 64, bias=False))
    c = w.linear(hidden.relu(), name + "config", 16)
    products = torch.einsum("ef,keg->kfg", f, c).flatten(1)
    return head(w, torch.cat([products, c.mean(1)], 1), [64], activation=torch.relu)


def fifth_place(w, graph, configs, statistics):
    nodes = torch.cat([opcodes(w, graph, 16), log_features(graph),
                       dimension_features(graph["node_features"])], 1)
    x = F.gelu(w.linear(torch.cat([with_configs(nodes), configs], 2), "encoder.join", 128))
    for block in range(4):
        name = f"blocks.{block}.blocks."
        x = x + F.gelu(both_sage(w, name + "1.sage.", layer_norm(w, x, name + "0.layer_norm."), 128))
    return head(w, x.mean(1), [])


def sixth_place(w, graph, configs, statistics):
    nodes = torch.cat([opcodes(w, graph, 16), log_features(graph)], 1)
    x = F.gelu(w.linear(torch.cat([with_configs(nodes), configs], 2), "encoder.join", 256))
    for block in range(4):
        y = w.fill(SAGEConv(256, 256), f"blocks.{block}.blocks.0.sage.")(x, U_TO_V)
        x = x + F.gelu(torch.stack([InstanceNorm(256)(one) for one in y]))
    return head(w, torch.cat([x.mean(1), x.amax(1)], 1), [])


def tenth_place(w, graph, configs, statistics):
    nodes = torch.cat([opcodes(w, graph, 16), log_features(graph)], 1)
    x = with_configs(F.gelu(w.linear(nodes, "encoder.join", 128)))

    def attend(x, block):
        name = f"blocks.{block}.blocks."
        y = linear_attention(w, name + "1.linear_attention.", layer_norm(w, x, name + "0.layer_norm."),
                             4, 32)
        return x + F.gelu(w.linear(y, name + "2.linear", 128))

    for block in range(6):
        x = attend(x, block)
    x = (w.linear(x, "blocks.6.join_config.rows", 128) +
         w.linear(configs, "blocks.6.join_config.states", 128, bias=False))
    for block in range(7, 13):
        x = attend(x, block)
    return head(w, x.mean(1), [])


def fourteenth_place(w, graph, configs, statistics):
    nodes = torch.cat([opcodes(w, graph, 16), scaled(graph, statistics)], 1)
    x = torch.cat([with_configs(nodes), configs], 2)

    def block(x, name):
        sides = []
        for side, edges in enumerate((U_TO_V, CONFIG_EDGES)):
            gat = w.fill(GATConv(x.shape[2], 8, heads=8), f"{name}branches.{side}.0.gat.")
            y = F.gelu(torch.stack([gat(one, edges) for one in x]))
            sides.append(layer_norm(w, y, f"{name}branches.{side}.1.layer_norm."))
        return torch.cat(sides, 2)

    x = block(x, "blocks.0.")
    for i in range(1, 5):
        x = x + block(x, f"blocks.{i}.blocks.0.")
    return head(w, x.mean(1), [128, 128], activation=F.gelu)


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


def channel_attention(w, x, prefix):
    gate = w.linear(w.linear(x, prefix + "squeeze", x.shape[2] // 8).relu(), prefix + "excite", x.shape[2])
    return x * gate.sigmoid()


def instance_norm(x):
    return torch.stack([InstanceNorm(x.shape[2])(one) for one in x])


def first_place_body(w, x, width, cross):
    """Linear, norm, attentions, GELU twice; then two residual blocks of norm, SAGE and attentions. `cross`: the
    attention over configurations, which doubles the channels, is among them. A layer's number counts all
    layers, GELU and dropout among them."""
    def attend(x, prefix, first):
        x = channel_attention(w, x, f"{prefix}{first}.channel_attention.")
        if not cross:
            return x
        temperature = w(f"{prefix}{first + 1}.config_attention.temperature", 1)
        return torch.cat([x, x * (x / temperature).softmax(0)], 2)

    more = int(cross)
    x = F.gelu(attend(instance_norm(w.linear(x, "encoder.join", width)), "blocks.", 1))
    x = w.linear(x, f"blocks.{3 + more}.linear", width)
    x = F.gelu(attend(instance_norm(x), "blocks.", 5 + more))
    for block in (7 + 2 * more, 10 + 2 * more):
        name = f"blocks.{block}.blocks."
        sage = w.fill(SAGEConv(x.shape[2], width), name + "1.sage.")
        x = F.gelu(x + attend(sage(instance_norm(x), U_TO_V), name, 2))
    return x


def first_place_nodes(w, graph, statistics):
    """Opcode, the first 134 columns, and tokens of the layout in the last 6; also what makes tokens of whole
    numbers from -2, which stands for none, to 5."""
    opcode, codes = opcodes(w, graph, 16), w("encoder.code.weight", 8, 4)

    def tokens(values):
        return codes[values.long() + 2].flatten(-2)

    layout = graph["node_features"][:, 134:]
    return torch.cat([opcode, scaled(graph, statistics)[:, :134], tokens(layout)], 1), tokens


def first_place_layout(width, cross):
    def run(w, graph, configs, statistics):
        nodes, tokens = first_place_nodes(w, graph, statistics)
        values = torch.full_like(configs, -2)
        values[:, CONFIG_NODES] = graph["configs"]
        x = torch.cat([with_configs(nodes), tokens(values)], 2)
        return head(w, first_place_body(w, x, width, cross).mean(1), [])
    return run


def first_place_tile(w, graph, configs, statistics):
    """The graph once; the configuration meets it in the head."""
    x = first_place_body(w, first_place_nodes(w, graph, statistics)[0][None], 256, False)[0]
    y = (graph["configs"] - statistics["config_mean"]) * statistics["config_scale"]
    for i in (0, 1):
        y = F.gelu(w.linear(y, f"config.{i}", 256))
    pooled = torch.cat([x.amax(0), x.mean(0)])
    return head(w, torch.cat([y, pooled.expand(CONFIGS, -1)], 1), [256, 256], activation=F.gelu)


def gst(w, graph, configs, statistics):
    """GraphSAGE whose scores of nodes are added up."""
    nodes = torch.cat([opcodes(w, graph, 32), w.linear(log_features(graph), "encoder.node", 32)], 1)
    x = w.linear(torch.cat([with_configs(nodes), configs], 2), "encoder.join", 64).relu()
    for block in range(3):
        x = (x + both_sage(w, f"blocks.{block}.sage.", x, 64)).relu()
    return w.linear(x, "head", 1).sum(1)[:, 0]


THIRTY = [*range(21, 30), *range(93, 108), *range(134, 140)]
WIDE = {"encoder": 64, "widths": (256,) * 4 + (512,) * 4}
SYSTEMS = {
    "tpugraphs_layout_resmodel": resmodel(), "tpugraphs_layout_sage": sage(True),
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
    "harvard": resmodel(), "harvard_ratio": resmodel(ratio=True),
    "harvard_30_columns": resmodel(columns=THIRTY), "harvard_attention": resmodel(attention=True),
    "boston": boston(False), "boston_attention": boston(True), "third_place": third_place,
    "fourth_place": fourth_place, "fifth_place": fifth_place, "sixth_place": sixth_place,
    "tenth_place": tenth_place, "fourteenth_place": fourteenth_place,
    "gst": gst, "first_place_layout": first_place_layout(256, False),
    "first_place_layout_crossattn": first_place_layout(128, True), "first_place_tile": first_place_tile,
    "latenciaga_nlp_diffmat": latenciaga(sage_conv, "log_positive", **WIDE),
    "latenciaga_tile_diffmat": latenciaga(sage_conv, "log_positive", scale=1, **WIDE),
}
RANGES = ("tpugraphs", "harvard", "boston")  # these scale features by their range
STANDARDISED = ("fourteenth", "first")


def main(folder):
    for name, run in SYSTEMS.items():
        graph = dict(zip(("node_features", "opcodes"), graph_inputs(name)), edges=EDGES)
        tile, statistics = "tile" in name, {}
        if not tile:
            graph["config_nodes"] = CONFIG_NODES
        raw = tile_inputs(name) if tile else layout_inputs(name)
        values = raw
        graph["configs"] = raw
        if name.startswith(STANDARDISED):
            statistics = statistics_of(graph["node_features"], "node")
        if name == "first_place_tile":
            statistics |= statistics_of(raw, "config")
        if name.startswith(RANGES):
            statistics = {**range_of(graph["node_features"], "node"),
                          **range_of(raw.flatten(0, -2), "config")}
            values = (raw - statistics["config_mean"]) * statistics["config_scale"]
        w = Weights()
        output = run(w, graph, on_every_node(values) if tile else at_config_nodes(values), statistics)
        save(folder, name, {
            **{f"graph.{key}": value for key, value in graph.items() if key != "configs"}, "configs": raw,
            **{f"statistics.{key}": value for key, value in statistics.items()}, "output": output},
            parameters=w.count)
        print(f"| `{name}` | {w.count} | {(output.max() - output.min()).item():.3g} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
