"""docs/own-module.md from a JAX function to a faster program: its own files and commands, with small sizes."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import tpudist as td
from tpudist.program import program

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = "docs/own-module.md"
# What takes long at the sizes of the document.
SMALL = {"--budget 10m": "--budget 4s", "--rounds 20": "--rounds 2", "random:1000:7": "random:20:7"}


def blocks():
    """Its code blocks, as the test of the documents finds them."""
    spec = importlib.util.spec_from_file_location("snippets_test", SOURCE / "tests/docs/snippets_test.py")
    snippets = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(snippets)
    return snippets.blocks_of(DOCUMENT, (SOURCE / DOCUMENT).read_text())[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run):
    """What is left after all its commands, in their order and in one shell."""
    done = subprocess.run([sys.executable, "-c", "import jax"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs jax: {done.stderr.strip().splitlines()[-1]}")
    folder = tmp_path_factory.mktemp("own-module")
    (folder / "runs").mkdir()
    (folder / "runs/xla-1").symlink_to(run.path)
    script = "set -euo pipefail\n"
    for block in blocks():
        named = re.match(r"# (\w+\.py)$", block.lines[0])
        if named:
            (folder / named[1]).write_text(block.text)
        elif block.kind == "shell":
            script += f"echo '# {block.place()}'\n{block.text}"
    for usual, small in SMALL.items():
        assert usual in script, f"{DOCUMENT} no longer has {usual}"
        script = script.replace(usual, small)
    paths = [str(pathlib.Path(program()).parent), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "TPUDIST_PYTHON": sys.executable}
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "output.txt").write_text(done.stdout)
    equal = "import numpy, model, faster; numpy.testing.assert_allclose(model.f(*model.inputs), faster.g(*model.inputs), 1e-5)"
    subprocess.run([sys.executable, "-c", equal], cwd=folder, check=True)
    return folder


def test_the_commands_lead_to_a_program_with_other_layouts(folder):
    output = (folder / "output.txt").read_text()
    assert output.count("(8, 10)\n") == 3  # model.py, and faster.py, which imports it
    assert re.search(r"fastest: configuration \d+|no configuration is faster than the default", output)
    assert (folder / "layouts.py").stat().st_size and (folder / "layouts.txt").stat().st_size
    found = json.loads((folder / "found.json").read_text())["ranking"]
    assert len(found) > 1 and all("layouts" in one for one in found)
    # No search or measurement overwrote the dump.
    assert len(list((folder / "dump").glob("*.jit_f.*.before_layout-assignment.hlo.pb"))) == 1
