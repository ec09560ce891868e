"""Trainings as child processes, runs as objects: against the program and its files."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import tpudist as td
from tpudist.program import error_from, run_program
from tpudist.run import _Tail


def rows(frame):
    """A frame as a list of dicts, with pandas or without."""
    return frame if isinstance(frame, list) else frame.to_dict("records")


def test_an_experiment_is_resolved(experiment_file, shards):
    experiment = td.Experiment.load(experiment_file, **{"train.steps": 100, "optimizer.lr": 1e-5})
    assert experiment.name == "small"
    assert experiment.config["train"]["steps"] == 100
    assert experiment.config["optimizer"]["lr"] == 1e-5
    assert experiment.config["batch"]["draw"] == "rows"  # a default
    assert experiment.config["data"]["shards"] == str(shards)
    assert experiment.override(**{"train.steps": 3}).config["train"]["steps"] == 3
    numbers = experiment.override(**{"train.steps": np.int64(3), "loss": {"list_mle": {"clip_norm": np.float32(5)}}})
    assert numbers.arguments == ["train.steps=3", "optimizer.lr=1e-05", 'loss={"list_mle": {"clip_norm": 5.0}}']
    assert numbers.config["train"]["steps"] == 3
    with pytest.raises(TypeError, match="no value of type set"):
        experiment.override(name={"a"})


def test_mistakes_of_an_experiment_are_a_config_error(experiment_file):
    with pytest.raises(td.ConfigError) as caught:
        td.Experiment.load(experiment_file, **{"train.stepz": 3, "batch.configs": 0})
    first, second = str(caught.value).splitlines()
    assert "batch.configs" in first and 'unknown key "stepz"' in second
    assert not first.startswith("tpudist")


def test_a_run_has_what_its_files_have(run):
    lines = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    metrics = rows(run.metrics())
    assert len(metrics) == 2 * len(steps) == 12
    losses = [np.nan if line["loss"][1] is None else line["loss"][1] for line in steps]
    assert [row["loss"] for row in metrics if row["member"] == 1] == pytest.approx(losses, nan_ok=True)
    assert np.isnan(losses).any() and not np.isnan(losses).all()  # None where all slates are held out
    evaluations = rows(run.evaluations())
    assert {row["step"] for row in evaluations} == {3, 6}
    scores = json.loads((run.path / "scores.json").read_text())
    table = rows(run.scores())
    assert [row["graph"] for row in table] == [graph["name"] for graph in scores["ensemble"]["graphs"]]
    primary = scores["ensemble"]["primary"]
    assert table[0]["members_mean"] == pytest.approx(
        np.mean([member["graphs"][0][primary] for member in scores["members"]])
    )
    assert rows(run.out_of_fold()) == scores["out_of_fold"]["members"]
    assert [checkpoint.name for checkpoint in run.checkpoints] == ["3", "6", "best"]
    assert [member.number for member in run.members] == [0, 1]
    assert run.config["train"]["steps"] == 6


def test_intervals_are_those_that_the_program_prints(run, experiment_file, tmp_path):
    file = tmp_path / "judged.json"
    program = os.environ.get("TPUDIST_PROGRAM", "tpudist")
    subprocess.run([program, "evaluate", run.path, "--json", file], check=True, capture_output=True)
    (table,) = json.loads(file.read_text())["judgement"]["tables"]
    judged = {graph["name"]: graph for graph in table["graphs"]}
    for row in rows(run.scores()):
        graph = judged[row["graph"]]
        assert row["sampling_deviation"] == pytest.approx(graph["sampling_deviation"])
        # Of these small graphs no ceiling is known.
        assert graph["ceiling_interval"] is None and graph["ceiling"] is None
        assert all(row[name] is None or np.isnan(row[name]) for name in ("ceiling", "low_ceiling", "high_ceiling"))
    found = {(row["on"], row["question"]): row for row in rows(run.intervals())}
    for question, key in (
        ("other members of this training", "these_graphs"), ("other families, this model only", "other_families")
    ):
        row, want = found["valid split", question], table["intervals"][key]
        assert [row[name] for name in ("value", "low", "high")] == pytest.approx(
            [want[name] for name in ("value", "low", "high")]
        )
    # One training of one member for each fold: nothing is known of others.
    assert [question for on, question in found if on != "valid split"] == ["other families, this model only"]
    off = {"predictions.rows": "none", "train.log_every": 10}
    without = td.train(experiment_file, off, run_dir=tmp_path / "without", quiet=True)
    metrics = without.metrics()  # six steps, of which none is logged
    assert len(metrics) == 0 and (isinstance(metrics, list) or metrics["loss"].empty)
    assert "ceiling" not in rows(without.scores())[0]
    with pytest.raises(td.Error, match="no predictions.h5; it needs predictions.rows"):
        without.intervals()


def test_evaluate_scores_again(run):
    last, again = rows(run.scores()), rows(run.evaluate("valid"))
    assert [row["graph"] for row in again] == [row["graph"] for row in last]
    for name in again[0]:
        assert [row[name] for row in again] == pytest.approx([row[name] for row in last], nan_ok=True)


def test_weights_are_those_of_the_export(run):
    torch = pytest.importorskip("torch")
    first, second = (member.state_dict() for member in run.members)
    assert list(first) == list(second)
    assert all(tensor.dtype == torch.float32 for tensor in first.values())
    assert any(not torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], run.members[0].state_dict(3)[name]) for name in first)


def test_predictions_score_each_graph_by_members_that_never_saw_it(run, shards):
    table = rows(run.predictions())
    train = td.open(shards, "layout:xla:random")
    held_out = {row["graph"]: set() for row in table}
    for row in table:
        held_out[row["graph"]].add(row["member"])
    assert all(row["held_out"] for row in table if row["split"] == "train")
    for name, graph in train.items():
        assert len(held_out[name]) == 1
        own = [row for row in table if row["graph"] == name]
        assert [row["config"] for row in own] == list(range(graph.configs))
        assert [row["runtime"] for row in own] == graph.runtimes.tolist()


def test_rank_takes_a_file_or_its_arrays(run, npz):
    file = sorted((npz / "layout/xla/random/test").glob("*.npz"))[0]
    by_file = rows(run.rank(file, top=0))
    with np.load(file) as opened:
        arrays = dict(opened)
    by_arrays = rows(run.rank(arrays, top=0))
    fortran = {name: np.asfortranarray(array).astype(array.dtype.newbyteorder(">")) for name, array in arrays.items()}
    assert by_file == by_arrays == rows(run.rank(fortran, top=0))
    with pytest.raises(td.DataError, match="^module:.*edge_index") as caught:
        run.rank({**fortran, "edge_index": fortran["edge_index"][:, :1]})
    assert "module.npz" not in str(caught.value)
    assert [row["rank"] for row in by_file] == list(range(1, len(by_file) + 1))
    order = run.predict("test")[file.stem]
    assert sorted(order) == list(range(len(order)))
    assert order[0] in by_file[0]["equal_configs"]
    assert len(rows(run.rank(file, top=3))) == 3


def test_predict_tells_graphs_of_several_collections_apart(experiment_file, npz, tmp_path):
    collections = ["layout:xla:default", "layout:xla:random"]
    changes = {"data.collection": collections, "train.steps": 1, "ensemble.folds": "none", "ensemble.vary": ["init"],
               "train.last_evaluation": "none", "predictions.rows": "none"}
    experiment = td.Experiment.load(experiment_file, **changes)
    order = td.train(experiment, run_dir=tmp_path / "both", quiet=True).predict("test")
    files = [file for name in collections for file in (npz / name.replace(":", "/") / "test").glob("*.npz")]
    assert sorted(order) == sorted(f"{':'.join(file.parts[-5:-2])}:{file.stem}" for file in files)


def test_predict_keeps_ids_whole(npz, experiment_file, tmp_path):
    names = ["x:1", "y:1", "layout:xla:random:z", "a\u2028b"]
    folder = tmp_path / "npz" / "layout" / "xla" / "random"
    for split in ("train", "valid"):
        shutil.copytree(npz / "layout" / "xla" / "random" / split, folder / split)
    file = next(iter((folder / "valid").glob("*.npz")))
    for name in names:
        (folder / "valid" / f"{name}.npz").write_bytes(file.read_bytes())
    td.convert(tmp_path / "npz", tmp_path / "shards")
    changes = {"data.shards": tmp_path / "shards", "train.steps": 1, "ensemble.folds": "none", "ensemble.vary": ["init"],
               "train.last_evaluation": "all", "train.evaluate_every": 0, "predictions.rows": "none"}
    seen = []
    trained = td.train(experiment_file, changes, run_dir=tmp_path / "run", on_step=seen.append)
    assert set(trained.predict("valid")) == {*names, *(path.stem for path in (npz / "layout/xla/random/valid").glob("*"))}
    assert len(seen) == len(trained.lines())


def test_an_override_may_be_infinite(experiment_file):
    clipped = td.Experiment.load(experiment_file, **{"loss": {"list_mle": {"clip_norm": 5}}})
    whole = clipped.override(**{"loss.list_mle.clip_norm": float("inf")})
    assert whole.config["loss"]["list_mle"]["clip_norm"] == float("inf")
    assert clipped.override(loss={"list_mle": {"clip_norm": float("inf")}}).config == whole.config


def test_errors_have_the_text_and_the_exit_code_of_the_program(run, tmp_path):
    damaged = tmp_path / "module.npz"
    damaged.write_bytes(b"no zip")
    with pytest.raises(td.DataError, match="module.npz") as caught:
        run.rank(damaged)
    assert caught.value.exit_code == 3
    with pytest.raises(td.ConfigError):
        run.rank(tmp_path / "nothing.npz")
    with pytest.raises(td.ConfigError, match="no config.yaml"):
        td.Run(tmp_path)
    with pytest.raises(td.Error, match="exists|already|resume"):
        td.train(run.path / "config.yaml", run_dir=run.path, quiet=True)


def test_a_program_that_is_missing_is_said(run, monkeypatch):
    monkeypatch.setenv("TPUDIST_PROGRAM", "/nowhere/tpudist")
    with pytest.raises(td.Error, match="TPUDIST_PROGRAM=/nowhere/tpudist: no such program"):
        run.evaluate()


def test_words_of_mpirun_are_no_part_of_an_error():
    said = error_from(2, "tpudist: error (rank 0): a.yaml: no such file\n  [node:3] is text\n[node:26177] [[2751,0],0] "
                         "ORTE_ERROR_LOG: Data unpack would read past end of buffer\n-----\nmpirun noticed\n")
    assert isinstance(said, td.ConfigError)
    assert str(said) == "a.yaml: no such file\n  [node:3] is text"


def test_an_error_without_a_line_of_its_own_has_the_end_of_the_log():
    log = "".join(f"{number}\n" for number in range(30)) + "-----\nmpirun noticed\n\n"
    said = error_from(1, log)
    assert str(said).splitlines() == ["tpudist ended with exit code 1", *map(str, range(12, 30)), "-----",
                                      "mpirun noticed"]
    said = error_from(-9, "")
    assert (str(said), said.exit_code) == ("tpudist was killed by signal 9", -9)
    assert isinstance(error_from(3, ""), td.DataError)


def test_a_log_is_shown_while_the_program_works(tmp_path, monkeypatch):
    """The stub ends well only after its first line was shown."""
    stub, shown = tmp_path / "tpudist", tmp_path / "shown"
    stub.write_text(f"""#!/bin/sh
echo out; echo first >&2
for i in $(seq 100); do [ -e {shown} ] && break; sleep 0.1; done
[ -e {shown} ] || exit 1
[ "$1" = good ] || {{ echo "tpudist: error: bad" >&2; exit 3; }}
""")
    stub.chmod(0o755)
    monkeypatch.setenv("TPUDIST_PROGRAM", str(stub))
    said = []

    class Screen:
        def write(self, text):
            said.append(text)
            shown.touch()

    monkeypatch.setattr(sys, "stderr", Screen())
    assert run_program(["good"], quiet=False) == "out\n"
    assert said == ["first\n"]
    said.clear()
    with pytest.raises(td.DataError, match="^bad$"):
        run_program(["bad"], quiet=False)
    assert said == ["first\n", "tpudist: error: bad\n"]
    said.clear()
    assert run_program(["good"]) == "out\n" and not said


def test_steps_are_reported_while_it_trains_and_resume_goes_on(experiment_file, run, tmp_path):
    class Enough(Exception):
        pass

    lines = []

    def first_steps(line):
        lines.append(line)
        if line["kind"] == "step" and line["step"] == 2:
            raise Enough

    overrides = {"train.steps": 300, "train.evaluate_every": 0}
    with pytest.raises(Enough):
        td.train(experiment_file, overrides, run_dir=tmp_path / "run", on_step=first_steps)
    assert [(line["kind"], line["step"]) for line in lines] == [("start", 0), ("step", 1), ("step", 2)]
    stopped = td.Run(tmp_path / "run")
    at = int(stopped.checkpoints[-1].name)
    assert 2 <= at < 300
    later = []
    again = stopped.resume(on_step=later.append)
    assert [line["step"] for line in later if line["kind"] == "step"] == list(range(at + 1, 301))
    whole = td.train(experiment_file, overrides, run_dir=tmp_path / "whole", quiet=True)
    assert losses_of(again) == losses_of(whole)
    with pytest.raises(td.ConfigError, match="train.steps: 300 -> 400"):
        again.resume("train.steps=400", quiet=True)


def losses_of(run):
    """The logged losses as text, so that NaN equals NaN."""
    return [repr(row["loss"]) for row in rows(run.metrics())]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
def test_ranks_change_no_bit(experiment_file, run, tmp_path):
    two = td.train(experiment_file, run_dir=tmp_path / "two", ranks=2, quiet=True)
    assert losses_of(two) == losses_of(run)
    with pytest.raises(td.ConfigError, match="^.*run-dir.*$|^.*exists.*$|^.*resume.*$") as caught:
        td.train(experiment_file, run_dir=tmp_path / "two", ranks=2, quiet=True)
    assert len(str(caught.value).splitlines()) == 1


def test_lines_are_followed_into_a_file_in_its_place(tmp_path):
    """--resume writes metrics.jsonl anew, without the lines behind its checkpoint, and takes the place of the old one."""
    file = tmp_path / "metrics.jsonl"
    line = '{{"kind": "step", "step": {}}}\n'.format
    tail = _Tail(file, set())
    assert list(tail.new_lines()) == []
    file.write_text(line(1) + line(2) + line(3)[:9])
    assert [found["step"] for found in tail.new_lines()] == [1, 2]
    with file.open("a") as opened:
        opened.write(line(3)[9:])
    assert [found["step"] for found in tail.new_lines()] == [3]
    # A longer file under the same name: only its inode says that it is another.
    new = tmp_path / "new"
    new.write_text("".join(map(line, range(10, 20))))
    new.replace(file)
    assert [found["step"] for found in tail.new_lines()] == list(range(10, 20))
    # The same file, cut back.
    os.truncate(file, len(line(10)))
    with file.open("a") as opened:
        opened.write(line(30))
    assert [found["step"] for found in tail.new_lines()] == [10, 30]
    # What was there before is no news, also where the file is read from its beginning.
    assert [found["step"] for found in _Tail(file, {line(10).strip()}).new_lines()] == [30]
    file.write_text(line(40) + "{nothing\n")
    with pytest.raises(td.DataError, match="metrics.jsonl:2: no line of JSON"):
        list(tail.new_lines())


def test_an_exception_of_on_step_stops_with_a_checkpoint(experiment_file, tmp_path):
    def stop(line):
        if line["kind"] == "step":
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        td.train(experiment_file, {"train.steps": 10_000_000}, run_dir=tmp_path / "run", on_step=stop)
    run = td.Run(tmp_path / "run")
    steps = [int(checkpoint.name) for checkpoint in run.checkpoints if checkpoint.name != "best"]
    assert 0 < steps[0] <= steps[-1] < 10_000_000
    assert rows(run.metrics())[-1]["step"] <= steps[-1]


def test_ctrl_c_stops_with_a_checkpoint(experiment_file, tmp_path):
    code = f"""
import tpudist as td
try:
    td.train({str(experiment_file)!r}, {{"train.steps": 10_000_000}}, run_dir={str(tmp_path / "run")!r},
             on_step=lambda line: print(line["kind"], flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    for line in child.stdout:
        if line == "step\n":
            break
    child.send_signal(signal.SIGINT)
    assert child.stdout.read().endswith("interrupted\n")
    assert child.wait(timeout=60) == 0
    assert td.Run(tmp_path / "run").checkpoints


def test_compare_gives_intervals(experiment_file, tmp_path):
    sides = {}
    for name, rate in {"a": 1e-3, "b": 1e-2}.items():
        sides[name] = [
            td.train(
                experiment_file, {"optimizer.lr": rate, "seed.init": seed, "train.steps": 2},
                run_dir=tmp_path / f"{name}{seed}", quiet=True,
            )
            for seed in (1, 2, 3)
        ]
    found = td.compare(sides["a"], sides["b"])
    low, high = found.interval
    assert low <= found.difference <= high
    other = td.compare(sides["b"], sides["a"])
    assert other.difference == pytest.approx(-found.difference)
    assert found.values["all"][0]["verdict"].strip() == found.verdict
    assert len(repr(found).splitlines()) == 1

    page = td.report(sides["a"] + sides["b"], tmp_path / "page.html", csv=tmp_path / "tables", no_ceilings=True)
    assert list((tmp_path / "tables").glob("*.csv"))
    assert page.html.lstrip().lower().startswith("<!doctype html")
    assert "<iframe srcdoc=" in page._repr_html_()


def test_a_sweep_has_a_table(experiment_file, tmp_path):
    file = tmp_path / "rates.yaml"
    file.write_text(
        f"name: rates\nexperiments: {experiment_file}\nset: {{train.steps: 2}}\n"
        "sweep: {seeds: 2, over: {optimizer.lr: [1e-3, 1e-2]}}\n"
    )
    with pytest.raises(td.ConfigError, match="no sweep.json"):
        td.Sweep(tmp_path)
    subprocess.run(
        [os.environ.get("TPUDIST_PROGRAM", "tpudist"), "sweep", "run", file, "--dir", tmp_path / "rates"],
        check=True, capture_output=True,
    )
    sweep = td.Sweep(tmp_path / "rates")
    table = rows(sweep.table())
    assert len(table) == 2 and all(row["finished"] == 2 for row in table)
    assert len(sweep.runs) == 4
