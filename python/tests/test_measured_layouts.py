"""The data set of examples/measured_layouts, and the programs that it was measured with."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tpudist as td

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/measured_layouts"
COLLECTION = "layout:measured:cpu"


@pytest.fixture(scope="module")
def manifest():
    return {one["name"]: one for one in json.loads((FOLDER / "manifest.json").read_text())["programs"]}


def test_the_data_set_is_what_its_manifest_says(manifest, tmp_path):
    assert COLLECTION in td.convert(FOLDER / "npz", tmp_path)
    graphs = td.open(tmp_path, COLLECTION, split="train")
    assert sorted(graphs) == sorted(manifest)
    for name, graph in graphs.items():
        one = manifest[name]
        assert len(np.unique(graph.config_groups)) == one["configurations"] == len(one["copies"])
        # Rounds of one configuration are rows with equal groups.
        assert np.bincount(graph.config_groups).min() >= one["rounds_of_a_program"] >= 3
        assert (np.asarray(graph.runtimes) > 0).all()


def test_most_programs_are_accepted(manifest):
    accepted = [one for one in manifest.values() if one["accepted"]]
    assert all(one["ceiling"] >= 0.8 and one["deviation"] <= 0.01 for one in accepted)
    assert len(accepted) >= 0.8 * len(manifest)


def test_a_program_is_dumped(tmp_path):
    done = subprocess.run([sys.executable, "-c", "import jax"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs jax: {done.stderr.strip().splitlines()[-1]}")
    subprocess.run([sys.executable, FOLDER / "programs.py", tmp_path, "embeddings_2_inference"], check=True)
    before, after = (tmp_path / f"embeddings_2_inference.{when}.pb" for when in ("before", "after"))
    from tpudist.hlo import Space

    space = Space.read(before, after, "neighbours")
    assert {"dot", "reshape"} >= {one.opcode for one in space.operations} and len(space.operations) >= 5
