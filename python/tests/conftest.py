"""Small synthetic data, once for all tests. TPUDIST_TRAINING_ORDER names the program that says what a training takes."""

import pathlib

import pytest

import tpudist as td

COLLECTION = "layout:xla:random"


@pytest.fixture(scope="session")
def npz(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return td.synth(tmp_path_factory.mktemp("npz") / "npz", preset="tiny", seed=3)


@pytest.fixture(scope="session")
def shards(npz: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("shards") / "shards"
    assert COLLECTION in td.convert(npz, folder)
    return folder


@pytest.fixture(scope="session")
def experiment_file(shards: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    file = tmp_path_factory.mktemp("experiment") / "small.yaml"
    file.write_text(
        f"""name: small
data: {{shards: {shards}, collection: '{COLLECTION}'}}
batch: {{slates: 3, configs: 4}}
model: {{preset: latenciaga_xla}}
loss: {{list_mle: {{}}}}
train: {{steps: 6, evaluate_every: 3, checkpoint_every: 3, log_every: 1}}
ensemble: {{members: 2, vary: [init, fold], folds: 2}}
predictions: {{rows: all}}
dist: {{threads: 1}}
"""
    )
    return file


@pytest.fixture(scope="session")
def run(experiment_file: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> td.Run:
    return td.train(experiment_file, run_dir=tmp_path_factory.mktemp("runs") / "small", quiet=True)
