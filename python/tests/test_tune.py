"""What `measure` and `tune` decide, on a device whose times are known."""

import itertools
import json
import pathlib
import random
import re
import time

import numpy as np
import pytest

import tpudist as td
from tpudist import measure, timing, tune
from tpudist.device import Compiled
from tpudist.hlo import Operation, Space, state_of

STATES = tuple((order,) for order in itertools.permutations(range(3)))
OPERATIONS = tuple(Operation(name, "reshape", node, STATES, STATES[0]) for node, name in enumerate("abc"))


class Machine:
    """A program of three operations, its compiler and its device. `ns` gives a program's time: of its changes as text,
    such as "a1 c4", and of how often they were compiled before."""

    path, name = pathlib.Path("fake.pb"), "fake"
    proto, donates = b"", False

    def __init__(self):
        self.clock, self.compiled, self.results_of = 0, [], lambda text: 1.0
        self.ns = lambda text, copy: 10_000_000

    def constraints(self, space, changes):
        return [f"{name}{STATES.index(state)}" for name, state in sorted(changes.items())]

    def with_layouts(self, constraints):
        return " ".join(constraints)

    def compile(self, text):
        self.compiled.append(text)
        return Compiled((text, self.compiled.count(text) - 1), text, "")

    def call(self, compiled):
        self.clock += round(self.ns(*compiled.executable))

    def results(self, compiled):
        return [np.array([self.results_of(compiled.fingerprint)])]

    def facts(self):
        return {"device": "fake", "jax": "fake"}

    def noise(self, share):
        """Equal programs, but for the noise of each call."""
        rng = random.Random(1)
        self.ns = lambda text, copy: 10_000_000 * rng.lognormvariate(0, share)


@pytest.fixture
def machine(monkeypatch):
    made = Machine()
    monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: made.clock)
    monkeypatch.setattr(measure, "Program", lambda path: made)
    monkeypatch.setattr(measure, "Device", lambda program, name, inputs: made)
    monkeypatch.setattr(measure, "kept", lambda constraints, optimised: [True] * len(constraints))
    monkeypatch.setattr(measure, "write_results", lambda *_: None)
    groups = tuple((number,) for number in range(len(OPERATIONS)))
    configs = tuple({one.name: state} for one in OPERATIONS for state in STATES[1:])
    monkeypatch.setattr(Space, "read", lambda module, default, which: Space(OPERATIONS, groups, configs))
    return made


@pytest.fixture
def files(tmp_path):
    """Arguments of `measure` and `tune`."""
    (tmp_path / "after.pb").write_bytes(b"")
    return {"module": "fake.pb", "default": tmp_path / "after.pb", "out": tmp_path / "out.pb"}


def lines_of(files):
    return [json.loads(line) for line in files["out"].with_suffix(".jsonl").read_text().splitlines()]


def test_the_journal_is_closed_when_measuring_is_stopped(machine, files):
    def stopped(text, copy):
        if text == "c5" and copy == 0 and machine.clock > 1e9:
            raise KeyboardInterrupt
        return 10_000_000

    machine.ns = stopped
    with pytest.raises(td.Stopped) as first:
        measure.measure(**files, rounds=50)
    machine.ns = lambda text, copy: 10_000_000
    measure.measure(**files, rounds=5)  # while a notebook keeps the exception
    assert "stopped after" in str(first.value)


def test_a_default_that_does_not_compile_leaves_nothing_behind(machine, files):
    compile_it, machine.compile = machine.compile, lambda text: 1 / 0
    with pytest.raises(ZeroDivisionError) as first:
        measure.Bench(**files)
    machine.compile = compile_it
    files["default"].write_bytes(b"another")
    measure.Bench(**files)
    assert first.value and len(lines_of(files)) == 2


def test_a_journal_of_another_way_of_timing_is_refused(machine, files):
    measure.Bench(**files)
    journal = files["out"].with_suffix(".jsonl")
    journal.write_text(journal.read_text().replace(f',"way of timing":{timing.RULE}', "", 1))
    with pytest.raises(td.ConfigError, match="was measured with another way of timing"):
        measure.Bench(**files)


def test_what_was_measured_is_counted_without_the_default(machine, files, capsys):
    slower = {"": 1.0, "c3": 0.9, "b5": 0.8}
    machine.ns = lambda text, copy: 10_000_000 * slower.get(text, 1.2)
    compile_it = machine.compile

    def compile_some(text):
        if text == "a2":
            raise td.Error("does not compile")
        return compile_it("c3" if text == "b2" else text)

    machine.compile = compile_some
    found = tune.tune(**files, most=5, show="text")
    assert (found.measured, found.programs) == (4, 3)
    assert "measured 4 configurations, 3 distinct programs, in 0 s; the budget is spent\n" in capsys.readouterr().out
    tune.tune(**files, most=5, show="text")  # this process measured less than the journal has
    assert "measured 4 configurations, 3 distinct programs; the budget is spent\n" in capsys.readouterr().out


def test_luck_makes_no_configuration_the_best(machine, files):
    machine.noise(0.01)
    found = tune.tune(**files, precision="40%")
    assert found.rounds == 0  # nothing was worth a comparison
    assert (found.measured, found.why) == (50, "5 batches found nothing faster")
    assert (found.best.number, found.fastest.number) == (0, 0)


def test_a_search_finds_what_needs_two_changes_and_goes_on_where_it_ended(machine, files):
    machine.noise(0.01)
    noisy = machine.ns
    machine.ns = lambda text, copy: noisy(text, copy) * (0.85 if re.match("a[24] b[35]", text) else 1.0)
    tune.tune(**files, precision="40%", propose=20, most=20)
    found = tune.tune(**files, precision="40%", propose=20, most=150)
    again = tune.tune(**files, precision="40%", propose=20, most=150)
    assert again.measured - found.measured < 20  # what ended the search is known from the journal
    for one in (found, again):
        assert one.best.changes["a"] in (STATES[2], STATES[4]) and one.best.changes["b"] in (STATES[3], STATES[5])


def test_a_wrong_model_does_not_hide_what_is_faster(machine, files, monkeypatch):
    machine.noise(0.01)
    noisy, space = machine.ns, Space.read(None, None, "")
    machine.ns = lambda text, copy: noisy(text, copy) * (0.85 if {"a", "b"} <= set(text) else 1.0)

    def read(module, default, which):
        layouts = json.loads(pathlib.Path(which).read_text()) if which.endswith(".json") else []
        configs = [{name: state_of(own) for name, own in one.items()} for one in layouts]
        return Space(OPERATIONS, space.groups, tuple(
            {name: state for name, state in one.items() if state != STATES[0]} for one in configs))

    def model(words):
        """Prefers what changes a and b least."""
        if words[0] == "search":
            return json.dumps({"ranking": [{"layouts": space.layouts({"c": state})} for state in STATES[1:]]})
        pool, measured = (json.loads(pathlib.Path(words[words.index(option) + 1]).read_text())
                          for option in ("--configs", "--measured"))
        known = [one["layouts"] for one in measured]
        ranked = sorted((one for one in pool if one not in known), key=lambda one: (one["a"], one["b"]))
        return json.dumps({"measured": {"next": [
            {"layouts": one} for one in ranked[: int(words[words.index("--next") + 1])]]}})

    monkeypatch.setattr(Space, "read", read)
    monkeypatch.setattr(tune, "run_program", model)
    found = tune.tune(**files, runs=["run"], precision="40%", propose=20, most=100)
    assert {"a", "b"} <= set(found.best.changes)
    assert [one["config"] for one in lines_of(files) if "config" in one][1:6] == [
        {"c": [list(state[0])]} for state in STATES[1:]]


def test_the_copy_that_won_does_not_judge_itself(machine, files, monkeypatch, capsys):
    monkeypatch.setattr(tune._extension, "apply_layouts", lambda title, configs, **_: title)
    noise = random.Random(1)
    machine.ns = lambda text, copy: (9e6 if (text, copy) == ("b1", 0) else 10e6) * noise.lognormvariate(0, 0.001)
    found = tune.tune(**files, apply="jax")
    assert found.best.number == 0 and found.fastest.changes == {"b": STATES[1]}
    assert not found.ratio.interval[1] < 0
    assert capsys.readouterr().out == "fake.pb: configuration 0, the default: none is better"
    tune.tune(**files, show="text")
    text = capsys.readouterr().out
    assert "no better than the default" in text and "--apply" not in text
    machine.compiled.clear()
    tune.tune(**{**files, "out": files["out"].with_name("other.pb")}, show="json")
    told = json.loads(capsys.readouterr().out)
    assert (told["best"], told["fastest"]) == (0, found.fastest.number)
    assert told["layouts"] == {one.name: [[0, 1, 2]] for one in OPERATIONS}


def test_a_stop_tells_the_best_so_far(machine, files):
    def until(text, copy):
        if machine.clock > 5e9:
            raise KeyboardInterrupt
        return 9_000_000 if text == "b1" else 10_000_000

    machine.ns = until
    with pytest.raises(td.Stopped, match=r"the fastest is configuration 5, -10.00 \+- 0.00 % than the default; the same"):
        tune.tune(**files)


def test_other_results_are_told_by_name_and_the_rest_goes_on(machine, files):
    machine.results_of = lambda text: 1.002 if text == "a1" else 1.0
    found = measure.measure(**files, rounds=5)
    assert [one.number for one in found if one.error] == [1]
    assert found[1].error == "has other results than the default: they differ by 0.002 of the largest value, and " \
        "0.001 is allowed"
    assert found[2].ratio.value == 0


def test_a_program_that_gives_other_results_each_time_is_told_so(machine, files):
    rng = random.Random(1)
    machine.results_of = lambda text: rng.random()
    with pytest.raises(td.Error, match="the default gives other results each time: they differ by"):
        measure.Bench(**files)


def test_a_program_that_fails_in_a_round_is_left_out_of_the_others(machine, files):
    calls = []

    def call(text, copy):
        calls.append(text)
        if text == "b1" and calls.count(text) > 20:
            raise RuntimeError("RESOURCE_EXHAUSTED: no memory")
        return 10_000_000

    machine.ns = call
    found = measure.measure(**files, rounds=6)
    assert [one.number for one in found if one.error] == [6]
    assert found[6].error == "runs out of memory: RESOURCE_EXHAUSTED: no memory"
    rounds = [line["programs"] for line in lines_of(files) if "round" in line]
    assert len(rounds) == 6 and 6 in rounds[1] and rounds[-1] == [n for n in range(-1, 16) if n != 6]
    calls.clear()
    assert len(measure.measure(**files, rounds=6)) == 16 and "b1" not in calls
    machine.ns = lambda text, copy: 1 / 0
    with pytest.raises(td.Error, match="fake.pb: the default does not run: division by zero"):
        measure.measure(**files, rounds=7)


def test_no_configuration_is_compiled_once_the_budget_is_spent(machine, files):
    bench = measure.Bench(**files)
    numbers = bench.take([{}, *bench.space.configs])
    bench.journal.close()
    machine.compiled.clear()
    bench = measure.Bench(**files)
    assert len(bench.run(numbers, until=time.monotonic() - 1)) == 1
    assert machine.compiled == ["", ""]


def test_what_was_not_reached_is_told_once(machine, files, capsys):
    machine.noise(0.01)
    measure.measure(**files, rounds=4, show="text")
    said = capsys.readouterr()
    assert said.err.count("warning") == 1 and "fewer than 5 rounds give no standard errors\n" in said.err
    assert "+-" not in said.out
    measure.measure(**files, rounds=5, show="text")
    assert capsys.readouterr().err == ""
    measure.measure(**files, precision="0.01%", budget="0s")
    assert "--precision 0.01% was not reached: standard errors are up to" in capsys.readouterr().err
