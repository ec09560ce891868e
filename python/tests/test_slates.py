"""SlateDataset: the graphs, rows and order of a training."""

import concurrent.futures
import gc
import json
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import threading

import numpy as np
import pytest

import tpudist as td

EXPERIMENTS = {
    "folds": {},
    "plain": {"ensemble.folds": "none", "ensemble.vary": ["init"]},
    "own rows": {"batch.order": "per_member"},
    "close": {"batch.mix": "close", "batch.draw": "graphs", "seed.order": 7},
    "fast": {"batch.mix": "fast", "batch.bias": 1.5, "batch.draw": "root", "data.duplicates": "keep"},
    "by graph": {"batch.unit": "graph", "data.exclude.train": ["conv_*"], "data.duplicates": "median"},
    "both splits": {"ensemble.fold_over": "train+valid", "ensemble.first_member": 3},
    "reduced": {"data.reduce": {"keep": "config_neighbours", "hops": 2}},
    "tile": {"data.collection": "tile:xla", "model": {"preset": "latenciaga_tile"}, "data.duplicates": "mean"},
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_slates_are_those_of_the_training(experiment_file, name):
    """Against training_order: the set-up of `tpudist train` itself (tests/python/training_order.cpp)."""
    helper = os.environ.get("TPUDIST_TRAINING_ORDER")
    if not helper:
        pytest.skip("TPUDIST_TRAINING_ORDER names no program: it is built with the tests of C++")
    experiment = td.Experiment.load(experiment_file, **EXPERIMENTS[name])
    steps = 25
    done = subprocess.run(
        [helper, experiment.file, str(steps), *experiment.arguments], check=True, capture_output=True, text=True
    )
    want = json.loads(done.stdout)
    weights = set()
    for member, batches in enumerate(want["members"]):
        slates = td.SlateDataset.of(experiment, member, steps=steps)
        assert slates.selection_hash == want["selection_hash"]
        assert slates.steps_per_epoch == want["steps_per_epoch"]
        assert len(slates) == steps * slates.batch
        for step, batch in enumerate(batches):
            taken = slates.step(step)
            assert len(taken) == len(batch)
            total = sum(slate.weight for slate in taken)
            for ours, theirs in zip(taken, batch, strict=True):
                assert ours.graph.name == theirs["graph"]
                assert (ours.weight / total if total else 0) == pytest.approx(theirs["weight"])
                np.testing.assert_array_equal(ours.rows, theirs["rows"])
                np.testing.assert_array_equal(ours.configs, theirs["configs"])
                np.testing.assert_array_equal(ours.targets, theirs["targets"])
                np.testing.assert_array_equal(ours.states.ravel(), theirs["states"])
                if theirs["local_states"]:
                    np.testing.assert_array_equal(ours.table.ravel(), np.float32(theirs["local_states"]))
                weights.add(ours.weight)
    assert 1 in weights
    assert (0 in weights) or name == "plain"  # held out


def equal(a: td.Slate, b: td.Slate) -> bool:
    return (
        a.graph.name == b.graph.name
        and a.weight == b.weight
        and np.array_equal(a.rows, b.rows)
        and np.array_equal(a.states, b.states)
        and np.array_equal(a.features, b.features)
        and np.array_equal(a.targets, b.targets)
    )


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("cache", ["memory", "stream"])
def test_workers_give_the_same_slates(shards, start, cache):
    pytest.importorskip("torch")
    slates = td.SlateDataset(shards, "layout:xla:random", configs=4, batch=3, cache=cache, steps=35)
    alone = list(slates)
    loader = slates.loader(workers=2, multiprocessing_context=start)
    batches = list(loader)
    assert len(loader) == len(batches) == 35  # in messages of 16
    assert [len(batch) for batch in batches] == [3] * 35
    for ours, theirs in zip((slate for batch in batches for slate in batch), alone, strict=True):
        assert equal(ours, theirs)


def test_a_loader_takes_a_collate_fn_of_its_own(shards):
    pytest.importorskip("torch")
    slates = td.SlateDataset(shards, "layout:xla:random", configs=4, batch=3, steps=5)
    for workers in (0, 1):
        loader = slates.loader(workers, collate_fn=len)
        assert len(loader) == 5
        assert list(loader) == [3] * 5
    kept = slates.loader(1, persistent_workers=True)
    for _ in range(2):
        assert [len(batch) for batch in kept] == [3] * 5
    assert list(td.SlateDataset(shards, "layout:xla:random", steps=0).loader(1)) == []


def test_a_process_that_is_forked_reads_on(shards):
    """Also without PyTorch: the pool of threads that opened the data is not needed any more."""
    slates = td.SlateDataset(shards, "layout:xla:random", configs=4, batch=3)
    first = slates[0]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for number, slate in enumerate(pool.map(slates.__getitem__, range(len(slates)))):
            assert equal(slate, slates[number])
    assert equal(first, slates[0])


@pytest.mark.parametrize("cache", ["memory", "stream"])
@pytest.mark.parametrize("forked", [False, True])
def test_threads_share_a_data_set(shards, monkeypatch, cache, forked):
    """Also those that ask first, all at once: the data are opened once."""
    slates = td.SlateDataset(shards, "layout:xla:random", configs=4, batch=3, cache=cache)
    taken = lambda slate: (slate.graph.name, slate.rows.tolist(), slate.features.tolist())  # noqa: E731
    want = list(map(taken, td.SlateDataset(shards, "layout:xla:random", configs=4, batch=3, cache=cache)))
    opened, together = [], threading.Barrier(8)
    real = td.data._extension.open
    monkeypatch.setattr(td.data._extension, "open", lambda **options: opened.append(1) or real(**options))

    def read(thread):
        together.wait()
        return all(taken(slates[i]) == want[i] for i in [*range(thread, len(want)), *range(thread)])

    def all_read():
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return all(pool.map(read, range(8))), len(opened)

    if not forked:
        assert all_read() == (True, 1)
        return
    assert taken(slates[0]) == want[0]
    opened.clear()
    with slates._source._opening:  # held by a thread that the child does not have
        child = os.fork()
        if child == 0:  # pragma: no cover
            result = all_read()
            os._exit(0 if result == (True, 0 if cache == "memory" else 1) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_an_epoch_has_every_slate_once_and_the_next_one_others(shards):
    slates = td.SlateDataset(shards, "layout:xla:random", configs=4, batch=3)
    epochs = td.SlateDataset(shards, "layout:xla:random", configs=4, batch=3, steps=2 * slates.steps_per_epoch)
    assert len(epochs) == 2 * len(slates)
    drawn: dict[str, list[int]] = {}
    for slate in slates:
        assert slate.epoch == 0
        if slate.weight:
            drawn.setdefault(slate.graph.name, []).extend(slate.rows.tolist())
    for graph in slates.graphs:
        rows = drawn[graph.name]
        assert len(rows) == len(set(rows)) == len(graph) // 4 * 4
    assert epochs[len(slates)].epoch == 1
    assert not all(equal(epochs[i], epochs[i + len(slates)]) for i in range(len(slates)))
    with pytest.raises(IndexError):
        slates[len(slates)]


def test_slates_of_graphs_are_as_these_were_opened(shards):
    options = {"duplicates": "median", "reduce": {"keep": "config_neighbours"}, "cache": "stream"}
    graphs = td.open(shards, "layout:xla:random", **options)
    slates, alone = graphs.slates(configs=4), td.SlateDataset(shards, "layout:xla:random", configs=4, **options)
    assert slates.selection_hash == alone.selection_hash
    assert all(equal(a, b) for a, b in zip(slates, alone, strict=True))
    for graph in slates.graphs:
        np.testing.assert_array_equal(graph.edge_index, graphs[graph.name].edge_index)
    kept = td.SlateDataset(shards, "layout:xla:random", duplicates="keep")
    assert graphs.slates(duplicates="keep").selection_hash == kept.selection_hash != slates.selection_hash


def test_what_is_wrong_is_refused(shards, experiment_file):
    with pytest.raises(td.ConfigError, match="folds are of the training split, not of valid"):
        td.SlateDataset(shards, "layout:xla:random", split="valid", folds=2, hold_out=0)
    with pytest.raises(td.ConfigError, match="unit: 'grahp' is none of slates, graph"):
        td.SlateDataset(shards, "layout:xla:random", unit="grahp")
    with pytest.raises(td.ConfigError, match="hold_out=2: the folds are 0 to 1"):
        td.SlateDataset(shards, "layout:xla:random", folds=2, hold_out=2)
    with pytest.raises(td.ConfigError, match="give the number of `folds`"):
        td.SlateDataset(shards, "layout:xla:random", hold_out=1)
    with pytest.raises(td.ConfigError, match="'far' is none of uniform"):
        len(td.SlateDataset(shards, "layout:xla:random", mix="far"))
    with pytest.raises(td.ConfigError, match="at least one slate"):
        len(td.SlateDataset(shards, "layout:xla:random", configs=0))
    with pytest.raises(td.ConfigError, match="member 2: the experiment has 2"):
        td.SlateDataset.of(td.Experiment.load(experiment_file), 2)
    for change in ({"data.max_configs": 5}, {"data.entropy_filter": 0.3}):
        with pytest.raises(td.ConfigError, match="slates in Python are of all rows"):
            td.SlateDataset.of(td.Experiment.load(experiment_file, **change))
    with pytest.raises(td.ConfigError, match="data.reduce.max_nodes=5: nodes are drawn"):
        td.SlateDataset.of(td.Experiment.load(experiment_file, **{"data.reduce.max_nodes": 5}))
    both = {"data.collection": ["layout:xla:random", "layout:xla:default"]}
    with pytest.raises(td.ConfigError, match="slates in Python are of one collection"):
        td.SlateDataset.of(td.Experiment.load(experiment_file, **both))
    cut = {"data.segments.by": "consecutive", "loss": {"pairwise_hinge": {}}}
    with pytest.raises(td.ConfigError, match="data.segments.by: slates in Python are of whole graphs"):
        td.SlateDataset.of(td.Experiment.load(experiment_file, **cut))


def test_memory_of_a_thousand_slates_is_flat(shards):
    slates = td.SlateDataset(shards, "layout:xla:random", configs=4, batch=3, steps=2000)
    for item in range(1000):
        assert slates[item].features.size
    gc.collect()
    before = resident_kib()
    for item in range(1000, 2000):
        assert slates[item].features.size
    gc.collect()
    assert resident_kib() - before < 1024


def resident_kib() -> int:
    (line,) = [line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1])


def test_a_pickled_dataset_is_small_and_opens_again(shards):
    slates = td.SlateDataset(shards, "layout:xla:random", configs=4, batch=3)
    slate = slates[5]
    content = pickle.dumps(slates)
    assert len(content) < 4096
    assert equal(pickle.loads(content)[5], slate)
