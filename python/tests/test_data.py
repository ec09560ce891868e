"""Arrays of graphs and slates, against the NPZ files that they were converted from."""

import concurrent.futures
import gc
import pathlib
import pickle
import shutil

import numpy as np
import pytest

import tpudist as td


def source(npz: pathlib.Path, collection: str, split: str, name: str) -> dict[str, np.ndarray]:
    with np.load(npz / collection.replace(":", "/") / split / f"{name}.npz") as file:
        return dict(file)


@pytest.mark.parametrize("collection", ["layout:xla:random", "layout:nlp:default", "tile:xla"])
@pytest.mark.parametrize("split", ["train", "valid"])
def test_arrays_are_those_of_the_npz_file(npz, shards, collection, split):
    graphs = td.open(shards, collection, split)
    assert list(graphs) == sorted(graphs)
    for name, graph in graphs.items():
        want = source(npz, collection, split, name)
        np.testing.assert_array_equal(graph.node_features, want["node_feat"])
        np.testing.assert_array_equal(graph.opcodes, want["node_opcode"])
        np.testing.assert_array_equal(graph.edge_index, want["edge_index"])
        np.testing.assert_array_equal(graph.runtimes, want["config_runtime"])
        assert (graph.nodes, graph.edges, graph.configs) == (
            len(want["node_opcode"]), len(want["edge_index"]), len(want["config_runtime"]),
        )
        slate = graph.slate()
        if collection == "tile:xla":
            np.testing.assert_array_equal(slate.features, want["config_feat"])
            np.testing.assert_array_equal(graph.targets, want["config_runtime"] / want["config_runtime_normalizers"])
        else:
            np.testing.assert_array_equal(graph.config_nodes, want["node_config_ids"])
            np.testing.assert_array_equal(slate.features, want["node_config_feat"])
            np.testing.assert_array_equal(graph.targets, want["config_runtime"])


def test_a_slate_has_the_rows_in_their_order(npz, shards):
    graph = next(iter(td.open(shards, "layout:xla:random").values()))
    want = source(npz, "layout:xla:random", "train", graph.name)
    slate = graph.slate([5, 0, 5, 3])
    assert len(slate) == 4
    np.testing.assert_array_equal(slate.configs, [5, 0, 5, 3])
    np.testing.assert_array_equal(slate.features, want["node_config_feat"][[5, 0, 5, 3]])
    np.testing.assert_array_equal(slate.table[slate.states], slate.features)
    np.testing.assert_array_equal(slate.targets, want["config_runtime"][[5, 0, 5, 3]])
    np.testing.assert_array_equal(graph.slate(slice(2, 4)).features, want["node_config_feat"][2:4])
    assert graph.slate([]).features.shape == (0, len(graph.config_nodes), 18)


def test_a_slate_has_rows_of_its_own(shards):
    rows = np.array([5, 0])
    slate = next(iter(td.open(shards, "layout:xla:random").values())).slate(rows)
    rows[0] = 3
    np.testing.assert_array_equal(slate.rows, [5, 0])
    np.testing.assert_array_equal(slate.configs, slate.rows)


def test_a_relative_folder_is_found_from_another(shards, tmp_path, monkeypatch):
    monkeypatch.chdir(shards.parent)
    graphs, slates = td.open(shards.name, "layout:xla:random"), td.SlateDataset(shards.name, "layout:xla:random")
    monkeypatch.chdir(tmp_path)
    assert next(iter(graphs.values())).slate([0]).features.size
    assert slates[0].features.size and graphs.slates()[0].features.size
    assert "layout:xla:random" in graphs.collections


def test_arrays_of_a_graph_are_views_that_outlive_it(shards):
    graph = next(iter(td.open(shards, "layout:xla:random").values()))
    features, again = graph.node_features, graph.node_features
    assert features.ctypes.data == again.ctypes.data
    assert not features.flags.writeable and not features.flags.owndata
    with pytest.raises(ValueError):
        features[0, 0] = 1
    total = float(features.sum())
    del graph, again
    gc.collect()
    assert float(features.sum()) == total


def test_streaming_gives_the_same_slates(shards):
    for name, graph in td.open(shards, "layout:xla:random", cache="stream", cache_bytes=1 << 20).items():
        in_memory = td.open(shards, "layout:xla:random", cache="memory")[name]
        np.testing.assert_array_equal(graph.slate().features, in_memory.slate().features)


def test_threads_read_side_by_side(shards):
    """The lock of Python is free while a slate is read: threads share one data set."""
    graph = max(td.open(shards, "layout:xla:random", cache="stream", cache_bytes=1 << 20).values(), key=len)
    want = graph.slate().features
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        rows = [np.random.default_rng(seed).integers(0, len(graph), 50) for seed in range(200)]
        for chosen, slate in zip(rows, pool.map(graph.slate, rows), strict=True):
            np.testing.assert_array_equal(slate.features, want[chosen])


def test_duplicates_follow_the_policy(shards):
    for name, graph in td.open(shards, "layout:xla:random", duplicates="min").items():
        every = td.open(shards, "layout:xla:random")[name]
        assert len(graph) == graph.distinct_configs == len(np.unique(every.config_groups))
        lowest = [every.runtimes[every.config_groups == group].min() for group in range(len(graph))]
        np.testing.assert_array_equal(graph.targets, lowest)


def test_what_is_wrong_is_one_line(shards, tmp_path):
    graphs = td.open(shards, "layout:xla:random")
    graph = next(iter(graphs.values()))
    for rows in ([graph.configs], [-1]):
        with pytest.raises(IndexError, match="row"):
            graph.slate(rows)
    for rows in ([0.5], [[0, 1]], [True], 3):
        with pytest.raises(TypeError, match="rows are a list of integers"):
            graph.slate(rows)
    with pytest.raises(KeyError, match="no graph 'nothing'"):
        graphs["nothing"]
    with pytest.raises(td.ConfigError, match="name one: .*layout:xla:random"):
        td.open(shards)
    with pytest.raises(td.ConfigError) as caught:
        td.open(tmp_path / "nowhere", "layout:xla:random")
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)
    with pytest.raises(td.ConfigError, match="'most' is none of keep, min"):
        len(next(iter(td.open(shards, "layout:xla:random", duplicates="most").values())))


def test_a_damaged_file_is_a_data_error(npz, tmp_path):
    td.convert(npz, tmp_path / "shards", collections="layout:xla:random")
    graph = next(iter(td.open(tmp_path / "shards", "layout:xla:random").values()))
    file = pathlib.Path(graph.shard)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(td.DataError, match=file.name) as caught:
        graph.runtimes
    assert caught.value.exit_code == 3


def test_a_pickled_slate_finds_its_graph(shards):
    graph = next(iter(td.open(shards, "layout:xla:random").values()))
    slate = graph.slate([1, 2])
    again = pickle.loads(pickle.dumps(slate))
    assert again.graph.name == graph.name
    assert again.table.ctypes.data == slate.table.ctypes.data  # of the same data set, not sent
    np.testing.assert_array_equal(again.features, slate.features)


def test_a_pickled_slate_refuses_other_data(npz, tmp_path):
    shards = tmp_path / "shards"
    td.convert(npz, shards, collections="layout:xla:random")
    slate = td.SlateDataset(shards, "layout:xla:random")[0]
    want, content = slate.features, pickle.dumps(slate)
    del slate
    gc.collect()  # its source: the next one opens the files again
    same = pickle.loads(content)
    np.testing.assert_array_equal(same.features, want)
    del same
    gc.collect()
    shutil.rmtree(shards)
    td.convert(td.synth(tmp_path / "npz", preset="tiny", seed=4), shards, collections="layout:xla:random")
    with pytest.raises(td.DataError, match="the rows of layout:xla:random train changed"):
        pickle.loads(content).features
    other = td.SlateDataset(shards, "layout:xla:random")
    source = other._source
    assert other[0].features.size
    td.data.Source._live[pickle.loads(content)._source._token] = source  # opened here after the change
    with pytest.raises(td.DataError, match="open anew"):
        pickle.loads(content)


def test_torch_tensors_share_the_memory(shards):
    torch = pytest.importorskip("torch")
    slate = next(iter(td.open(shards, "layout:xla:random").values())).slate([1, 2, 4])
    tensors = slate.to_torch()
    assert tensors["states"].data_ptr() == slate.states.ctypes.data
    assert torch.equal(tensors["features"], tensors["table"][tensors["states"].long()])


@pytest.mark.parametrize("collection", ["layout:xla:random", "tile:xla"])
def test_pyg_data_can_be_joined(shards, collection):
    geometric = pytest.importorskip("torch_geometric")
    torch = pytest.importorskip("torch")
    graphs = list(td.open(shards, collection).values())[:2]
    one, two = (graph.to_pyg(configs=[0, 2, 1]) for graph in graphs)
    assert one.validate()
    assert one.edge_index.shape == (2, graphs[0].edges) and one.edge_index.dtype == torch.int64
    np.testing.assert_array_equal(one.edge_index.T, graphs[0].edge_index)
    np.testing.assert_array_equal(one.y[0], graphs[0].targets[[0, 2, 1]])
    joined = geometric.data.Batch.from_data_list([one, two])
    assert joined.y.shape == (2, 3)
    if collection == "tile:xla":
        assert joined.config.shape == (2, 3, 24)
    else:
        assert joined.config.shape[0] == len(joined.config_index)
        assert joined.config_index.max() >= graphs[0].nodes
        np.testing.assert_array_equal(one.config.transpose(0, 1), graphs[0].slate([0, 2, 1]).features)


def test_reduce_is_that_of_an_experiment(shards, experiment_file):
    reduce = {"keep": "config_neighbours", "hops": 2}
    resolved = td.Experiment.load(experiment_file, **{"data.reduce": reduce}).config["data"]["reduce"]
    for name, graph in td.open(shards, "layout:xla:random", reduce=resolved).items():
        same = td.open(shards, "layout:xla:random", reduce=reduce)[name]
        np.testing.assert_array_equal(graph.edge_index, same.edge_index)
        assert len(graph.node_features) <= graph.nodes
    with pytest.raises(td.ConfigError, match="data.reduce.max_nodes=5: nodes are drawn"):
        td.open(shards, "layout:xla:random", reduce={"max_nodes": 5})
    for graph in td.open(shards, "layout:xla:random", reduce={"max_nodes": 5, "drawn": "trained"}).values():
        assert len(graph.node_features) == graph.nodes
    with pytest.raises(td.ConfigError, match="reduce: unknown key hop"):
        td.open(shards, "layout:xla:random", reduce={"hop": 2})
