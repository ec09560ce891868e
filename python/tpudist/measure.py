"""Measures the configurations of a program on the machine at hand (docs/measure.md)."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import hashlib
import json
import math
import os
import pathlib
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .device import Compiled, Device, failure
from .errors import ConfigError, Error, Stopped, exit_code_of
from .hlo import Changes, Program, Space, copied, kept
from .journal import Journal, write_results
from .timing import (
    RULE, TWIN, Estimate, compare, corrected, estimates, machine_warnings, measure_round, rounds_for, turns_for,
)

__all__ = ["Bench", "Measured", "interval", "main", "measure", "percent", "seconds_of", "share_of", "stops"]

_Path = str | os.PathLike[str]


def _difference(results: Sequence[npt.NDArray[Any]], default: Sequence[npt.NDArray[Any]]) -> float:
    """The largest difference between results, by the largest value of the result. A result that is a thousandth of
    others may be the rounding of a sum that is 0, so at least a thousandth of the largest value of all counts."""
    found = []
    for own, other in zip(results, default, strict=True):
        kind = np.complex128 if own.dtype.kind == "c" else np.float64
        a, b = own.astype(kind), other.astype(kind)
        finite = np.isfinite(b)
        if not np.array_equal(np.isfinite(a), finite):
            return math.inf
        found.append((float(np.abs(a - b)[finite].max(initial=0)), float(np.abs(b[finite]).max(initial=0))))
    least = max((scale for _, scale in found), default=0.0) / 1000
    return max((difference / max(scale, least, 1e-300) for difference, scale in found), default=0.0)


def _tolerance(results: Sequence[npt.NDArray[Any]]) -> float:
    """That of the coarsest type of the results: other layouts sum in another order."""
    return max((0.05 if own.dtype.itemsize < 4 and own.dtype.kind not in "iub" else 1e-3 for own in results), default=0)


@dataclasses.dataclass(frozen=True)
class Measured:
    """A configuration with what was found."""

    number: int  # in the journal; 0 is the default
    changes: Changes
    program: int | None = None  # the first configuration with an equal optimised program; None if it failed
    time: Estimate | None = None  # logarithm of ns
    ratio: Estimate | None = None  # logarithm of the time by the default's
    kept: int = 0
    forced: int = 0
    error: str = ""


class _CallFailed(Exception):
    """The number of a program, and why."""


class Bench:
    """Measures configurations of one program, in as many calls as one likes, into one journal."""

    def __init__(
        self, module: _Path, default: _Path, out: _Path, *, configs: str = "default", device: str = "",
        inputs: _Path | None = None, calls: int = 6, seed: int = 1, tolerance: float | None = None, quiet: bool = False,
    ) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # else XLA logs what it does
        # Flags of a shell that dumped the module: each configuration would be dumped over it.
        flags = os.environ.get("XLA_FLAGS", "").split()
        os.environ["XLA_FLAGS"] = " ".join(flag for flag in flags if not flag.startswith("--xla_dump"))
        self.out = pathlib.Path(out)
        if self.out.suffix != ".pb":
            raise ConfigError(f"--out {out}: is a tuning file, NAME.pb; NAME.npz and NAME.jsonl are written beside it")
        journal = self.out.with_suffix(".jsonl")
        for file in (self.out, self.out.with_suffix(".npz")):
            if file.exists() and not journal.exists():
                raise ConfigError(f"--out {out}: {file} is there without {journal.name}: give another --out")
        self.program, self.default = Program(pathlib.Path(module)), pathlib.Path(default)
        self.space: Space = Space.read(self.program.path, self.default, configs)
        self.device = Device(self.program, device, pathlib.Path(inputs) if inputs else None)
        self._calls, self._seed, self._tolerance, self._quiet = calls, seed, tolerance, quiet
        given = {"module": self.program.proto, "default dump": self.default.read_bytes(),
                 "inputs": pathlib.Path(inputs).read_bytes() if inputs else b""}
        facts = {name: hashlib.sha256(one).hexdigest()[:16] for name, one in given.items()}
        self.journal = Journal(journal, {**facts, **self.device.facts(), "calls": calls, "way of timing": RULE})
        self._compiled: dict[int, Compiled] = {}  # by program, and TWIN
        self._results: list[npt.NDArray[Any]] = []  # of the default
        self._by_fingerprint = {one["fingerprint"]: one["program"] for one in self.journal.configs if "program" in one}
        try:
            self._prepare_default()
        except BaseException:  # a notebook keeps the exception, and so an open journal
            self.journal.close()
            raise

    def _prepare_default(self) -> None:
        try:
            compiled, twin = (self.device.compile(self.program.with_layouts([])) for _ in range(2))
            self._results = self.device.results(compiled)
            self._require_equal(twin, "gives other results each time")
        except Error as error:
            raise Error(f"{self.program.path}: the default {error}") from error
        if not all(np.isfinite(own.astype(np.complex128)).all() for own in self._results):
            self.warn("results of the default are not finite with made inputs, so comparing them says less: --inputs")
        if self.program.donates:
            self.warn("the program may overwrite inputs; it was measured without")
        if not self.journal.configs:
            self.journal.add_config({}, program=0, fingerprint=compiled.fingerprint, kept=0, forced=0,
                                    **copied(compiled.optimised))
            self._by_fingerprint[compiled.fingerprint] = 0
        elif self.journal.configs[0]["fingerprint"] != compiled.fingerprint:
            self.warn("the default compiles to another program than before: has XLA_FLAGS changed?")
        self._compiled |= {0: compiled, TWIN: twin}

    def _require_equal(self, compiled: Compiled, what: str) -> None:
        """Raises Error if its results are not the default's."""
        difference = _difference(self.device.results(compiled), self._results)
        tolerance = _tolerance(self._results) if self._tolerance is None else self._tolerance
        if difference > tolerance:
            raise Error(f"{what}: they differ by {difference:.2g} of the largest value, and {tolerance:.2g} is allowed")

    def warn(self, text: str) -> None:
        print(f"tpudist: warning: {self.program.path}: {text}", file=sys.stderr)

    def show(self, text: str) -> None:
        """A line that the next one replaces, in a terminal."""
        if not self._quiet and sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def take(self, configs: Sequence[Changes], until: float = math.inf) -> list[int]:
        """Compiles and checks the configurations that the journal lacks, until a time. Returns their numbers."""
        for at, changes in enumerate(configs):
            if self.journal.number_of(changes) is None and time.monotonic() < until:
                self.show(f"compiling configuration {at + 1} of {len(configs)}")
                self._take(changes)
        self.show("")
        return [number for own in configs if (number := self.journal.number_of(own)) is not None]

    def _take(self, changes: Changes) -> int:
        number = len(self.journal.configs)
        constraints = self.program.constraints(self.space, changes)
        try:
            with self.journal.begun(changes):
                compiled = self.device.compile(self.program.with_layouts(constraints))
                known = self._by_fingerprint.get(compiled.fingerprint)
                if known is None:
                    self._require_equal(compiled, "has other results than the default")
                    self._compiled[number] = compiled
                    self._by_fingerprint[compiled.fingerprint] = known = number
        except Error as error:
            return self.journal.add_config(changes, error=str(error))
        held = kept(constraints, compiled.optimised)
        lost = [str(one) for one, is_kept in zip(constraints, held, strict=True) if not is_kept]
        return self.journal.add_config(
            changes, program=known, fingerprint=compiled.fingerprint, kept=sum(held), forced=len(held), lost=lost,
            **copied(compiled.optimised),
        )

    def _callable(self, program: int) -> Callable[[], object]:
        compiled = self._compiled.get(program)
        if compiled is None:  # of an earlier process
            number = max(program, 0)
            text = self.program.with_layouts(self.program.constraints(self.space, self.journal.changes(number)))
            compiled = self._compiled[program] = self.device.compile(text)
            if compiled.fingerprint != self.journal.configs[number]["fingerprint"]:
                self.warn(f"configuration {number} compiles to another program than before")

        def call() -> None:
            try:
                self.device.call(compiled)
            except Exception as error:  # beside the others it may run out of memory
                if program <= 0:
                    raise Error(f"{self.program.path}: the default {failure(error)}") from error
                raise _CallFailed(program, failure(error)) from error

        return call

    def prepare(self, numbers: Sequence[int], until: float = math.inf) -> dict[int, Callable[[], object]]:
        """What calls each program of these configurations and both copies of the default; compiles until a time."""
        programs = {int(self.journal.configs[number].get("program", 0)) for number in numbers} - {0}
        calls = {TWIN: self._callable(TWIN), 0: self._callable(0)}
        for program in sorted(programs):
            try:
                if program in self._compiled or time.monotonic() < until:
                    calls[program] = self._callable(program)
            except Error as error:
                self.journal.drop(program, str(error))
        return calls

    def run(
        self, numbers: Sequence[int], *, precision: float = 0.005, rounds: int = 0, until: float = math.inf,
        least: int = 5, most: int = 200, kind: str = "measure",
    ) -> list[dict[str, Any]]:
        """Rounds of these configurations' programs and both copies of the default, until there are `rounds`, or the
        standard error of each program's time is below `precision`, or the time is over. Goes on without a program that
        fails. Returns all rounds of this kind that have these programs."""
        calls = self.prepare(numbers, until)
        own = [one for one in self.journal.rounds if one["kind"] == kind and calls.keys() <= set(one["programs"])]
        turns = int(self.journal.rounds[0]["turns"]) if self.journal.rounds else turns_for(calls[0], self._calls)
        gc.collect()
        gc.disable()
        look, known = least, ""
        try:
            while len(own) < (rounds or most):
                if not rounds and len(own) >= look:
                    worst = max(one.error for program, one in estimates(own).items() if program in calls)
                    look = rounds_for(precision, len(own), worst)
                    if look <= len(own):
                        break
                    known = f", standard errors up to {100 * worst:.2f} % after {len(own)}"
                self.show(f"round {len(own) + 1}{known}")
                if own and time.monotonic() > until:
                    break
                try:
                    self.journal.add_round(kind=kind, **measure_round(calls, len(own), self._seed, turns))
                    own.append(self.journal.rounds[-1])
                except _CallFailed as error:
                    program, why = error.args
                    del calls[program], self._compiled[program]
                    self.journal.drop(program, why)
        finally:
            gc.enable()
            self.show("")
        return own

    def fastest(self, numbers: Sequence[int] = ()) -> int:
        """Of these configurations, or of all, as far as the rounds tell; 0 if none was timed."""
        found = [one for one in self.measured() if not numbers or one.number in numbers]
        return min(((one.ratio.value, one.number) for one in found if one.ratio), default=(0.0, 0))[1]

    def forget(self, numbers: set[int]) -> None:
        """Frees the programs of all other configurations; they are compiled again where they are needed."""
        programs = {self.journal.configs[number].get("program") for number in numbers}
        self._compiled = {own: one for own, one in self._compiled.items() if max(own, 0) in programs}

    def measured(self) -> list[Measured]:
        """All configurations of the journal, by all rounds but those that judge a choice among them."""
        rounds = [one for one in self.journal.rounds if one["kind"] != "compare"]
        times: dict[Any, Estimate] = estimates(rounds)
        ratios = {program: compare(rounds, program) for program in times}
        return [
            Measured(number, self.journal.changes(number), program := one.get("program"), times.get(program),
                     ratios.get(program), one.get("kept", 0), one.get("forced", 0), one.get("error", ""))
            for number, one in enumerate(self.journal.configs)
        ]

    def write(self) -> None:
        """Writes the tuning file and the NPZ: a row for each configuration and round, corrected for slow rounds."""
        rounds, times = corrected(self.journal.rounds), []
        for number, one in enumerate(self.journal.configs):
            own = [round(math.exp(values[one["program"]])) for values in rounds if one.get("program") in values]
            if own or "error" in one:
                times.append((self.journal.changes(number), own))
        if rounds:
            write_results(self.out, self.program.proto, self.space, times)


def measure(
    module: _Path, *, default: _Path, out: _Path, configs: str = "neighbours", precision: str = "0.5%", rounds: int = 0,
    budget: str = "", show: str = "", **options: Any,
) -> list[Measured]:
    """`tpudist measure`. Returns the configurations, the default first. `show`: prints "text" or "json"."""
    begin, share, seconds = time.monotonic(), share_of(precision), seconds_of(budget)
    until = begin + seconds
    bench = Bench(module, default, out, configs=os.fspath(configs), **options)
    with stops(bench):
        numbers = bench.take([{}, *bench.space.configs], begin + seconds / 2)
        if missing := 1 + len(bench.space.configs) - len(numbers):
            bench.warn(f"--budget {budget}: {missing} configurations were not compiled")
        bench.run(numbers, precision=share, rounds=rounds, until=until)
        bench.write()
    found = bench.measured()
    errors = [one.time.error for one in found if one.time]
    if any(map(math.isnan, errors)):
        bench.warn("fewer than 5 rounds give no standard errors")
    elif not rounds and max(errors, default=0) > share:
        bench.warn(f"--precision {precision} was not reached: standard errors are up to {100 * max(errors):.2g} %")
    if show == "json":
        print(json.dumps(_json(bench, found)))
    elif show:
        print(_text(bench, found), end="")
    return found


@contextlib.contextmanager
def stops(bench: Bench) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the work after writing what there is. The journal is closed at the end."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler), signal.getsignal(signal.SIGINT)
    try:
        yield
    except KeyboardInterrupt:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        bench.write()
        found, best = f"stopped after {len(bench.journal.rounds)} rounds", bench.measured()[bench.fastest()]
        if best.ratio:
            found += f", the fastest is configuration {best.number}, {percent(best.ratio)} than the default"
        raise Stopped(f"{bench.out}: {found}; the same command goes on") from None
    finally:
        bench.journal.close()
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(number, handler)


def percent(estimate: Estimate) -> str:
    """A logarithm of a ratio as a change, with its standard error."""
    error = "" if math.isnan(estimate.error) else f" +- {_error(estimate)}"
    return f"{100 * math.expm1(estimate.value):+.2f}{error or ' %'}"


def interval(estimate: Estimate) -> str:
    """A logarithm of a ratio as a change, with its 95 % interval."""
    value, low, high = (f"{100 * math.expm1(one):+.2f}" for one in (estimate.value, *estimate.interval))
    known = "too few rounds for an interval" if math.isnan(estimate.error) else f"95 %: {low} to {high} %"
    return f"{value} % ({known})"


def _error(estimate: Estimate) -> str:
    return "-" if math.isnan(estimate.error) else f"{100 * estimate.error:.2f} %"


def _text(bench: Bench, found: Sequence[Measured], top: int = 10) -> str:
    timed = sorted((one for one in found if one.time), key=lambda one: one.time.value if one.time else 0)
    lines = [
        f"{bench.program.name}: {len(found)} configurations, {len({one.program for one in timed})} distinct programs, "
        f"{len(bench.journal.rounds)} rounds on {bench.device.facts()['device']}",
        f"kept {sum(one.kept for one in found)} of {sum(one.forced for one in found)} forced layouts",
        "",
        f"{'config':>6} {'time':>12} {'error':>8} {'than default':>18} {'kept':>9}  program of",
    ]
    shown = timed[:top] if any(one.number == 0 for one in timed[:top]) else [*timed[:top], found[0]]
    for one in shown:
        if one.time and one.ratio:
            ratio = "default" if one.number == 0 else percent(one.ratio)
            lines.append(
                f"{one.number:>6} {math.exp(one.time.value) / 1e6:>9.4f} ms {_error(one.time):>8} {ratio:>18} "
                f"{f'{one.kept}/{one.forced}':>9}  {'' if one.program == one.number else one.program}".rstrip()
            )
    lines.append(f"A/A: a second copy of the default: {percent(compare(bench.journal.rounds, TWIN))}")
    lines += [f"configuration {one.number}: {one.error}" for one in found if one.error]
    lines += [f"warning: {text}" for text in machine_warnings(bench.journal.rounds)]
    lines.append(f"written: {bench.out}, {bench.out.with_suffix('.npz')}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _json(bench: Bench, found: Sequence[Measured]) -> dict[str, Any]:
    twin = compare(bench.journal.rounds, TWIN)
    result: dict[str, Any] = {
        "file": str(bench.program.path), **bench.device.facts(), "rounds": len(bench.journal.rounds),
        "a_a": {"ratio": math.exp(twin.value), "standard_error": _number(twin.error)},
        "warnings": machine_warnings(bench.journal.rounds), "ranking": [],
    }
    for one in sorted(found, key=lambda one: one.time.value if one.time else math.inf):
        entry: dict[str, Any] = {"config": one.number}
        if one.time and one.ratio:
            entry |= {"time": math.exp(one.time.value), "standard_error": _number(one.time.error),
                      "ratio": math.exp(one.ratio.value), "ratio_standard_error": _number(one.ratio.error)}
        entry |= {"error": one.error} if one.error else {"program": one.program, "kept": one.kept, "forced": one.forced}
        result["ranking"].append({**entry, "layouts": bench.space.layouts(one.changes)})
    return result


def share_of(text: str) -> float:
    found = re.fullmatch(r"\s*(\d*\.?\d+)\s*%\s*", text)
    if not found or not 0 < float(found[1]) < 100:
        raise ConfigError(f"--precision {text}: is no percentage, such as 0.5%")
    return float(found[1]) / 100


def seconds_of(text: str) -> float:
    """30s, 10m or 2h; nothing is no limit."""
    if not text:
        return math.inf
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not found:
        raise ConfigError(f"--budget {text}: is no time, such as 30s, 10m or 2h")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def main(text: str) -> int:
    """Runs a command for the program `tpudist`, which has parsed its options. Returns the exit code."""
    from .tune import tune

    arguments = json.loads(text)
    command = arguments.pop("command")
    return exit_code_of(command, lambda: (tune if command == "tune" else measure)(**arguments))
