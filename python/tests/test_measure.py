"""`tpudist measure` and `tune` on a small module, with the jax of this Python."""

import contextlib
import json
import math
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import tpudist as td
from tpudist import timing
from tpudist.hlo import Space
from tpudist.journal import Journal, write_results
from tpudist.measure import Bench
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
        ((low, high),) = (one.interval for one in timing.medians([[rng.gauss(0, 1) for _ in range(15)]]))
        hits += low < 0 < high
    assert 0.92 < hits / 2000 < 0.98


def skewed_rounds(rng, count, slower=0.0):
    """Rounds of three equal programs, the last slower by a share, on a machine that drifts by more than they differ."""
    drift, times = 0.0, []
    for _ in range(count):
        drift = 0.9 * drift + rng.gauss(0, 0.01)
        own = {timing.TWIN: 0.0, 0: 0.0, 1: math.log1p(slower)}
        times.append({p: 1e6 * math.exp(log + drift + rng.expovariate(200)) for p, log in own.items()})
    return rounds_of(times)


def test_intervals_hold_the_truth_where_their_length_ends_the_measurement():
    rng, held, a_a, repeats = random.Random(4), 0, 0, 300
    for _ in range(repeats):
        rounds, look = skewed_rounds(rng, 60, 0.01), 5
        while look < 60:
            worst = max(one.error for one in timing.estimates(rounds[:look]).values())
            following = timing.rounds_for(0.003, look, worst)
            if following <= look:
                break
            look = min(60, following)
        low, high = timing.compare(rounds[:look], 1).interval
        held += low < math.log(1.01) < high
        low, high = timing.compare(rounds[:look], timing.TWIN).interval
        a_a += low < 0 < high
    assert 0.92 < held / repeats < 0.98
    assert 0.92 < a_a / repeats < 0.98


def test_skewed_noise_makes_no_equal_program_faster():
    rng = random.Random(5)
    found = [timing.compare(skewed_rounds(rng, 200), 1).value for _ in range(60)]
    # To the geometric mean of both copies the difference would be -0.04 %.
    assert abs(sum(found)) / 60 < 0.0002


def test_rounds_that_resemble_the_one_before_say_less():
    rng, values = random.Random(6), [0.0]
    while len(values) < 200:
        values.append(0.8 * values[-1] + rng.gauss(0, 1))
    (steady,) = timing.medians([rng.sample(values, 200)])
    (drifting,) = timing.medians([values])
    assert steady.value == drifting.value
    assert 2 < drifting.error / steady.error < 4  # 3 for a correlation of 0.8


def test_all_programs_of_a_journal_are_called_equally_often(monkeypatch):
    clock, made = [0], []

    def call(ns):
        made.append(ns)
        clock[0] += ns

    monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: clock[0])
    found = [timing.turns_for(lambda ns=ns: call(ns), 4) for ns in (10_000, 100_000, 990_000, 20_000_000)]
    assert found == [16, 10, 2, 2]
    made.clear()
    found = timing.measure_round({0: lambda: call(90_000), timing.TWIN: lambda: call(400_000)}, 0, 1, 3)
    assert found["ns"] == [400_000, 90_000] and found["turns"] == 3
    assert made.count(90_000) == made.count(400_000) == 12  # three turns of three, and one each to warm up


SIZES = {timing.TWIN: 1_000_000, 0: 1_000_000, 1: 2_000_000, 2: 3_000_000, 3: 1_500_000}


def one_round(monkeypatch, turns, cost):
    """A round of programs of SIZES on a clock of `cost(calls so far, program, ns)`. Returns program -> ns."""
    clock, calls = [0], [0]

    def call(program, ns):
        clock[0] += int(cost(calls[0], program, ns))
        calls[0] += 1

    monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: clock[0])
    found = timing.measure_round({n: lambda n=n, ns=ns: call(n, ns) for n, ns in SIZES.items()}, 0, 1, turns)
    return dict(zip(found["programs"], found["ns"], strict=True))


def test_a_round_has_the_usual_speed_of_the_machine(monkeypatch):
    # Slow phases of 15 calls begin in the middle of turns of 20.
    times = one_round(monkeypatch, 24, lambda at, program, ns: ns * (1.5 if at % 55 < 15 else 1))
    for program, ns in SIZES.items():
        assert times[program] == pytest.approx(ns, rel=0.02), program


def test_an_interruption_of_one_program_is_left_out(monkeypatch):
    met = []

    def cost(at, program, ns):
        met.append(program)
        return ns + (50_000_000 if program == 1 and met.count(1) == 7 else 0)

    times = one_round(monkeypatch, 8, cost)
    assert times == pytest.approx(SIZES)


def test_a_round_does_not_favour_programs_that_vary_more(monkeypatch):
    rng = random.Random(1)
    spread = {program: 0.2 if program == 1 else 0.01 for program in SIZES}
    times = one_round(monkeypatch, 2000, lambda at, program, ns: ns * math.exp(rng.gauss(0, spread[program])))
    assert times[1] / times[0] == pytest.approx(2, rel=0.03)  # the faster half would say 1.8


def test_rounds_that_judge_a_choice_do_not_choose(tmp_path):
    bench = Bench.__new__(Bench)
    bench.journal = Journal(tmp_path / "a.jsonl", {"module": "a"})
    bench.journal.add_config({}, program=0)
    bench.journal.add_config({"dot": [[0, 1]]}, program=1)
    for kind, ns in [("measure", 95), ("measure", 95), ("compare", 120), ("compare", 120), ("compare", 120)]:
        bench.journal.add_round(kind=kind, programs=[timing.TWIN, 0, 1], ns=[100, 100, ns], busy=0.0, mhz=[])
    assert bench.measured()[1].ratio.value == pytest.approx(math.log(0.95))


def test_four_rounds_have_no_error():
    rounds = rounds_of([{timing.TWIN: 100, 0: 100, 1: 90}, {timing.TWIN: 101, 0: 100, 1: 93}] * 2)
    assert all(math.isnan(timing.compare(rounds, program).error) for program in (timing.TWIN, 1))
    assert all(math.isnan(one.error) for one in timing.estimates(rounds).values())
    assert math.isnan(timing.compare([], 1).value)


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
    kept = []  # exceptions, as a notebook does: the file is closed all the same
    for _ in range(2):
        with pytest.raises(td.ConfigError, match="another module") as error:
            Journal(file, {"module": "b"})
        kept.append(error)


def test_a_first_try_that_failed_binds_nothing(tmp_path):
    file = tmp_path / "a.jsonl"
    Journal(file, {"module": "a", "inputs": "wrong"}).close()
    Journal(file, {"module": "a", "inputs": "right"}).close()
    assert file.read_bytes() == b'{"measured":{"module":"a","inputs":"right"}}\n'


@pytest.mark.parametrize("text", [b"notes", b"[1]\n", b'{"a": 1}\n{"b', b'{"measured": 3}\n', b"\xff\n", b'{"measured":{}}\n5\n'])
def test_a_file_that_is_no_journal_stays_as_it_is(tmp_path, text):
    file = tmp_path / "a.jsonl"
    file.write_bytes(text)
    with pytest.raises(td.DataError, match="no journal of tpudist measure"):
        Journal(file, {"module": "a"})
    assert file.read_bytes() == text


def test_a_journal_whose_first_line_was_cut_begins_again(tmp_path):
    file = tmp_path / "a.jsonl"
    for cut in (b"", b'{"meas', b'{"measured":{"mod'):
        file.write_bytes(cut)
        Journal(file, {"module": "a"}).close()
        assert file.read_bytes() == b'{"measured":{"module":"a"}}\n'


@contextlib.contextmanager
def file_size_limit(size):
    """Writing more fails, after the part that fits: as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_damages_nothing(tmp_path):
    file, out = tmp_path / "a.jsonl", tmp_path / "a.pb"
    journal = Journal(file, {"module": "a"})
    journal.add_config({}, program=0)
    whole = file.read_bytes()
    out.write_bytes(b"of before")
    with file_size_limit(len(whole) + 10):
        with pytest.raises(td.Error, match="a.jsonl: File too large; the same command goes on"):
            journal.add_round(kind="measure", ns=[1] * 100)
        with pytest.raises(td.Error, match="a.pb: File too large"):
            write_results(out, b"module" * 1000, Space((), (), ()), [])
    assert file.read_bytes() == whole and not journal.rounds
    assert out.read_bytes() == b"of before" and sorted(tmp_path.iterdir()) == [file, out]
    journal.add_round(kind="measure", ns=[1])
    journal.close()
    assert [one["ns"] for one in Journal(file, {"module": "a"}).rounds] == [[1]]


def run_python(code, *arguments, **variables):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})


def test_a_configuration_that_ended_the_process_twice_has_failed(tmp_path):
    code = """import os, pathlib, signal, sys
from tpudist.journal import Journal
with Journal(pathlib.Path(sys.argv[1]), {}).begun({"dot": ((0, 1),)}):
    exec(sys.argv[2])"""
    kill, stop, fail = "os.kill(os.getpid(), signal.SIGKILL)", "raise KeyboardInterrupt", "raise ValueError"
    file, said = tmp_path / "a.jsonl", []
    for what in (kill, stop, kill, fail, kill, kill, kill):
        said.append((run_python(code, file, what).stderr.strip().splitlines() or ["killed"])[-1])
    assert said[:6] == ["killed", "KeyboardInterrupt", "killed", "ValueError", "killed", "killed"]
    assert said[6] == "tpudist.errors.Error: ended the process twice"
    journal = Journal(file, {})
    with journal.begun({}):
        assert (tmp_path / "a.begun").read_text() == "{}\n"
    assert sorted(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("jax")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('x = f32[2] parameter(0)\nROOT y = f32[2] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback"',
         "y (custom-call) speaks with the program that made the module"),
        ("x = f32[2] parameter(0)\nt = token[] after-all()\nROOT y = token[] outfeed(x, t)", "y (outfeed) speaks"),
        ("x = (f32[2]) parameter(0)\nROOT y = f32[2] get-tuple-element(x), index=0", "the input (f32[2]{0}) is no array"),
        ("x = f32[<=2] parameter(0)\nROOT y = f32[<=2] negate(x)", "the input f32[<=2]{0} is no array"),
    ],
)
def test_a_program_that_cannot_run_alone_is_refused(tmp_path, body, message):
    file = tmp_path / "module.txt"
    file.write_text(f"HloModule m\n\nENTRY main {{\n{body}\n}}\n")
    code = """import pathlib, sys, tpudist.hlo
try:
    tpudist.hlo.Program(pathlib.Path(sys.argv[1]))
except tpudist.DataError as error:
    print(error)"""
    done = run_python(code, file)
    assert done.returncode == 0, done.stderr
    assert message in done.stdout and str(file) in done.stdout


@pytest.mark.usefixtures("jax")
def test_a_program_of_lapack_runs():
    code = """import pathlib, sys
from tpudist.device import Device
from tpudist.hlo import Program
program = Program(pathlib.Path(sys.argv[1]))
device = Device(program, "", None)
print(len(device.results(device.compile(program.with_layouts([])))))"""
    done = run_python(code, MODULES / "linear_algebra.pb")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


@pytest.mark.usefixtures("jax")
def test_inputs_are_checked(tmp_path):
    code = """import pathlib, sys, ml_dtypes, numpy, tpudist
from tpudist.device import Device
from tpudist.hlo import Program
folder = pathlib.Path(sys.argv[1])
(folder / "module.txt").write_text(
    "HloModule m\\n\\nENTRY main {\\nx = bf16[2] parameter(0)\\nn = s32[] parameter(1)\\nROOT y = bf16[2] negate(x)\\n}\\n")
program, file = Program(folder / "module.txt"), folder / "inputs.npz"
def show(**arrays):
    if arrays:
        numpy.savez(file, **arrays)
    try:
        device = Device(program, "", file)
        print(device.call(device.compile(program.with_layouts([])))[0])
    except tpudist.DataError as error:
        print(error)
show(**{"0": numpy.array([1, 2], ml_dtypes.bfloat16)})
show(arr_0=numpy.zeros(2))
show(**{"0": numpy.zeros(3, numpy.float32)})
file.write_bytes(file.read_bytes()[:-40])
show()"""
    done = run_python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    first, unknown, other, cut = done.stdout.splitlines()
    assert first == "[-1 -2]"
    assert "arr_0 is none of the 2 inputs; they are named 0, 1, ..." in unknown
    assert "input 0 is float32[3], the program needs bf16[2]" in other
    assert "is no NPZ of arrays" in cut


def test_another_jaxlib_is_refused(tmp_path):
    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib/__init__.py").write_text("__version__ = '0.11.3'\n")
    done = run("measure", tmp_path / "out.pb", PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "jaxlib 0.11.3 in" in done.stderr and "0.10 is needed" in done.stderr


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
        times = ("ns", "busy", "mhz", "turns")
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
def test_ctrl_c_writes_what_there_is(tmp_path):
    out = tmp_path / "out.pb"
    environment = {**os.environ, "TPUDIST_PYTHON": sys.executable}
    child = subprocess.Popen(
        words("measure", out, "--rounds", 10_000, "--configs", "random:2"), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, env=environment, restore_signals=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    # A stop may come between the line of a round in the journal and what the process knows of it: wait for two.
    while not out.with_suffix(".jsonl").exists() or sum("round" in line for line in lines_of(out)) < 2:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate()
    assert child.returncode == td.Stopped.exit_code and "stopped after" in said and len(said.splitlines()) == 1
    assert out.exists() and (np.load(out.with_suffix(".npz"))["config_runtime"] > 0).all()


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
    rounds = [line["programs"] for line in lines_of(out) if "round" in line]
    assert rounds and all(len(programs) > 2 for programs in rounds)  # the default is measured beside others only


@pytest.mark.usefixtures("jax")
def test_mistakes_are_one_line(tmp_path):
    text = tmp_path / "module.txt"
    text.write_text("HloModule broken\n")
    whole = tmp_path / "whole.txt"
    whole.write_text("HloModule m\n\nENTRY main {\nx = f32[2] parameter(0)\nROOT y = f32[2] negate(x)\n}\n")
    for module, out, message in (
        (text, tmp_path / "out.pb", "XLA does not read it as a module"),
        (whole, tmp_path / "out.pb", "`python -m tpudist.hlo TEXT PROTO`"),
        (BEFORE, tmp_path / "out.npz", "is a tuning file, NAME.pb"),
        (BEFORE, ".", "is a tuning file, NAME.pb"),
    ):
        command = words("tune", out)
        command[2] = str(module)
        environment = {**os.environ, "TPUDIST_PYTHON": sys.executable}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode in (2, 3) and message in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.usefixtures("jax")
def test_a_text_becomes_a_proto(tmp_path):
    def inspect(file, *options):
        return subprocess.run([program(), "inspect", str(file), *options], capture_output=True, text=True)

    text, proto = tmp_path / "before.txt", tmp_path / "before.hlo.pb"
    code = """if True:
        import pathlib, sys
        from tpudist.hlo import Program
        from tpudist.optional import jaxlib
        proto = Program(pathlib.Path(sys.argv[1])).proto
        module = jaxlib("_hlo").HloModule.from_serialized_hlo_module_proto(proto)
        first, rest = module.to_string().split("\\n", 1)
        print(f"{first}, num_partitions=2\\n{rest}")  # for several devices, which measure refuses
    """
    done = subprocess.run([sys.executable, "-c", code, str(BEFORE)], capture_output=True, text=True, check=True)
    text.write_text(done.stdout)
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
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1


def test_a_python_without_jax_says_what_to_install(tmp_path):
    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib/__init__.py").write_text("raise ImportError('no jaxlib')\n")
    paths = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    done = run("measure", tmp_path / "out.pb", PYTHONPATH=paths)
    assert done.returncode == 1
    assert "pip install 'tpudist[measure]'" in done.stderr
