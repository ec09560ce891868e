"""Run.to_pyg: a module of PyTorch gives the scores of the program."""

import copy
import pathlib
import pickle

import numpy as np
import pytest

import tpudist as td

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

EXPERIMENTS = pathlib.Path(__file__).resolve().parents[2] / "experiments"
BOTH = ["consumer_to_producer", "producer_to_consumer"]
# Other networks than those of the shipped files: together all other layers, poolings and transforms.
CHAINS = {
    "graph layers": [
        {"layer": "sage", "width": 6, "directions": BOTH, "aggregation": "sum"},
        {"layer": "sage", "width": 6, "directions": BOTH, "join": "concat", "normalise": True},
        {"layer": "sage", "width": 12, "directions": BOTH, "join": "shared", "residual": True},
        {"layer": "sage", "width": 6, "directions": []},
        {"layer": "gcn", "width": 6, "self_loops": False},
        {"layer": "gat", "width": 4, "heads": 2},
        {"layer": "gat", "width": 4, "heads": 2, "join": "mean", "directions": BOTH, "negative_slope": 0.1},
        {"layer": "gin", "width": 6, "eps": 0.3},
        {"layer": "gin", "width": 6, "hidden": 5, "eps": 0.2, "train_eps": True, "directions": BOTH},
        {"layer": "gine", "width": 6, "directions": BOTH},
        {"layer": "virtual_node", "hidden": 5, "aggregation": "mean", "activation": "gelu"},
        {"layer": "virtual_node", "aggregation": "max"},
    ],
    "layers of rows": [
        {"layer": "linear", "width": 8, "bias": False, "activation": "silu"},
        {"layer": "activation", "kind": "elu"},
        {"layer": "prelu"},
        {"layer": "prelu", "per_channel": True},
        {"layer": "layer_norm"},
        {"layer": "layer_norm", "affine": False},
        {"layer": "graph_norm"},
        {"layer": "instance_norm", "affine": True},
        {"layer": "residual", "repeat": 2, "blocks": [{"layer": "sage", "width": 8, "activation": "gelu_tanh"}]},
        {"layer": "residual", "skip": "project", "blocks": [{"layer": "linear", "width": 6}]},
        {"layer": "residual", "skip": "concat", "blocks": [{"layer": "join_config", "width": 5}]},
        {"layer": "l2_norm"},
        {"layer": "dropout"},
    ],
}
NETWORKS = {
    "demo": ("demo.yaml", {}),
    "SAGE with residuals": ("systems/latenciaga_nlp.yaml", {"data.collection": "layout:xla:random"}),
    "GCN": ("systems/tpugraphs_layout_resmodel.yaml", {}),
    "GATv2": ("systems/latenciaga_xla_gatv2.yaml", {}),
    "GINE": ("systems/latenciaga_xla_gine.yaml", {}),
    "1st place": ("systems/first_place_layout.yaml", {}),
    "1st place, tile": ("systems/first_place_tile.yaml", {}),
    "late join, tile": ("systems/tpugraphs_tile_sage_late.yaml", {}),
    "graph layers": (
        "demo.yaml",
        {
            "model.blocks": CHAINS["graph layers"],
            "model.readout": {"pool": "max+mean", "widths": [5, 4], "activation": "leaky_relu", "scale": 1},
        },
    ),
    "layers of rows": (
        "demo.yaml",
        {
            "model.blocks": CHAINS["layers of rows"],
            "model.encoder": {
                "node_columns": "0-30,40", "node_transform": "log_positive", "node_width": 0, "width": 0,
                "config_transform": "standardised", "config_scale": 2,
            },
            "model.readout": {"pool": "l2_sum+config_sum+config_mean", "bias": False, "scale": 1},
        },
    ),
}


def train(file, shards, folder, overrides):
    """Two members after one step; their scores of the validation split are in predictions.h5."""
    fixed = {
        "data.shards": str(shards), "train.steps": 1, "train.evaluate_every": 0, "train.early_stop.patience": 0,
        "train.checkpoint_every": 1, "predictions.rows": "all", "batch.configs": 3, "batch.slates": 2,
        "dist.threads": 1,
        "ensemble": {"members": 2, "vary": ["init"], "folds": "none"},
    }
    return td.train(EXPERIMENTS / file, {**fixed, **overrides}, run_dir=folder / "run", quiet=True)


def opened(run):
    data = run.config["data"]
    return td.open(data["shards"], data["collection"], "valid", reduce=data["reduce"])


@pytest.mark.parametrize("name", NETWORKS)
def test_the_module_scores_as_the_program_does(shards, tmp_path, name):
    file, overrides = NETWORKS[name]
    run = train(file, shards, tmp_path, overrides)
    found = run.predictions()
    table = found if isinstance(found, list) else found.to_dict("records")
    network = run.to_pyg(1)
    for graph_name, graph in opened(run).items():
        own = [row for row in table if row["graph"] == graph_name and row["member"] == 1]
        with torch.no_grad():
            scores = network(graph.to_pyg([row["config"] for row in own])).numpy()
        want = np.array([row["score"] for row in own])
        assert scores.shape == want.shape
        assert np.abs(scores - want).max() <= 1e-5 * max(1, np.abs(want).max())


def test_a_module_takes_batches_trains_and_is_copied(shards, tmp_path):
    from torch_geometric.data import Batch

    run = train("demo.yaml", shards, tmp_path, {"model.blocks": [{"layer": "gin", "width": 6}, {"layer": "prelu"}]})
    network = run.to_pyg()
    parts = [graph.to_pyg([0, 1, 2]) for graph in opened(run).values()]
    scores = network(Batch.from_data_list(parts))
    alone = torch.stack([network(part) for part in parts])
    assert scores.shape == (len(parts), 3)
    assert torch.allclose(scores, alone, rtol=1e-5, atol=1e-6)
    td.losses.list_mle(alone[0], parts[0].y[0]).backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    for copied in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert torch.equal(copied(parts[0]), alone[0])
        with torch.no_grad():
            for parameter in copied.parameters():
                parameter.zero_()
        assert torch.equal(network(parts[0]), alone[0])
    assert network.double()(parts[0]).dtype == torch.float64
    # What goes back by `tpudist weights import`.
    weights = run.members[0].state_dict()
    assert {name for name, _ in network.named_parameters()} == weights.keys()


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([{"layer": "sage", "width": 6}, {"layer": "pna", "width": 6}], "model.blocks[1].layer=pna"),
        ([{"layer": "residual", "blocks": [{"layer": "gcn", "width": 32, "normalise": "right"}]}],
         "model.blocks[0].blocks[0].normalise=right"),
        ([{"layer": "dropout", "drop": "nodes"}], "model.blocks[0].drop=nodes"),
    ],
)
def test_what_pytorch_has_no_layer_for_is_named(shards, tmp_path, blocks, said):
    run = train("demo.yaml", shards, tmp_path, {"model.blocks": blocks})
    with pytest.raises(td.Error) as caught:
        run.to_pyg()
    assert str(caught.value) == f"{said}: no layer of PyTorch does this (run.to_pyg)"


def test_a_key_of_a_later_version_is_named(run):
    with pytest.raises(td.ConfigError, match="member 2: the run has 2"):
        run.to_pyg(2)
    run = td.Run(run.path)
    run.config["model"]["encoder"]["walks"] = 0  # off
    run.to_pyg()
    run.config["model"]["encoder"]["walks"] = 16
    with pytest.raises(td.Error, match="model.encoder.walks=16: no layer of PyTorch"):
        run.to_pyg()
