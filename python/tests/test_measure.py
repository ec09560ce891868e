"""`tpudist measure` and `tune` on a small module, with the jax of this Python."""

import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import tpudist as td
from tpudist import timing
from tpudist.journal import Journal
from tpudist.program import program

MODULES = pathlib.Path(__file__).resolve().parents[2] / "tests/data/hlo/modules"
BEFORE, AFTER = MODULES / "layouts_before.pb", MODULES / "layouts_after.pb"


@pytest.fixture(scope="module")
def jax():
    """Where jax is installed: it runs in processes of its own."""
    done = subprocess.run([sys.executable, "-c", "import jax"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs jax: {done.stderr.strip().splitlines()[-1]}")


def words(command, out, *options):
    return [program(), command, str(BEFORE), "--default", str(AFTER), "--out", str(out), *map(str, options)]


def run(*arguments, **variables):
    environment = {**os.environ, "TPUDIST_PYTHON": sys.executable, **variables}
    return subprocess.run(words(*arguments), capture_output=True, text=True, env=environment)


def lines_of(out):
    return [json.loads(line) for line in out.with_suffix(".jsonl").read_text().splitlines()]


def rounds_of(times):
    """Rounds of a journal: {program: nanoseconds} each."""
    return [{"programs": sorted(one), "ns": [one[p] for p in sorted(one)], "busy": 0.0, "mhz": []} for one in times]


def test_a_slow_round_slows_no_program():
    rng = random.Random(1)
    times = []
    for number in range(20):
        slowness = 1 + 0.5 * (number % 3)
        true = {timing.TWIN: 1000.0, 0: 1000.0, 1: 900.0, 2: 1200.0}
        times.append({p: ns * slowness * math.exp(rng.gauss(0, 0.001)) for p, ns in true.items()})
    found = timing.estimates(rounds_of(times))
    assert math.exp(found[1].value - found[0].value) == pytest.approx(0.9, rel=2e-3)
    assert all(own.error < 2e-3 for own in found.values())
    low, high = timing.compare(rounds_of(times), 2).interval
    assert low < math.log(1.2) < high and high - low < 0.01
    assert not timing.machine_warnings(rounds_of(times))


def test_rounds_of_different_programs_are_joined_by_the_default():
    first = [{timing.TWIN: 100, 0: 100, 1: 90}] * 5
    second = [{timing.TWIN: 200, 0: 200, 2: 160}] * 5  # the machine has become slower
    found = timing.estimates(rounds_of(first + second))
    assert math.exp(found[1].value - found[0].value) == pytest.approx(0.9)
    assert math.exp(found[2].value - found[0].value) == pytest.approx(0.8)


def test_the_interval_of_a_median_holds_what_it_says():
    rng = random.Random(2)
    hits = 0
    for _ in range(2000):
        low, high = timing.median([rng.gauss(0, 1) for _ in range(15)]).interval
        hits += low < 0 < high
    assert 0.92 < hits / 2000 < 0.98


def test_a_noisy_machine_is_told():
    rng = random.Random(3)
    noisy = [{timing.TWIN: 1000 * math.exp(rng.gauss(0, 0.1)), 0: 1000 * math.exp(rng.gauss(0, 0.1))} for _ in range(9)]
    rounds = rounds_of(noisy)
    rounds[3] |= {"busy": 1.5, "mhz": [1000, 2000]}
    text = "\n".join(timing.machine_warnings(rounds))
    assert "noisy" in text and "0.17 cores, in the worst round 1.50" in text and "1000 to 2000 MHz" in text


def test_a_journal_drops_a_line_that_was_cut_and_refuses_another_module(tmp_path):
    file = tmp_path / "a.jsonl"
    journal = Journal(file, {"module": "a"})
    journal.add_config({}, program=0)
    journal.close()
    with file.open("ab") as opened:
        opened.write(b'{"config": {"dot": [[')
    journal = Journal(file, {"module": "a"})
    assert len(journal.configs) == 1 and journal.number_of({}) == 0
    with pytest.raises(td.ConfigError, match="another process"):
        Journal(file, {"module": "a"})
    journal.close()
    with pytest.raises(td.ConfigError, match="another module"):
        Journal(file, {"module": "b"})


@pytest.mark.usefixtures("jax")
def test_configurations_are_measured(tmp_path):
    out = tmp_path / "measured.pb"
    done = run("measure", out, "--rounds", 3, "--configs", "random:6", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rounds"] == 3 and len(found["ranking"]) == 6
    assert all("error" not in one for one in found["ranking"])
    assert {one["program"] for one in found["ranking"] if one["forced"] == 0} == {0}
    assert sum(one["kept"] for one in found["ranking"]) > 5
    arrays = np.load(out.with_suffix(".npz"))
    assert arrays["config_runtime"].shape == (3 * len(found["ranking"]),)
    assert (arrays["config_runtime"] > 0).all()
    assert len(np.unique(arrays["node_config_feat"], axis=0)) == len(found["ranking"])
    # The same command has nothing left to do.
    assert run("measure", out, "--rounds", 3, "--configs", "random:6").returncode == 0
    assert len([line for line in lines_of(out) if "round" in line]) == 3


@pytest.mark.usefixtures("jax")
def test_a_killed_measurement_goes_on(tmp_path):
    def contents(out):
        times = ("ns", "busy", "mhz")
        return [{key: value for key, value in line.items() if key not in times} for line in lines_of(out)]

    whole, out = tmp_path / "whole.pb", tmp_path / "killed.pb"
    options = ["--rounds", 2, "--configs", "random:4"]
    assert run("measure", whole, *options).returncode == 0
    environment = {**os.environ, "TPUDIST_PYTHON": sys.executable}
    for lines in (2, 6):  # among the configurations, after the first round
        child = subprocess.Popen(words("measure", out, *options), stdout=subprocess.DEVNULL, env=environment)
        while not out.with_suffix(".jsonl").exists() or len(lines_of(out)) < lines:
            assert child.poll() is None
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert run("measure", out, *options).returncode == 0
    assert contents(out) == contents(whole)
    first, second = np.load(out.with_suffix(".npz")), np.load(whole.with_suffix(".npz"))
    for name in first.files:
        if name != "config_runtime":
            np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.usefixtures("jax")
def test_other_results_are_told_by_name_and_the_rest_goes_on(tmp_path):
    code = (
        "import sys\n"
        "from tpudist.measure import measure\n"
        "options = dict(configs='random:4', rounds=2, tolerance=-1)\n"
        "found = measure(sys.argv[1], default=sys.argv[2], out=sys.argv[3], **options)\n"
        "print([one.error for one in found])"
    )
    command = [sys.executable, "-c", code, BEFORE, AFTER, tmp_path / "out.pb"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "results differ from the default's: by" in done.stdout and done.stdout.startswith("['', ")


@pytest.mark.usefixtures("jax")
@pytest.mark.parametrize("form", ["text", "jax"])
def test_tune_without_a_model(tmp_path, form):
    out = tmp_path / "tuned.pb"
    done = run("tune", out, "--most", 4, "--precision", "40%", *(["--apply", form] if form == "jax" else []))
    assert done.returncode == 0, done.stderr
    if form == "jax":
        assert done.stdout.startswith("# layouts_before.pb: configuration")
    else:
        assert "measured 4 configurations" in done.stdout and "the budget is spent" in done.stdout


@pytest.mark.usefixtures("jax")
def test_mistakes_are_one_line(tmp_path):
    text = tmp_path / "module.txt"
    text.write_text("HloModule broken\n")
    for module, out, message in (
        (text, "out.pb", "XLA does not read it as a module"),
        (BEFORE, "out.npz", "is a tuning file, NAME.pb"),
    ):
        command = words("measure", tmp_path / out)
        command[2] = str(module)
        environment = {**os.environ, "TPUDIST_PYTHON": sys.executable}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode in (2, 3) and message in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.usefixtures("jax")
def test_a_text_becomes_a_proto(tmp_path):
    def inspect(file, *options):
        return subprocess.run([program(), "inspect", str(file), *options], capture_output=True, text=True)

    text, proto = MODULES / "layouts_before.txt", tmp_path / "before.hlo.pb"
    refused = inspect(text)
    assert refused.returncode == 3 and "`python -m tpudist.hlo TEXT PROTO`" in refused.stderr
    command = [sys.executable, "-m", "tpudist.hlo", str(text), str(proto)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    made, dumped = (json.loads(inspect(file, "--json").stdout)["modules"][0] for file in (proto, BEFORE))
    for key in ("nodes", "edges", "opcodes", "configurations"):
        assert made[key] == dumped[key]
    proto.write_text("HloModule broken\n")
    done = subprocess.run([*command[:3], str(proto), str(text.parent / "no/folder")], capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1


def test_a_python_without_jax_says_what_to_install(tmp_path):
    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib/__init__.py").write_text("raise ImportError('no jaxlib')\n")
    paths = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    done = run("measure", tmp_path / "out.pb", PYTHONPATH=paths)
    assert done.returncode == 1
    assert "pip install 'tpudist[measure]'" in done.stderr
