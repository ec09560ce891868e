"""Runs, trainings and their results, by the program and the files that it writes."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _extension
from .errors import ConfigError, DataError, Error, Stopped
from .experiment import Experiment
from .optional import load
from .program import error_from, program, run_program

__all__ = [
    "Checkpoint", "Comparison", "Member", "Report", "Run", "Sweep", "compare", "convert", "report", "synth", "train",
]

_Path = str | os.PathLike[str]
#: A pandas.DataFrame where pandas is installed, else a list of dicts with the same names.
Frame = Any


def frame(rows: list[dict[str, Any]], *columns: str) -> Frame:
    """The rows as a pandas.DataFrame, or unchanged without pandas. `columns`: for a frame without rows."""
    pandas = _pandas()
    return rows if pandas is None else pandas.DataFrame(rows, columns=None if rows else columns)


def _pandas() -> Any:
    try:
        return load("pandas", "pandas")
    except Error:
        return None


class Checkpoint:
    """A checkpoint of a run: its file, and its name for `--checkpoint` (a step or "best")."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        found = re.fullmatch(r"step-0*(\d+)\.h5", path.name)
        self.name = found[1] if found else "best"

    def __repr__(self) -> str:
        return f"<Checkpoint {self.name}: {self.path}>"


class Member:
    """A member of a run by its number in the ensemble."""

    def __init__(self, run: Run, number: int) -> None:
        self.run = run
        self.number = number

    def weights(self, checkpoint: str | int | None = None) -> dict[str, npt.NDArray[np.float32]]:
        """The member's weights by name, float32, shaped as in PyTorch (docs/weights.md): Linear weights [outputs,
        inputs]. From the newest checkpoint, "best" or a step; averaged if `train.average` is set."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "member.safetensors"
            options = [] if checkpoint is None else ["--checkpoint", str(checkpoint)]
            run_program(["weights", "export", self.run.path, file, "--member", str(self.number), *options])
            return read_safetensors(file)

    def state_dict(self, checkpoint: str | int | None = None) -> dict[str, Any]:
        """The same as torch tensors."""
        torch = load("torch", "torch")
        return {name: torch.from_numpy(array) for name, array in self.weights(checkpoint).items()}

    def __repr__(self) -> str:
        return f"<Member {self.number} of {self.run.path}>"


class Run:
    """The folder of a training."""

    def __init__(self, folder: _Path) -> None:
        self.path = pathlib.Path(folder).resolve()
        file = self.path / "config.yaml"
        if not file.is_file():
            raise ConfigError(f"{self.path}: no run, it has no config.yaml")
        #: the resolved experiment: nested dicts
        self.config: dict[str, Any] = _extension.yaml(file.read_text(), str(file))

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return str(self.config["name"])

    @property
    def first_member(self) -> int:
        """The number of the first member."""
        return int(self.config["ensemble"]["first_member"])

    @property
    def members(self) -> list[Member]:
        """The members of the run."""
        return [Member(self, self.first_member + m) for m in range(int(self.config["ensemble"]["members"]))]

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints on disk: by step, then best.h5."""
        folder = self.path / "checkpoints"
        found = sorted(folder.glob("step-*.h5")) + sorted(folder.glob("best.h5"))
        return [Checkpoint(path) for path in found]

    def lines(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl; a last line that is still being written is left out."""
        file = self.path / "metrics.jsonl"
        if not file.exists():
            return []
        return list(_parsed(file, file.read_text(encoding="utf-8", errors="replace")))

    def metrics(self) -> Frame:
        """A row for each logged step and member: step, member, loss, norm (of the gradient), rate, and the seconds
        step_seconds (mean of a step since the line before), wait_seconds, train_seconds (from the beginning). A value
        is None or NaN if the member took no step."""
        seconds = ("step_seconds", "wait_seconds", "train_seconds")
        rows = []
        for line in self.lines():
            if line["kind"] != "step":
                continue
            for m, loss in enumerate(line["loss"]):
                rows.append(
                    {
                        "step": line["step"],
                        "member": line["first_member"] + m,
                        "loss": loss,
                        "norm": line["norm"][m],
                        "rate": line["rate"][m] if isinstance(line["rate"], list) else line["rate"],
                        **{key: line[key] for key in seconds},
                    }
                )
        return frame(rows, "step", "member", "loss", "norm", "rate", *seconds)

    def evaluations(self) -> Frame:
        """A row for each evaluation and member: step, member, score (mean over the graphs of the validation split),
        ensemble (the score of all members together), train_seconds."""
        return frame(
            [
                {
                    "step": line["step"],
                    "member": line["first_member"] + m,
                    "score": score,
                    "ensemble": line["ensemble"],
                    "train_seconds": line["train_seconds"],
                }
                for line in self.lines()
                if line["kind"] == "evaluation"
                for m, score in enumerate(line["members"])
            ],
            "step", "member", "score", "ensemble", "train_seconds",
        )

    def scores(self) -> Frame:
        """A row for each graph of the last evaluation (scores.json): graph, configs, the columns of
        `tpudist evaluate` for the members together, and members_mean and members_deviation, mean and standard
        deviation over members of the first of them.

        With predictions.h5 (`predictions.rows`), layouts also show how well measurements determine the graph's tau:
        ceiling, low_ceiling and high_ceiling, the tau that a perfect ranking would have under the noise of the run
        times, with its 95 % interval (None if too few configurations were measured twice); sampling_deviation, how
        much the tau varies with other configurations of this graph (docs/noise-ceiling.md). `intervals` has the
        intervals of the mean over graphs."""
        file = self.path / "scores.json"
        if not file.exists():
            raise Error(f"{self.path}: no scores.json; it is written after the last step, or call evaluate()")
        tables = self._tables() if (self.path / "predictions.h5").exists() else []
        return _score_frame(json.loads(file.read_text()), tables)

    def intervals(self) -> Frame:
        """A row for each 95 % interval of the mean score over graphs, of the members together, from the predictions:
        on ("valid split", "training graphs, out of fold"), question, value, low, high, degrees (of freedom). The
        questions (docs/statistics.md):

        - "other members of this training": how much did the members' own seeds matter? Not: if trained again.
        - "these graphs, if trained again": would the same graphs give the same result? This needs several trainings,
          so a single run has it only in `compare` of two sides.
        - "other families, this model only": will the score hold on other model families?

        A question that the run cannot answer has no row. Needs `predictions.rows` in the experiment."""
        rows = []
        for table in self._tables():
            for kind, interval in table["intervals"].items():
                if interval is None or interval.get("low") is None:
                    continue
                if kind == "other_families":
                    question = "other families, " + ("this model only" if interval["runs"] == 1 else "if trained again")
                elif interval["between"] == "members of one training":
                    question = "other members of this training"
                else:
                    question = "these graphs, if trained again"
                numbers = {key: interval[key] for key in ("value", "low", "high", "degrees")}
                rows.append({"on": table["title"], "question": question, **numbers})
        return frame(rows, "on", "question", "value", "low", "high", "degrees")

    def _tables(self) -> list[dict[str, Any]]:
        """The result of `tpudist ensemble --out-of-fold` for this run alone."""
        if not (self.path / "predictions.h5").exists():
            raise Error(f"{self.path}: no predictions.h5; it needs predictions.rows in the experiment")
        tables: list[dict[str, Any]] = _json_of(["ensemble", "--out-of-fold", self.path])[0]["tables"]
        return tables

    def out_of_fold(self) -> Frame:
        """A row for each member that holds a fold out: number, fold, graphs, and score, the mean on the graphs of its
        fold. Needs `predictions.rows` in the experiment."""
        file = self.path / "scores.json"
        found = json.loads(file.read_text()).get("out_of_fold") if file.exists() else None
        if found is None:
            raise Error(f"{self.path}: no out-of-fold scores; they need folds, and predictions.rows in the experiment")
        return frame(found["members"])

    def evaluate(self, split: str = "valid", *, checkpoint: str | int | None = None, **options: Any) -> Frame:
        """Scores a split now; rows as in `scores`. `options`: of `tpudist evaluate`, such as combine="rank_mean"."""
        scores = _json_of(["evaluate", self.path, "--split", split, *_checkpoint(checkpoint), *_options(options)])
        return _score_frame(scores, scores["judgement"]["tables"])

    def predictions(self) -> Frame:
        """predictions.h5, scores of graphs that members never saw: a row for each graph, configuration and scoring
        member: graph, split, config, member, held_out, runtime (ns), score (larger is slower)."""
        rows: dict[str, list[npt.NDArray[Any]]] = {}
        for graph in _extension.predictions(str(self.path / "predictions.h5")):
            scores = graph["scores"]  # [M, r]
            for m, number in enumerate(graph["members"]):
                if np.isnan(scores[m]).all():
                    continue
                count = len(graph["configs"])
                for name, value in {
                    "graph": np.full(count, graph["name"], dtype=object),
                    "split": np.full(count, graph["split"], dtype=object),
                    "config": graph["configs"],
                    "member": np.full(count, number),
                    "held_out": np.full(count, graph["held_out"][m]),
                    "runtime": graph["runtimes"],
                    "score": scores[m],
                }.items():
                    rows.setdefault(name, []).append(value)
        columns = {name: np.concatenate(parts) for name, parts in rows.items()}
        pandas = _pandas()
        if pandas is None:
            return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        return pandas.DataFrame(columns)

    def to_pyg(self, member: int = 0, *, checkpoint: str | int | None = None) -> Any:
        """The network of `members[member]` as a torch.nn.Module in evaluation mode, of layers of PyTorch Geometric.
        It takes results of `graph.to_pyg(configs=...)`, of the run's collection opened with
        reduce=run.config["data"]["reduce"], and returns a score for each configuration, [K] (of a Batch [graphs, K]). A
        larger score is slower. Raises Error with the key or layer if PyTorch has no layer for it."""
        members = self.members
        if not 0 <= member < len(members):
            raise ConfigError(f"member {member}: the run has {len(members)}")
        load("torch_geometric.nn", "torch_geometric")
        from .network import Network

        return Network(self.config, members[member].state_dict(checkpoint))

    def predict(
        self, split: str = "test", *, checkpoint: str | int | None = None, **options: Any
    ) -> dict[str, npt.NDArray[np.int64]]:
        """The configurations of each graph of a split, fastest first ([c] int64; for tile graphs as many as a
        submission has), by the graph's name, or by "collection:name" for a run on a list of collections. `options`
        are those of `tpudist predict`."""
        with tempfile.TemporaryDirectory() as folder:
            csv = pathlib.Path(folder) / "submission.csv"
            run_program(
                ["predict", self.path, "--csv", csv, "--split", split, *_checkpoint(checkpoint), *_options(options)]
            )
            ranking = {}
            collection = self.config["data"]["collection"]
            for line in _lines(csv)[1:]:
                name, order = line.rsplit(",", 1)
                graph = name if isinstance(collection, list) else name.removeprefix(f"{collection}:")
                ranking[graph] = np.array(order.split(";"), dtype=np.int64)
            return ranking

    def rank(
        self, module: _Path | Mapping[str, npt.ArrayLike], *, top: int = 10, checkpoint: str | int | None = None,
        **options: Any,
    ) -> Frame:
        """Ranks the configurations of a module by all members. `module`: an NPZ or tuning file, or arrays named as in
        an NPZ file. A row for each of the `top` distinct configurations (0: all): rank, config, equal_configs, score
        (lower is faster), deviation, best_rank, worst_rank. `options` are those of `tpudist rank`: a module of HLO
        takes configs="neighbours"."""
        with tempfile.TemporaryDirectory() as folder:
            if isinstance(module, Mapping):
                file: _Path = pathlib.Path(folder) / "module.npz"
                np.savez(file, **{name: _plain(array) for name, array in module.items()})  # type: ignore[arg-type]
            else:
                file = module
            try:
                text = run_program(
                    ["rank", file, "--run", self.path, "--top", str(top), "--json", *_checkpoint(checkpoint),
                     *_options(options)]
                )
            except Error as error:
                if file is not module:  # that temporary file will be gone
                    error.args = (str(error).replace(str(file), "module"),)
                raise
        return frame(json.loads(text)["ranking"])

    def resume(
        self, *overrides: str, ranks: int = 1, on_step: Callable[[dict[str, Any]], None] | None = None,
        quiet: bool = False, mpirun: Sequence[str] = ("mpirun",),
    ) -> Run:
        """Continues from the newest checkpoint, with the same bits on any number of ranks. `overrides`: key=value pairs
        of keys that change no result, such as "dist.threads=2"."""
        return _train([str(self.path / "config.yaml"), *overrides], self.path, True, ranks, on_step, quiet, mpirun)

    def __repr__(self) -> str:
        return f"<Run {self.name}: {self.path}>"


def train(
    experiment: Experiment | _Path, overrides: Mapping[str, Any] | None = None, *, run_dir: _Path | None = None,
    ranks: int = 1, on_step: Callable[[dict[str, Any]], None] | None = None, quiet: bool = False,
    mpirun: Sequence[str] = ("mpirun",),
) -> Run:
    """Trains in a child process and returns the run.

    Calls `on_step` with each new line of metrics.jsonl as a dict. Without `on_step` a line shows the progress,
    unless `quiet`. Several `ranks` are started by `mpirun`. Ctrl-C asks the training to write a checkpoint and stop,
    and then raises KeyboardInterrupt; a second one kills it. Raises Stopped if somebody else, or its time limit,
    stopped it, and otherwise the Error of its exit code. An exception of `on_step` stops the training like Ctrl-C.
    """
    if not isinstance(experiment, Experiment):
        experiment = Experiment(os.fspath(experiment), overrides or {})
    elif overrides:
        experiment = experiment.override(**overrides)
    folder = pathlib.Path(run_dir) if run_dir is not None else pathlib.Path("runs") / experiment.name
    return _train([experiment.file, *experiment.arguments], folder, False, ranks, on_step, quiet, mpirun)


def _train(
    arguments: list[str], folder: pathlib.Path, resume: bool, ranks: int,
    on_step: Callable[[dict[str, Any]], None] | None, quiet: bool, mpirun: Sequence[str],
) -> Run:
    if ranks < 1:
        raise ConfigError(f"ranks={ranks}: a training has at least one rank")
    command = [program(), "train", *arguments, "--run-dir", str(folder), *(["--resume"] if resume else [])]
    if ranks > 1:
        spread = ["--bind-to", "none"] + (["--oversubscribe"] if ranks > (os.cpu_count() or 1) else [])
        command = [*mpirun, "-np", str(ranks), *spread, *command]
    file = folder / "metrics.jsonl"
    seen = set(_lines(file)) if file.exists() else set()
    report_line = on_step or (_nothing if quiet else _Progress(arguments, folder))
    try:
        # A separate session: Ctrl-C in a terminal reaches only this process, which passes it on.
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True,
        )
    except OSError as error:
        raise Error(f"{command[0]}: {error.strerror}") from error
    log: list[str] = []
    reader = threading.Thread(target=_keep, args=(child, log), daemon=True)
    reader.start()
    tail = _Tail(file, seen)
    try:
        while child.poll() is None:
            for line in tail.new_lines():
                report_line(line)
            time.sleep(0.1)
        for line in tail.new_lines():
            report_line(line)
    except BaseException:
        _stop(child)
        raise
    finally:
        if isinstance(report_line, _Progress):
            report_line.end()
        reader.join(timeout=5)
    if child.returncode != 0:
        failed = error_from(child.returncode, "".join(log))
        if isinstance(failed, Stopped):
            failed = Stopped(f"{folder}: stopped with a checkpoint; Run({str(folder)!r}).resume() goes on")
        raise failed
    return Run(folder)


def _nothing(line: dict[str, Any]) -> None:
    pass


def _keep(child: subprocess.Popen[str], log: list[str]) -> None:
    """The last lines that the program logs."""
    assert child.stderr is not None
    for line in child.stderr:
        log.append(line)
        del log[:-200]


def _stop(child: subprocess.Popen[str]) -> None:
    """Asks for a checkpoint and waits. An interrupt of the wait ends the training at once."""
    try:
        if child.poll() is None:
            child.send_signal(signal.SIGUSR2)  # mpirun passes this one on
            child.wait()
    except KeyboardInterrupt:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


class _Tail:
    """The new lines of a growing metrics.jsonl; --resume cuts the file back first."""

    def __init__(self, file: pathlib.Path, seen: set[str]) -> None:
        self._file, self._seen, self._offset, self._inode = file, seen, 0, 0

    def new_lines(self) -> Iterable[dict[str, Any]]:
        if not self._file.exists():
            return []
        with self._file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            if status.st_ino != self._inode or status.st_size < self._offset:  # replaced by another file
                self._inode, self._offset = status.st_ino, 0
            opened.seek(self._offset)
            text = opened.read()
        text = text[: text.rfind(b"\n") + 1]
        self._offset += len(text)
        lines = [line for line in text.decode(errors="replace").split("\n")[:-1] if line not in self._seen]
        return _parsed(self._file, "".join(line + "\n" for line in lines))


class _Progress:
    """One line on standard output: the step, the mean loss, and the last score."""

    def __init__(self, arguments: list[str], folder: pathlib.Path) -> None:
        self._folder, self._steps, self._score, self._shown = folder, 0, "", False

    def __call__(self, line: dict[str, Any]) -> None:
        if not self._steps:
            self._steps = int(Run(self._folder).config["train"]["steps"])
        if line["kind"] == "evaluation" and line["ensemble"] is not None:
            self._score = f", score {line['ensemble']:.4f} at step {line['step']}"
        elif line["kind"] == "step":
            losses = [loss for loss in line["loss"] if loss is not None]
            loss = f", loss {sum(losses) / len(losses):.4f}" if losses else ""
            sys.stdout.write(f"\r{self._folder}: step {line['step']} of {self._steps}{loss}{self._score} ")
            sys.stdout.flush()
            self._shown = True

    def end(self) -> None:
        if self._shown:
            sys.stdout.write("\n")


class Comparison:
    """The result of `tpudist compare` for two variants on one kind of graphs: difference (A - B of the mean score),
    verdict, these_graphs and other_families with intervals and p, and both sides (docs/statistics.md)."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.difference: float = values["difference"]
        self.verdict: str = values["verdict"].strip()
        self.these_graphs: dict[str, Any] | None = values["these_graphs"]
        self.other_families: dict[str, Any] | None = values["other_families"]

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the difference if both were trained again and scored on these graphs; None if there are too
        few runs."""
        return _interval(self.these_graphs)

    @property
    def family_interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the difference on other model families."""
        return _interval(self.other_families)

    def __repr__(self) -> str:
        return f"<Comparison {self.difference:+.4f}: {self.verdict}>"


def _interval(part: dict[str, Any] | None) -> tuple[float, float] | None:
    if part is None or part["interval"].get("low") is None:
        return None
    return part["interval"]["low"], part["interval"]["high"]


_Side = Run | _Path | Sequence[Run | _Path]


def compare(a: _Side, b: _Side, *, by: str = "members", difference: float | None = None,
            margin: float | None = None, looks: int = 1) -> Comparison:
    """Which of two variants is better, and how surely. A side is a run, a sweep with one variant, `SWEEP:LABEL`, a file
    of predictions, or a list of runs. Compares scores on the validation split, or else out of fold. `values["all"]`
    has everything that the program found."""
    sizes = {"difference": difference, "margin": margin}
    options = {"by": by, "looks": looks, **{name: size for name, size in sizes.items() if size is not None}}
    found = _json_of(["compare", *_side(a), "--with", *_side(b), *_options(options)])
    return Comparison({**found[0], "all": found})


def _side(side: _Side) -> list[str]:
    if isinstance(side, (Run, str, os.PathLike)):
        side = [side]
    return [str(one.path) if isinstance(one, Run) else os.fspath(one) for one in side]


class Sweep:
    """A sweep by its folder (sweeps/NAME)."""

    def __init__(self, folder: _Path) -> None:
        self.path = pathlib.Path(folder).resolve()
        if not (self.path / "sweep.json").is_file():
            raise ConfigError(f"{self.path}: no sweep, it has no sweep.json")

    @property
    def runs(self) -> list[Run]:
        """The runs that have begun."""
        return [Run(file.parent) for file in sorted(self.path.glob("runs/*/config.yaml"))]

    def collect(self) -> dict[str, Any]:
        """The JSON of `tpudist sweep collect --json`."""
        found: dict[str, Any] = _json_of(["sweep", "collect", self.path])
        return found

    def table(self) -> Frame:
        """A row for each variant of each stage: stage, label, runs, finished, failed, mean (over trainings, of the mean
        of members) and deviation (standard, between trainings)."""
        return frame(
            [
                {"stage": stage["name"], "score": stage["score"], **variant}
                for stage in self.collect()["stages"]
                for variant in stage["variants"]
            ]
        )


class Report:
    """A page of results."""

    def __init__(self, path: pathlib.Path, html: str) -> None:
        self.path = path
        self.html = html

    def _repr_html_(self) -> str:
        import html

        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:60em;border:0"></iframe>'

    def show(self) -> None:
        """Shows the page: in a notebook inline, otherwise in the browser."""
        if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
            show = load("IPython.display", "ipython")
            show.display(show.HTML(self._repr_html_()))
        else:
            import webbrowser

            webbrowser.open(self.path.as_uri())


def report(
    inputs: Run | Sweep | _Path | Sequence[Run | Sweep | _Path], html: _Path | None = None, **options: Any
) -> Report:
    """`tpudist report` of runs or of a sweep, as a page of one file (`html`, by default a temporary one). `options` are
    those of the command: csv="tables", no_ceilings=True."""
    if isinstance(inputs, (Run, Sweep, str, os.PathLike)):
        inputs = [inputs]
    names = [str(one.path) if isinstance(one, (Run, Sweep)) else os.fspath(one) for one in inputs]
    if html is None:
        handle, name = tempfile.mkstemp(suffix=".html", prefix="tpudist-")
        os.close(handle)
        html = name
    run_program(["report", *names, "--html", html, *_options(options)])
    path = pathlib.Path(html).resolve()
    return Report(path, path.read_text())


def convert(source: _Path, shards: _Path, *, quiet: bool = True, **options: Any) -> list[str]:
    """Converts NPZ files to shards and returns the collections of the folder. `options` are those of `tpudist convert`:
    collections=[...], jobs=8, replace=True."""
    run_program(["convert", source, shards, *_options(options)], quiet=quiet)
    return _extension.collections(os.fspath(shards))


def synth(out: _Path, *, quiet: bool = True, **options: Any) -> pathlib.Path:
    """Makes a synthetic data set of NPZ files. `options` are those of `tpudist synth`: preset="demo", seed=1."""
    run_program(["synth", out, *_options(options)], quiet=quiet)
    return pathlib.Path(out)


def read_safetensors(file: pathlib.Path) -> dict[str, npt.NDArray[np.float32]]:
    """The tensors of a file that `tpudist weights export` wrote: float32."""
    data = file.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = json.loads(data[8 : 8 + size])
    begin = 8 + size
    weights = {}
    for name, entry in tensors.items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        values = np.frombuffer(data[begin + first : begin + last], dtype="<f4")
        weights[name] = values.astype(np.float32).reshape(entry["shape"])
    return weights


def _lines(file: pathlib.Path) -> list[str]:
    """The whole lines of a file of the program. Names may hold other characters that end a line in Python."""
    return file.read_bytes().decode(errors="replace").split("\n")[:-1]


def _plain(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """The array in C order and in the byte order of this machine."""
    values = np.asarray(array, order="C")
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _parsed(file: pathlib.Path, text: str) -> Iterable[dict[str, Any]]:
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise DataError(f"{file}:{number}: no line of JSON: {error}") from error


def _score_frame(scores: dict[str, Any], tables: list[dict[str, Any]]) -> Frame:
    """`tables`: what the program judged, including the graphs of these scores."""
    ensemble, members = scores["ensemble"], [member for member in scores["members"] if member.get("used", True)]
    judged = {
        graph["name"]: graph
        for table in tables
        if table["title"].startswith(f"{scores['split']} split")
        for graph in table["graphs"]
        if graph["sampling_deviation"] is not None
    }
    rows = []
    for g, graph in enumerate(ensemble["graphs"]):
        own = [member["graphs"][g][ensemble["primary"]] for member in members]
        known = np.array([value for value in own if value is not None], dtype=float)
        values = {key: value for key, value in graph.items() if key not in ("name", "configs", "data_hash")}
        row = {
            "graph": graph["name"],
            "configs": graph["configs"],
            **values,
            "members_mean": float(known.mean()) if len(known) else None,
            "members_deviation": float(known.std(ddof=1)) if len(known) > 1 else None,
        }
        if judged:
            noise = judged.get(graph["name"], {})
            row["ceiling"] = noise.get("ceiling")
            row["low_ceiling"], row["high_ceiling"] = noise.get("ceiling_interval") or (None, None)
            row["sampling_deviation"] = noise.get("sampling_deviation")
        rows.append(row)
    return frame(rows)


def _json_of(arguments: list[str | os.PathLike[str]]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "result.json"
        run_program([*arguments, "--json", file])
        return json.loads(file.read_text())


def _checkpoint(checkpoint: str | int | None) -> list[str]:
    return [] if checkpoint is None else ["--checkpoint", str(checkpoint)]


def _options(options: Mapping[str, Any]) -> list[str]:
    """keep_all=True as --keep-all, jobs=8 as --jobs 8, collections=[...] as --collections A B."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if isinstance(value, (list, tuple)):
            words += [str(one) for one in value]
        elif value is not True:
            words.append(str(value))
    return words
