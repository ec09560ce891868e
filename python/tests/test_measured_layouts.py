"""The data set of examples/measured_layouts, and the programs that it was measured with."""

import importlib.util
import json
import os
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


def script(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_copies_are_in_the_order_of_the_rows(tmp_path):
    # A row for each configuration by number, whatever rounds timed first.
    configs = [{"config": {}, "program": n, "kept": 0, "forced": 0, "copies": n, "copied_bytes": 0} for n in range(4)]
    rounds = [{"round": 0, "programs": own, "ns": [1] * len(own)} for own in ([-1, 0, 2], [-1, 0, 1, 3])]
    lines = [{"measured": {"device": "a", "jax": "b"}}, *configs, *rounds, {"failed": 3, "error": "does not run"}]
    (tmp_path / "measured.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert script("pack").described(tmp_path)["copies"] == [0, 1, 2]


@pytest.mark.parametrize(("command", "message"), [("true", "before it said"), ("echo quiet", "during the rounds")])
def test_nothing_is_timed_when_the_machine_is_not_quiet(command, message):
    collect, timed = script("collect"), []
    with pytest.raises(SystemExit, match=f"--alone {command}: ended {message}"), collect.alone(command):
        timed.append(os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT))  # until the command has ended
    assert bool(timed) == (message == "during the rounds")
    with collect.alone("sh -c 'echo quiet; cat'"):
        timed.append(1)


def test_a_collection_with_failures_says_so(tmp_path):
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps/broken_1_inference.before.pb").touch()
    done = subprocess.run([sys.executable, FOLDER / "collect.py", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.endswith("failed: broken_1_inference\n")
