"""The network of a member as a module of PyTorch, made of layers of PyTorch Geometric and torch: `Run.to_pyg`.

A separate module, since it needs both packages. K configurations of N nodes are K N rows, all nodes of the first
configuration first. Parameters have the names of docs/weights.md.
"""

# mypy: allow-subclassing-any

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import Error
from .optional import load

__all__ = ["Network"]

torch: Any = load("torch", "torch")
geometric: Any = load("torch_geometric.nn", "torch_geometric")
nn: Any = torch.nn
F: Any = nn.functional

_ACTIVATIONS: dict[str, Callable[[], Any]] = {
    "none": nn.Identity,
    "relu": nn.ReLU,
    "leaky_relu": functools.partial(nn.LeakyReLU, 0.01),
    "leaky_relu_0.2": functools.partial(nn.LeakyReLU, 0.2),
    "gelu": nn.GELU,
    "gelu_tanh": functools.partial(nn.GELU, "tanh"),
    "silu": nn.SiLU,
    "elu": nn.ELU,
}


class Spec:
    """A map of an experiment, with the weights for it. A layer takes its keys off; what is left was not built."""

    def __init__(self, where: str, keys: Mapping[str, Any], weights: Mapping[str, Any], prefix: str) -> None:
        self.where, self.keys, self.weights, self.prefix = where, dict(keys), weights, prefix

    def key(self, name: str, fallback: Any) -> Any:
        return self.keys.pop(name, fallback)

    def __getitem__(self, name: str) -> Any:
        return self.weights[self.prefix + name]

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.weights

    def sizes(self, name: str) -> tuple[int, int]:
        """Inputs and outputs of a Linear."""
        outputs, inputs = self[name + ".weight"].shape
        return inputs, outputs

    def linear(self, name: str) -> Any:
        return nn.Linear(*self.sizes(name), bias=name + ".bias" in self)

    def linears(self, *names: str) -> Any:
        return nn.ModuleDict({name: self.linear(name) for name in names if name + ".weight" in self})

    def mlp(self) -> Any:
        return nn.Sequential(self.linear("nn.0"), nn.ReLU(), self.linear("nn.2"))

    def only(self, name: str, known: str) -> None:
        """Takes a key off if it has this value. Otherwise the key is left, which is an error."""
        if self.keys.get(name) == known:
            del self.keys[name]

    def end(self, *sizes: str) -> None:
        """Raises Error for a key that changes the network and was not taken. `sizes`: keys that tensors determine."""
        for name, value in self.keys.items():
            if name not in sizes and value not in (None, False, 0, "none", []):
                raise Error(f"{self.where}.{name}={value}: no layer of PyTorch does this (run.to_pyg)")


class Rows:
    """What the layers of a call share."""

    def __init__(self, data: Any, tile: bool) -> None:
        self.configs, self.nodes, self.edges = data.config.shape[1], data.x.shape[0], data.edge_index
        device = data.x.device
        self.numbers = torch.arange(self.configs, device=device).unsqueeze(1)
        #: [N] the graph of a node.
        self.graph = torch.zeros(self.nodes, dtype=torch.long, device=device) if data.batch is None else data.batch
        self.graphs = 1 if data.batch is None else data.num_graphs
        #: [K N] the pair of configuration and graph of a row.
        self.group = (self.numbers * self.graphs + self.graph).flatten()
        configurable = torch.full((self.nodes, 1), tile, device=device)
        configurable[data.config_index] = True
        #: [K N, 1] bool.
        self.configurable = configurable.repeat(self.configs, 1)
        #: [K N, F] the encoded configuration of a row.
        self.states: Any = None

    def pool(self, x: Any, kind: str = "sum") -> Any:
        """[K graphs, C], over the nodes of each graph and configuration."""
        pools = {"sum": geometric.global_add_pool, "mean": geometric.global_mean_pool, "max": geometric.global_max_pool}
        if kind in pools:
            return pools[kind](x, self.group, self.configs * self.graphs)
        own = self.pool(x * self.configurable if kind.startswith("config_") else x)
        if kind == "config_mean":
            return own / self.pool(self.configurable.to(x.dtype)).clamp(min=1)
        return F.normalize(own, dim=1) if kind.endswith("l2_sum") else own


def _edges(directions: Sequence[str], rows: Rows) -> Any:
    """[2, K m for each direction]: the source and target rows of messages."""
    ways = [rows.edges if way == "consumer_to_producer" else rows.edges.flip(0) for way in directions]
    return torch.cat([(way.unsqueeze(1) + rows.numbers * rows.nodes).flatten(1) for way in ways], 1)


def _itself(rows: Rows) -> Rows:
    return rows


_group = operator.attrgetter("group")


class Layer(nn.Module):
    """A layer under the name of its kind, then the activation. `takes`: its inputs besides the rows."""

    def __init__(
        self, kind: str, module: Any, takes: Callable[[Rows], Any] | None, activation: str, residual: bool
    ) -> None:
        super().__init__()
        self.kind, self.takes, self.residual = kind, takes, residual
        self.add_module(kind, module)
        self.behind = _ACTIVATIONS[activation]()

    def forward(self, x: Any, rows: Rows) -> Any:
        module = getattr(self, self.kind)
        y = module(x) if self.takes is None else module(x, self.takes(rows))
        return self.behind(x + y if self.residual and x.shape == y.shape else y)


class Sage(geometric.MessagePassing):
    """SAGEConv along several directions or none: a lin_l for each, with `concat` a lin_r too; `shared`: one for all."""

    def __init__(self, spec: Spec, directions: Sequence[str], join: str) -> None:
        super().__init__(aggr=spec.key("aggregation", "mean"))
        self.directions, self.join, self.normalise = directions, join, spec.key("normalise", False)
        for name, linear in spec.linears("lin_l", "lin_l_1", "lin_r", "lin_r_1").items():
            self.add_module(name, linear)

    def message(self, x_j: Any) -> Any:
        return x_j

    def forward(self, x: Any, rows: Rows) -> Any:
        around = [self.propagate(_edges([way], rows), x=x) for way in self.directions]
        if self.join == "shared":
            around = [sum(around)]
        parts = [getattr(self, "lin_l" + "_1" * i)(own) for i, own in enumerate(around)]
        if self.join == "concat":
            y = torch.cat([part + getattr(self, "lin_r" + "_1" * i)(x) for i, part in enumerate(parts)], 1)
        else:
            y = sum(parts) + self.lin_r(x)
        return F.normalize(y, dim=1) if self.normalise else y


class Gine(geometric.GINEConv):
    """GINEConv with a vector for the edges of each direction."""

    def __init__(self, spec: Spec, directions: Sequence[str]) -> None:
        super().__init__(spec.mlp(), spec.key("eps", 0), spec.key("train_eps", False))
        self.directions = directions
        self.vectors = ["edge", "edge_1"][: len(directions)]
        for name in self.vectors:
            self.register_parameter(name, nn.Parameter(torch.empty_like(spec[name])))

    def forward(self, x: Any, rows: Rows) -> Any:
        each = rows.configs * rows.edges.shape[1]
        features = torch.cat([getattr(self, name).expand(each, -1) for name in self.vectors])
        return super().forward(x, _edges(self.directions, rows), features)


class VirtualNode(nn.Module):
    """x + act(nn(all nodes of the configuration, aggregated))."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.aggregation, self.nn = spec.key("aggregation", "sum"), spec.mlp()
        self.behind = _ACTIVATIONS[spec.key("activation", "relu")]()

    def forward(self, x: Any, rows: Rows) -> Any:
        return x + self.behind(self.nn(rows.pool(x, self.aggregation)))[rows.group]


class Norm(nn.Module):
    """Normalises each row by mean and deviation, or by the L2 norm. With parameters, LayerNorm is used instead."""

    def __init__(self, eps: float | None) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, x: Any) -> Any:
        return F.normalize(x, dim=1) if self.eps is None else F.layer_norm(x, x.shape[1:], eps=self.eps)


class ChannelAttention(nn.Module):
    """x sigmoid(excite(relu(squeeze(x))))."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.squeeze, self.excite = spec.linear("squeeze"), spec.linear("excite")

    def forward(self, x: Any) -> Any:
        return x * self.excite(self.squeeze(x).relu()).sigmoid()


class ConfigAttention(nn.Module):
    """[x, x softmax(x / temperature)], the softmax over the configurations of a node."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(1))

    def forward(self, x: Any, rows: Rows) -> Any:
        share = (x / self.temperature).view(rows.configs, rows.nodes, -1).softmax(0)
        return torch.cat([x, x * share.view(x.shape)], 1)


class JoinConfig(nn.Module):
    """A Linear over [x | configuration], or the two side by side."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        for name, linear in spec.linears("rows", "states").items():
            self.add_module(name, linear)

    def forward(self, x: Any, rows: Rows) -> Any:
        if not hasattr(self, "rows"):
            return torch.cat([x, rows.states], 1)
        return self.rows(x) + self.states(rows.states)


class Residual(nn.Module):
    """x + f(x), x W + f(x) or [f(x), x]."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        kind = spec.key("skip", "identity")
        self.concat = kind == "concat"
        self.blocks = _layers(f"{spec.where}.blocks", spec.key("blocks", []), spec.weights, f"{spec.prefix}blocks.")
        self.skip = spec.linear("skip") if kind == "project" else nn.Identity()

    def forward(self, x: Any, rows: Rows) -> Any:
        y = x
        for block in self.blocks:
            y = block(y, rows)
        return torch.cat([y, x], 1) if self.concat else self.skip(x) + y


def _directions(spec: Spec) -> list[str]:
    found: list[str] = spec.key("directions", ["consumer_to_producer"])
    for way in found:
        if way.startswith("config_"):
            raise Error(f"{spec.where}.directions={way}: the data sets of Python have no config edges (run.to_pyg)")
    return found


def _sage(spec: Spec) -> tuple[Any, Any]:
    directions, join = _directions(spec), spec.key("join", "sum")
    if len(directions) != 1:
        return Sage(spec, directions, join), _itself
    conv = geometric.SAGEConv(
        *spec.sizes("lin_l"), aggr=spec.key("aggregation", "mean"), normalize=spec.key("normalise", False)
    )
    return conv, functools.partial(_edges, directions)


def _gcn(spec: Spec) -> tuple[Any, Any]:
    spec.only("normalise", "symmetric")
    conv = geometric.GCNConv(*spec.sizes("lin"), add_self_loops=spec.key("self_loops", True))
    return conv, functools.partial(_edges, _directions(spec))


def _gat(make: Any, linear: str, spec: Spec) -> tuple[Any, Any]:
    inputs, outputs = spec.sizes(linear)
    heads, join, slope = spec.key("heads", 1), spec.key("join", "concat"), spec.key("negative_slope", 0.2)
    conv = make(inputs, outputs // heads, heads, concat=join == "concat", negative_slope=slope)
    return conv, functools.partial(_edges, _directions(spec))


def _gin(spec: Spec) -> tuple[Any, Any]:
    conv = geometric.GINConv(spec.mlp(), spec.key("eps", 0), spec.key("train_eps", False))
    return conv, functools.partial(_edges, _directions(spec))


def _layer_norm(spec: Spec) -> tuple[Any, Any]:
    eps = spec.key("eps", 1e-5)
    return nn.LayerNorm(len(spec["weight"]), eps) if spec.key("affine", True) else Norm(eps), None


def _dropout(spec: Spec) -> tuple[Any, Any]:
    spec.only("drop", "channels")
    spec.key("scope", "row")  # which rows share a mask: here each row has its own
    return nn.Dropout(spec.key("rate", 0.2)), None


def _instance_norm(spec: Spec) -> tuple[Any, Any]:
    affine = spec.key("affine", False)
    width = len(spec["weight"]) if affine else 1
    return geometric.InstanceNorm(width, spec.key("eps", 1e-5), affine=affine), _group


# The maker of each layer, and its inputs besides the rows.
_LAYERS: dict[str, Callable[[Spec], tuple[Any, Any]]] = {
    "sage": _sage,
    "gcn": _gcn,
    "gat": functools.partial(_gat, geometric.GATConv, "lin"),
    "gatv2": functools.partial(_gat, geometric.GATv2Conv, "lin_l"),
    "gin": _gin,
    "gine": lambda spec: (Gine(spec, _directions(spec)), _itself),
    "virtual_node": lambda spec: (VirtualNode(spec), _itself),
    "linear": lambda spec: (nn.Linear(*reversed(spec["weight"].shape), bias="bias" in spec), None),
    "activation": lambda spec: (_ACTIVATIONS[spec.key("kind", "relu")](), None),
    "prelu": lambda spec: (nn.PReLU(len(spec["weight"])), None),
    "layer_norm": _layer_norm,
    "l2_norm": lambda spec: (Norm(None), None),
    "instance_norm": _instance_norm,
    "graph_norm": lambda spec: (geometric.GraphNorm(len(spec["weight"]), spec.key("eps", 1e-5)), _group),
    "channel_attention": lambda spec: (ChannelAttention(spec), None),
    "config_attention": lambda spec: (ConfigAttention(), _itself),
    "dropout": _dropout,
    "join_config": lambda spec: (JoinConfig(spec), _itself),
}


def _layers(where: str, blocks: Sequence[Mapping[str, Any]], weights: Mapping[str, Any], prefix: str) -> Any:
    made: list[Any] = []
    for number, block in enumerate(blocks):
        for _ in range(block.get("repeat", 1)):
            kind, own = block["layer"], f"{prefix}{len(made)}."
            if kind == "residual":
                spec = Spec(f"{where}[{number}]", block, weights, own)
                made.append(Residual(spec))
            elif kind in _LAYERS:
                spec = Spec(f"{where}[{number}]", block, weights, f"{own}{kind}.")
                module, takes = _LAYERS[kind](spec)
                made.append(Layer(kind, module, takes, spec.key("activation", "none"), spec.key("residual", False)))
            else:
                raise Error(f"{where}[{number}].layer={kind}: no layer of PyTorch does this (run.to_pyg)")
            spec.end("layer", "repeat", "width", "hidden", "bias", "initialise", "bias_value", "reduction",
                     "temperature", "per_channel")
    return nn.ModuleList(made)


class Features(nn.Module):
    """Transformed columns of nodes or configurations, then a Linear if there is one."""

    def __init__(self, spec: Spec, name: str) -> None:
        super().__init__()
        self.transform = spec.key(f"{name}_transform", "raw")
        if self.transform in ("standardised", "min_max"):
            for statistic in ("mean", "scale"):
                self.register_buffer(statistic, torch.empty_like(spec[f"{name}.{statistic}"]))
        self.linear = f"{name}.weight" in spec
        if self.linear:
            self.weight, self.bias = spec.linear(name).parameters()

    def forward(self, x: Any) -> Any:
        if self.transform == "log":
            x = x.sign() * x.abs().log1p()
        elif self.transform == "log_positive":
            x = x.relu().log1p()
        elif self.transform != "raw":
            x = (x - self.mean) * self.scale
        return F.linear(x, self.weight, self.bias) if self.linear else x


class Encoder(nn.Module):
    """The rows before the first layer; also `rows.states`."""

    def __init__(self, spec: Spec, tile: bool, layout_columns: str) -> None:
        super().__init__()
        for name in ("opcode", "code"):
            if f"{name}.weight" in spec:
                self.add_module(name, nn.Embedding(*spec[f"{name}.weight"].shape))
        self.embeds_states = hasattr(self, "code") and not tile
        self.columns, self.layout = _columns(spec.key("node_columns", "all")), _columns(layout_columns)
        self.node, self.config = Features(spec, "node"), Features(spec, "config")
        self.config_scale = spec.key("config_scale", 1)
        self.early = spec.key("join", "early") == "early"
        self.join = spec.linear("join") if "join.weight" in spec else nn.Identity()
        self.activation = _ACTIVATIONS[spec.key("activation", "relu")]()
        spec.end("opcode_width", "node_width", "code_width", "width", "initialise", "bias_value")

    def states(self, config: Any) -> Any:
        """Of configurations [..., F]."""
        encoded = self.code(config.long() + 2).flatten(-2) if self.embeds_states else self.config(config)
        return encoded * self.config_scale

    def forward(self, data: Any, rows: Rows, features: Any, config: Any) -> Any:
        parts = [self.node(features[:, self.columns])]
        if hasattr(self, "opcode"):
            parts.insert(0, self.opcode(data.opcode))
        if hasattr(self, "code"):
            parts.append(self.code(features[:, self.layout].long() + 2).flatten(1))
        none = -2 if self.embeds_states else 0  # at nodes without a configuration
        own = torch.full_like(config[:1, :1], none).repeat(rows.configs, rows.nodes, 1)
        if len(data.config_index):
            own[:, data.config_index] = config.transpose(0, 1)
        elif bool(rows.configurable.any()):
            own = config[rows.graph].transpose(0, 1)  # of a tile collection
        rows.states = self.states(own.flatten(0, 1))
        if not self.embeds_states:
            rows.states = rows.states * rows.configurable
        x = torch.cat(parts, 1).repeat(rows.configs, 1)
        return self.activation(self.join(torch.cat([x, rows.states], 1) if self.early else x))


def _columns(text: str) -> Any:
    """The numbers of "0-133,139"; "all" gives all."""
    if text == "all":
        return slice(None)
    found: list[int] = []
    for part in text.split(",") if text != "none" else []:
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


class Network(nn.Module):
    """One score for each configuration of `data`, as graph.to_pyg(configs=...) or slate.to_pyg() makes it; a lower one
    is faster.

    [K], or [graphs, K] for a torch_geometric.data.Batch. Parameters are named as in docs/weights.md, so that
    `tpudist weights import` takes back what PyTorch trained further.
    """

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
        super().__init__()
        model, data = dict(config["model"]), config["data"]
        self.tile = str(data["collection"]).strip("['").startswith("tile")  # all collections of a list have one kind
        preset, blocks = model["preset"], model["blocks"]
        if not blocks:
            count = sum(name.endswith("lin_l.weight") for name in weights)
            blocks = [{"layer": "sage", "repeat": count, "activation": "relu", "residual": preset == "latenciaga_nlp"}]
        columns = (data.get("schema") or {"layout_columns": "134-139"})["layout_columns"]
        self.encoder = Encoder(Spec("model.encoder", model["encoder"], weights, "encoder."), self.tile, columns)
        self.blocks = _layers("model.blocks", blocks, weights, "blocks.")
        spec = Spec("model.readout", model["readout"], weights, "")
        self.pools = spec.key("pool", "sum").split("+")
        self.joins_config, self.scale = spec.key("join_config", False), spec.key("scale", 1)
        widths = [len(spec.key(name, [])) for name in ("config_widths", "widths")]
        self.config = nn.ModuleList(spec.linear(f"config.{i}") for i in range(widths[0]))
        self.head = spec.linear("head")
        for i in range(widths[1]):
            self.head.add_module(str(i), spec.linear(f"head.{i}"))
        self.activation = _ACTIVATIONS[spec.key("activation", "relu")]()
        spec.end("bias", "violation_order", "violation_unset")  # these two only define violation_ratio
        Spec("model", {key: model[key] for key in model.keys() - {"encoder", "blocks", "readout"}}, {}, "").end(
            "preset", "engine"
        )
        # A value that is not trained, such as GINConv's eps, is a buffer there and not in the file.
        self.load_state_dict({**self.state_dict(), **weights})
        self.eval()

    def forward(self, data: Any) -> Any:
        rows, kind = Rows(data, self.tile), self.head.weight.dtype
        config = data.config.to(kind)
        x = self.encoder(data, rows, data.x.to(kind), config)
        for block in self.blocks:
            x = block(x, rows)
        parts = [rows.pool(x, pool) for pool in self.pools]
        if self.joins_config or len(self.config):
            own = self.encoder.states(config.transpose(0, 1).flatten(0, 1))
            for linear in self.config:
                own = self.activation(linear(own))
            parts.insert(0, own)
        pooled = torch.cat(parts, 1)
        for linear in self.head.children():
            pooled = self.activation(linear(pooled))
        scores = F.linear(pooled, self.head.weight)
        if self.head.bias is not None:
            # The Linear comes before the sum over nodes if nothing else does.
            of_nodes = self.pools == ["sum"] and len(parts) == 1 and not list(self.head.children())
            scores = scores + self.head.bias * (rows.pool(torch.ones_like(x[:, :1])) if of_nodes else 1)
        scores = (self.scale * scores).view(rows.configs, rows.graphs).T
        return scores if data.batch is not None else scores[0]
