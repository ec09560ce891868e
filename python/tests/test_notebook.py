"""The notebook and the example run as they stand. The blocks of docs/python.md: tests/docs/snippets_test.py."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import tpudist as td

ROOT = pathlib.Path(__file__).parents[2]


def test_the_quick_start_runs(tmp_path):
    for module in ("pandas", "matplotlib"):
        pytest.importorskip(module)
    notebook = json.loads((ROOT / "docs/notebooks/quickstart.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 5
    subprocess.run(
        [sys.executable, "-c", "\n".join(cells)], cwd=tmp_path, check=True, env={**os.environ, "MPLBACKEND": "agg"}
    )
    run = td.Run(tmp_path / "runs/quickstart")
    assert [checkpoint.name for checkpoint in run.checkpoints] == ["200", "300", "best"]


def test_the_example_learns(shards):
    pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    done = subprocess.run(
        [sys.executable, ROOT / "examples/pyg_training.py", shards, "layout:xla:random", "--steps", "30"],
        check=True, capture_output=True, text=True,
    )
    taus = [float(tau) for tau in re.findall(r"split (\S+)", done.stdout)]
    assert len(taus) == 2
    assert taus[1] > taus[0] + 0.05
