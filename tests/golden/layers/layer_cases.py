"""Golden cases of single layers: `layer_cases.py FOLDER` writes them and prints the table of README.md.

Needs torch, torch_geometric and safetensors.
"""
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import (GATConv, GATv2Conv, GCNConv, GINConv, GINEConv, GraphNorm, InstanceNorm,
                                PNAConv, SAGEConv)
from torch_geometric.nn.aggr import MeanAggregation, SumAggregation

from case import CONFIG_EDGES, CONFIGS, NODES, U_TO_V, V_TO_U, WIDTH, save_layer

OUT = 6  # channels behind a layer that changes the width


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Sage(nn.Module):
    """SAGEConv in one direction, or in both with weights of their own for each."""

    def __init__(self, aggregation, direction, out=OUT, both="sum", normalise=False):
        super().__init__()
        self.direction, self.both = direction, both
        whole = SAGEConv(WIDTH, out, aggr=aggregation, normalize=normalise)
        self.lin_l, self.lin_r = whole.lin_l, whole.lin_r
        self.conv = [whole]
        if direction == "both" and both == "sum":
            reverse = SAGEConv(WIDTH, out, aggr=aggregation, root_weight=False, bias=False)
            self.lin_l_1 = reverse.lin_l
            self.conv.append(reverse)
        if direction == "both" and both == "concat":
            reverse = SAGEConv(WIDTH, out, aggr=aggregation)
            self.reverse = nn.ModuleDict({"lin_l": reverse.lin_l, "lin_r": reverse.lin_r})
            self.conv.append(reverse)

    def forward(self, x):
        if self.direction != "both":
            edges = {"u_to_v": U_TO_V, "v_to_u": V_TO_U, "config": CONFIG_EDGES}[self.direction]
            return self.conv[0](x, edges)
        if self.both == "shared":
            conv = self.conv[0]
            around = [conv.propagate(edges, x=(x, x), size=None) for edges in (U_TO_V, V_TO_U)]
            return self.lin_l(sum(around)) + self.lin_r(x)
        there, back = self.conv[0](x, U_TO_V), self.conv[1](x, V_TO_U)
        return there + back if self.both == "sum" else torch.cat([there, back], -1)


class Graph(nn.Module):
    """A layer of PyTorch Geometric that takes x and edges, along one direction or both at once."""

    def __init__(self, conv, direction):
        super().__init__()
        self.conv = conv
        self.edges = {"u_to_v": U_TO_V, "v_to_u": V_TO_U,
                      "both": torch.cat([U_TO_V, V_TO_U], 1)}[direction]

    def forward(self, x):
        return self.conv(x, self.edges)

    def named_parameters(self, *_, **__):
        return self.conv.named_parameters()


class EachConfig(Graph):
    """The same for layers that take one configuration at a time."""

    def forward(self, x):
        return torch.stack([self.conv(one, self.edges) for one in x])


class RightGcn(nn.Module):
    """[D^-1 (A + I) x W + b for both directions], each with its own degrees, weight and bias."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(
            GCNConv(WIDTH, OUT, normalize=False, add_self_loops=False) for _ in range(2))

    def forward(self, x):
        parts = []
        for conv, edges in zip(self.convs, (U_TO_V, V_TO_U)):
            edges = torch.cat([edges, torch.arange(NODES).expand(2, -1)], 1)
            parts.append(conv(x, edges, (1 / edges[1].bincount().to(x.dtype))[edges[1]]))
        return torch.cat(parts, -1)


class RightSumGcn(nn.Module):
    """(M + M' + 1) x W + b with M = D^-1 (A + I) along u_to_v, D the row sums of A + I; without
    loops M = D^-1 A, 0 where a node has no neighbours."""

    def __init__(self, loops=True):
        super().__init__()
        self.loops = loops
        self.lin, self.bias = nn.Linear(WIDTH, OUT, bias=False), nn.Parameter(torch.zeros(OUT))

    def forward(self, x):
        matrix = self.loops * torch.eye(NODES, dtype=x.dtype)
        matrix.index_put_((U_TO_V[1], U_TO_V[0]), torch.ones((), dtype=x.dtype), accumulate=True)
        matrix = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
        return self.lin(matrix @ x + matrix.T @ x + x) + self.bias


class Gine(Graph):
    """GINEConv whose edges have one learned vector for each direction."""

    def __init__(self, conv, direction):
        super().__init__(conv, direction)
        for i in range(self.edges.shape[1] // U_TO_V.shape[1]):
            conv.register_parameter("edge" + (f"_{i}" if i else ""), nn.Parameter(torch.zeros(WIDTH)))

    def forward(self, x):
        edges = [p for name, p in self.conv.named_parameters() if name.startswith("edge")]
        return self.conv(x, self.edges, torch.stack(edges).repeat_interleave(U_TO_V.shape[1], 0))


def pna(average_log_degree):
    conv = PNAConv(WIDTH, OUT, ["mean", "max", "min", "std"],
                   ["identity", "amplification", "attenuation"], torch.ones(3, dtype=torch.long))
    conv.aggr_module.avg_deg_log.fill_(average_log_degree)
    return conv


class Prelu(nn.Module):
    """nn.PReLU over the last dimension."""

    def __init__(self, slopes):
        super().__init__()
        self.weight = nn.PReLU(slopes).weight

    def forward(self, x):
        return F.prelu(x.transpose(1, 2), self.weight).transpose(1, 2)


class VirtualNode(nn.Module):
    """x + relu(nn(what an aggregation of PyTorch Geometric makes of all nodes of x))."""

    def __init__(self, aggregation, hidden):
        super().__init__()
        self.aggregation = aggregation
        self.nn = nn.Sequential(nn.Linear(WIDTH, hidden), nn.ReLU(), nn.Linear(hidden, WIDTH))

    def forward(self, x):
        return x + self.nn(self.aggregation(x, dim=1)).relu()


class LinearAttention(nn.Module):
    """Between the nodes of each configuration, with elu + 1 in the place of a softmax."""

    def __init__(self, heads, width, bias, channels=WIDTH):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(channels, heads * width, bias=bias)
                                            for _ in range(3))

    def forward(self, x):
        q, k, v = (layer(x).unflatten(2, (self.heads, -1))
                   for layer in (self.query, self.key, self.value))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        y = torch.einsum("cnha,cmha,cmhb->cnhb", q, k, v)
        return (y / (torch.einsum("cnha,cmha->cnh", q, k)[..., None] + 1e-6)).flatten(2)


class SelfAttention(nn.Module):
    """Softmax attention between the nodes of each configuration; a share is multiplied by `others`,
    and by 1 - others more for each edge between the two nodes."""

    def __init__(self, heads, width, others, direction, channels=WIDTH):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(channels, heads * width) for _ in range(3))
        self.weights = torch.full((NODES, NODES), others)
        for edges in {"u_to_v": [U_TO_V], "v_to_u": [V_TO_U], "both": [U_TO_V, V_TO_U]}[direction]:
            for neighbour, node in edges.T.tolist():
                self.weights[node, neighbour] += 1 - others

    def forward(self, x):
        q, k, v = (layer(x).unflatten(2, (self.heads, -1))
                   for layer in (self.query, self.key, self.value))
        logits = torch.einsum("cnha,cmha->chnm", q, k) / q.shape[3] ** 0.5
        shares = (logits + self.weights.to(x.dtype).log()).softmax(3)
        return torch.einsum("chnm,cmha->cnha", shares, v).flatten(2)


class OverNodes(nn.Module):
    """A norm of PyTorch Geometric, each configuration a graph of its own."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x):
        graph = torch.arange(CONFIGS).repeat_interleave(NODES)
        return self.norm(x.reshape(CONFIGS * NODES, -1), graph).reshape(x.shape)

    def named_parameters(self, *_, **__):
        return self.norm.named_parameters()


class Mlp(nn.Module):
    def __init__(self, widths, activation, activate_last=False):
        super().__init__()
        self.lins = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.activation, self.activate_last = activation, activate_last

    def forward(self, x):
        for i, linear in enumerate(self.lins):
            x = linear(x)
            if i + 1 < len(self.lins) or self.activate_last:
                x = self.activation(x)
        return x


class Residual(nn.Module):
    """relu(sage(x) + x), relu(sage(x) + skip(x)) or [relu(sage(x)), x]."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        out = WIDTH if kind == "same" else OUT
        self.sage = Sage("mean", "u_to_v", out)
        if kind == "projected":
            self.skip = nn.Linear(WIDTH, OUT, bias=False)

    def forward(self, x):
        y = self.sage(x)
        if self.kind == "concat":
            return torch.cat([y.relu(), x], -1)
        return (y + (x if self.kind == "same" else self.skip(x))).relu()


class ChannelAttention(nn.Module):
    """x * sigmoid(linear2(relu(linear1(x)))), per row."""

    def __init__(self, width, reduction=8):
        super().__init__()
        self.linear1 = nn.Linear(width, width // reduction)
        self.linear2 = nn.Linear(width // reduction, width)

    def forward(self, x):
        return x * self.linear2(self.linear1(x).relu()).sigmoid()


class CrossConfigAttention(nn.Module):
    """[x, x * softmax over the configurations of x / temperature]."""

    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([x, x * (x / self.temperature).softmax(0)], -1)


class Readout(nn.Module):
    """The poolings over nodes side by side, then a Linear or an MLP to one score."""

    def __init__(self, poolings, hidden=None):
        super().__init__()
        self.poolings = poolings
        width = WIDTH * len(poolings)
        self.head = nn.Linear(width, 1) if hidden is None else Mlp([width, hidden, 1], F.relu)

    def forward(self, x):
        pools = {"sum": lambda x: x.sum(1), "mean": lambda x: x.mean(1), "max": lambda x: x.amax(1)}
        return self.head(torch.cat([pools[name](x) for name in self.poolings], -1))[:, 0]


def cases():
    """Name, module, layer, options, and the width before the layer."""
    for aggregation in ("mean", "sum", "max"):
        for direction in ("u_to_v", "v_to_u"):
            yield (f"sage_{aggregation}_{direction}", Sage(aggregation, direction), "sage",
                   {"aggregation": aggregation, "direction": direction})
        for both in ("sum", "concat"):
            yield (f"sage_{aggregation}_both_{both}", Sage(aggregation, "both", both=both), "sage",
                   {"aggregation": aggregation, "direction": "both", "both": both})
    yield ("sage_sum_config_edges", Sage("sum", "config"), "sage",
           {"aggregation": "sum", "direction": "config"})
    yield ("sage_mean_normalised", Sage("mean", "u_to_v", normalise=True), "sage",
           {"aggregation": "mean", "direction": "u_to_v", "normalise": True})
    for direction in ("u_to_v", "v_to_u"):
        yield (f"gcn_{direction}", Graph(GCNConv(WIDTH, OUT), direction), "gcn",
               {"direction": direction, "self_loops": True})
        mlp = nn.Sequential(nn.Linear(WIDTH, OUT), nn.ReLU(), nn.Linear(OUT, OUT))
        yield (f"gin_{direction}", Graph(GINConv(mlp, eps=0.1, train_eps=True), direction), "gin",
               {"direction": direction, "hidden": OUT, "train_eps": True})
    for self_loops in (True, False):
        yield (f"gcn_both_{'with' if self_loops else 'without'}_loops",
               Graph(GCNConv(WIDTH, OUT, add_self_loops=self_loops), "both"), "gcn",
               {"direction": "both", "self_loops": self_loops})
    yield ("gcn_right", RightGcn(), "gcn",
           {"direction": "both", "self_loops": True, "normalise": "right"})
    yield ("gcn_right_sum", RightSumGcn(), "gcn",
           {"direction": "both", "self_loops": True, "normalise": "right_sum"})
    yield ("gcn_right_sum_without_loops", RightSumGcn(False), "gcn",
           {"direction": "both", "self_loops": False, "normalise": "right_sum"})
    for aggregation in ("sum", "mean"):
        yield (f"sage_{aggregation}_shared", Sage(aggregation, "both", both="shared"), "sage",
               {"aggregation": aggregation, "direction": "both", "both": "shared"})
    yield "l2_norm", Function(lambda x: F.normalize(x, dim=-1)), "l2_norm", {}
    for name, conv in (("gat", GATConv), ("gatv2", GATv2Conv)):
        for direction, heads, concat in (("u_to_v", 2, True), ("v_to_u", 1, True),
                                         ("both", 3, False)):
            yield (f"{name}_{direction}", EachConfig(
                conv(WIDTH, OUT, heads, concat, negative_slope=0.2), direction), name,
                   {"direction": direction, "heads": heads, "join": "concat" if concat else "mean"})
    for direction in ("u_to_v", "both"):
        mlp = nn.Sequential(nn.Linear(WIDTH, OUT), nn.ReLU(), nn.Linear(OUT, OUT))
        yield (f"gine_{direction}", Gine(GINEConv(mlp, eps=0.1, train_eps=True), direction), "gine",
               {"direction": direction, "hidden": OUT, "train_eps": True})
    for direction in ("u_to_v", "v_to_u"):
        yield (f"pna_{direction}", EachConfig(pna(0.75), direction), "pna",
               {"direction": direction, "average_log_degree": 0.75})
    for name, aggregation in (("sum", SumAggregation()), ("mean", MeanAggregation())):
        yield (f"virtual_node_{name}", VirtualNode(aggregation, 5), "virtual_node",
               {"hidden": 5, "aggregation": name})
    for heads, direction in ((2, "both"), (1, "v_to_u")):
        yield (f"self_attention_{direction}", SelfAttention(heads, 3, 0.1, direction),
               "self_attention", {"heads": heads, "others": 0.1, "direction": direction})
    for heads, bias in ((2, True), (1, False)):
        yield (f"linear_attention_{heads}", LinearAttention(heads, 3, bias), "linear_attention",
               {"heads": heads, "bias": bias})
    yield "prelu", Prelu(1), "prelu", {}
    yield "prelu_per_channel", Prelu(WIDTH), "prelu", {"per_channel": True}
    yield "linear", Mlp([WIDTH, OUT], None), "mlp", {"widths": [OUT]}
    yield ("mlp", Mlp([WIDTH, 5, OUT], lambda x: F.leaky_relu(x, 0.01)), "mlp",
           {"widths": [5, OUT], "activation": "leaky_relu"})
    yield ("mlp_activated", Mlp([WIDTH, 5, OUT], F.gelu, True), "mlp",
           {"widths": [5, OUT], "activation": "gelu", "activate_last": True})
    for kind in ("same", "projected", "concat"):
        yield f"residual_{kind}", Residual(kind), "residual", {"kind": kind}
    yield "layer_norm", nn.LayerNorm(WIDTH), "layer_norm", {"eps": 1e-5}
    yield "instance_norm", OverNodes(InstanceNorm(WIDTH)), "instance_norm", {"eps": 1e-5}
    yield "graph_norm", OverNodes(GraphNorm(WIDTH)), "graph_norm", {"eps": 1e-5}
    activations = {"relu": F.relu, "leaky_relu": lambda x: F.leaky_relu(x, 0.01), "gelu": F.gelu,
                   "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "elu": F.elu,
                   "leaky_relu_0.2": lambda x: F.leaky_relu(x, 0.2)}
    for name, function in activations.items():
        options = {"slope": 0.01} if name == "leaky_relu" else {}
        yield name, Function(function), "activation", {"kind": name, **options}
    yield ("channel_attention", ChannelAttention(16), "channel_attention", {"reduction": 8}, 16)
    yield "cross_config_attention", CrossConfigAttention(), "cross_config_attention", {}
    for poolings in (["sum"], ["mean"], ["max"], ["sum", "mean"], ["max", "mean"],
                     ["sum", "mean", "max"]):
        name = "_".join(poolings)
        yield f"readout_{name}", Readout(poolings), "readout", {"pool": poolings, "head": "affine"}
        yield (f"readout_{name}_mlp", Readout(poolings, 5), "readout",
               {"pool": poolings, "head": "mlp", "hidden": 5, "activation": "relu"})


def main(folder):
    for name, module, layer, options, *width in cases():
        names, shape = save_layer(folder, name, module, layer, options, *width)
        settings = ", ".join(f"{key} {value}" for key, value in options.items())
        print(f"| `{name}` | {layer} | {settings} | {', '.join(f'`{n}`' for n in names)} | {shape} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
