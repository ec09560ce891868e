"""The 2nd place's networks, ListMLE and one graph, as users of PyTorch Geometric write them."""
import numpy as np
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import SAGEConv, global_add_pool

OPCODES, NODE_FEATURES, CONFIG_FEATURES = 120, 140, 18

# Width after the encoder, widths of the SAGE layers, residual where widths agree, how neighbours are
# aggregated. alexnet is that of experiments/alexnet.yaml.
PRESETS = {
    "latenciaga_xla": (32, [64, 64, 128, 128, 256, 256], False, "mean"),
    "latenciaga_nlp": (64, [256] * 4 + [512] * 4, True, "mean"),
    "alexnet": (32, [64] * 6, False, "max"),
}


class Network(torch.nn.Module):
    def __init__(self, preset):
        super().__init__()
        width, widths, self.residual, aggregation = PRESETS[preset]
        self.opcode = torch.nn.Embedding(OPCODES, 12)
        self.node = torch.nn.Linear(NODE_FEATURES, 20)
        self.join = torch.nn.Linear(12 + 20 + CONFIG_FEATURES, width)
        self.convs = torch.nn.ModuleList(SAGEConv(a, b, aggr=aggregation)
                                         for a, b in zip([width, *widths], widths))
        self.head = torch.nn.Linear(widths[-1], 1)

    def forward(self, x, opcode, config, edges, graph_of_node, graphs):
        """Scores of a batch of graphs, [graphs]; a larger score means slower."""
        x = torch.cat([self.opcode(opcode), self.node(x), config], dim=1)
        x = self.join(x).relu()
        for conv in self.convs:
            y = conv(x, edges)
            x = (y + x if self.residual and y.shape == x.shape else y).relu()
        return 1e-3 * global_add_pool(self.head(x), graph_of_node, graphs).view(-1)

    def optimizer(self):
        body = [p for name, p in self.named_parameters() if not name.startswith("head.")]
        groups = [{"params": body}, {"params": self.head.parameters(), "weight_decay": 1e-4}]
        return torch.optim.AdamW(groups, lr=1e-3, eps=1e-6, weight_decay=0)


def list_mle(scores, targets, clip_norm=500):
    """ListMLE of one slate, see models/losses/losses.hpp; equal targets in random order."""
    shuffled = torch.randperm(len(targets))
    order = shuffled[targets[shuffled].argsort(descending=True, stable=True)].to(scores.device)
    p = (scores / torch.clamp(scores.norm() / clip_norm, min=1))[order]
    p = p - p.max()
    tails = p.exp().flip(0).cumsum(0).flip(0)
    return (torch.log(tails + 1e-10) - p).sum()


class Graph:
    """One layout graph of TpuGraphs, its static tensors made once, all on the device but the run times."""

    def __init__(self, npz, device="cpu"):
        self.device = device
        arrays = np.load(npz)
        features = torch.from_numpy(arrays["node_feat"])
        self.features = (features.sign() * features.abs().log1p()).to(device)
        self.opcodes = torch.from_numpy(arrays["node_opcode"].astype(np.int64)).to(device)
        # (consumer, producer) rows: messages run from the consumer to the producer.
        self.edges = torch.from_numpy(arrays["edge_index"].astype(np.int64).T.copy()).to(device)
        self.config_nodes = torch.from_numpy(arrays["node_config_ids"].astype(np.int64)).to(device)
        self.configs = torch.from_numpy(arrays["node_config_feat"]).to(device)  # [c, nc, 18]
        self.targets = torch.from_numpy(arrays["config_runtime"].astype(np.float64))

    def distinct(self):
        """The first of each group of equal configurations, and the least run time of the group."""
        rows = self.configs.cpu().numpy().reshape(len(self.configs), -1)
        _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        least = np.full(len(first), np.inf)
        np.minimum.at(least, group.reshape(-1), self.targets.numpy())
        return torch.from_numpy(first), torch.from_numpy(least)

    def copies(self, configs):
        """One copy of the graph for each of these configurations."""
        graphs = []
        for k in configs.tolist():
            config = torch.zeros(len(self.opcodes), CONFIG_FEATURES, device=self.device)
            config[self.config_nodes] = self.configs[k]
            graphs.append(Data(x=self.features, opcode=self.opcodes, config=config,
                               edge_index=self.edges))
        return graphs


def scores_of(network, copies):
    """Scores of copies of graphs, in one batch."""
    batch = Batch.from_data_list(copies)
    return network(batch.x, batch.opcode, batch.config, batch.edge_index, batch.batch, len(copies))


def kendall_tau_b(x, y):
    """Kendall's tau-b of two arrays, in blocks of rows of the matrix of all pairs."""
    agree = untied_x = untied_y = 0.0
    for first in range(0, len(x), 256):
        a = np.sign(x[first:first + 256, None] - x[None])
        b = np.sign(y[first:first + 256, None] - y[None])
        agree += (a * b).sum()
        untied_x += (a * a).sum()
        untied_y += (b * b).sum()
    return agree / np.sqrt(untied_x * untied_y)
