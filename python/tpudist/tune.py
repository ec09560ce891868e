"""Finds fast layouts of a program on the machine at hand (docs/measure.md)."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from . import _extension
from .hlo import Changes, Space
from .measure import Bench, Measured, interval, percent, seconds_of, share_of, stops
from .program import run_program
from .timing import TWIN, Estimate, compare, machine_warnings

__all__ = ["Tuned", "tune"]

_FINAL_ROUNDS = 20


@dataclasses.dataclass(frozen=True)
class Tuned:
    """What a search on this machine found."""

    best: Measured  # number 0: nothing is faster than the default, as far as the 95 % interval of `ratio` tells
    fastest: Measured  # of the search
    ratio: Estimate  # logarithm of its time by the default's, in rounds that did not choose it
    twin: Estimate  # the same of a second copy of the default (A/A)
    rounds: int  # of this comparison
    measured: int  # configurations with a time, without the default
    programs: int  # distinct ones among them
    seconds: float  # of this process, until the comparison
    is_new: bool  # the journal was empty, so these seconds are of all that was measured
    why: str  # why the search ended


class _Search:
    """What both searches share: batches of configurations, and the best so far."""

    def __init__(self, bench: Bench, precision: float, until: float, most: int) -> None:
        self.bench, self.precision, self.until, self.most = bench, precision, until, most or 1 << 30
        self.best = 0

    @property
    def count(self) -> int:
        """Measured configurations beside the default."""
        return len(self.bench.journal.configs) - 1

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.until or self.count >= self.most

    def measure(self, configs: Sequence[Changes]) -> list[int]:
        """Compiles what is new, times programs that no round has, and keeps the best of all. Returns the numbers."""
        new = [one for one in configs if self.bench.journal.number_of(one) is None]
        over = new[max(0, self.most - self.count) :]
        numbers = self.bench.take([one for one in configs if one not in over], self.until)
        # The default, whose program is 0, is in all rounds; one that failed has none.
        timed = {one.number for one in self.bench.measured()
                 if not one.program or (one.time and not math.isnan(one.time.error))}
        if missing := [number for number in numbers if number not in timed]:
            self.bench.run([*missing, self.best], precision=self.precision, until=self.until)
            self.bench.write()
        self.best = self.bench.fastest([self.best, *numbers])
        self.bench.forget({0, self.best})
        return numbers


def _neighbours(bench: Bench, changes: Changes, group: Sequence[int]) -> Iterator[Changes]:
    """The configurations that differ from one in a group of operations."""
    operations = [bench.space.operations[number] for number in group]
    for state in range(len(operations[0].states)):
        other = dict(changes)
        for own in operations:
            other.pop(own.name, None)
            if own.states[state] != own.default:
                other[own.name] = own.states[state]
        if other != changes:
            yield other


def _descend(search: _Search) -> str:
    """Changes the groups in turn, until none is better by more than the times are uncertain."""
    bench, at, since = search.bench, 0, 0
    while since < len(bench.space.groups):
        group, present = bench.space.groups[at % len(bench.space.groups)], search.best
        neighbours = list(_neighbours(bench, bench.journal.changes(present), group))
        numbers, every = search.measure(neighbours), bench.measured()
        before, after = every[present].ratio, every[search.best].ratio
        if before and after and not _is_less(after, before):
            search.best, after = present, before
        bench.show(f"group {at + 1} done, {search.count} measured, best {percent(after) if after else '-'}\n")
        at, since = at + 1, since + 1 if search.best == present else 0
        if search.is_over and len(numbers) < len(neighbours):  # those of an earlier process are free
            return "the budget is spent"
    return "no change of a group is faster"


def _is_less(a: Estimate, b: Estimate) -> bool:
    return b.value - a.value > 1.96 * math.hypot(a.error, b.error)


def _by_model(search: _Search, runs: Sequence[str], propose: int, folder: pathlib.Path) -> str:
    """Search, measure, correct the model by the measurements, and again."""
    bench, module = search.bench, search.bench.program.path
    search.best = bench.fastest()
    common = [str(module), "--default", str(bench.default), "--run", *runs, "--json"]
    listed = json.loads(run_program(["search", *common, "--propose", str(min(1000, 20 * propose))]))["ranking"]
    pool = {json.dumps(entry["layouts"]): entry["layouts"] for entry in listed}
    following = [entry["layouts"] for entry in listed if not entry.get("default")][:propose]
    pool_file, measured_file = folder / "pool.json", folder / "measured.json"
    asked: set[str] = set()
    while not asked.issuperset(keys := {json.dumps(layouts) for layouts in following}):
        asked |= keys
        pool_file.write_text(json.dumps(following))
        search.measure([{}, *Space.read(module, bench.default, str(pool_file)).configs])
        if search.is_over:
            return "the budget is spent"
        best = bench.measured()[search.best]
        for group in bench.space.groups:
            for other in _neighbours(bench, best.changes, group):
                layouts = bench.space.layouts(other)
                pool.setdefault(json.dumps(layouts), layouts)
        timed = [{"layouts": bench.space.layouts(one.changes), "time": math.exp(one.ratio.value)}
                 for one in bench.measured() if one.ratio]
        failed = [bench.space.layouts(one.changes) for one in bench.measured() if one.error]  # unknown to the model
        pool_file.write_text(json.dumps([layouts for layouts in pool.values() if layouts not in failed]))
        measured_file.write_text(json.dumps(timed))
        ranked = json.loads(run_program(
            ["rank", *common, "--configs", str(pool_file), "--measured", str(measured_file),
             "--next", str(propose), "--top", "1"]
        ))
        bench.show(f"{search.count} measured, best {percent(best.ratio) if best.ratio else '-'}\n")
        if "time" in ranked["ranking"][0]:
            return "the model proposes nothing better"
        following = [entry["layouts"] for entry in ranked["measured"]["next"]]
    return "no proposal is left"


def tune(
    module: Any, *, default: Any, out: Any, runs: Sequence[str] = (), propose: int = 10, precision: str = "1%",
    budget: str = "", most: int = 0, apply: str = "", show: str = "", **options: Any,
) -> Tuned:
    """`tpudist tune`. Its measurements go into `out`, as those of `measure`."""
    begin = time.monotonic()
    share, seconds = share_of(precision), seconds_of(budget)
    bench = Bench(module, default, out, **options)
    is_new = len(bench.journal.configs) == 1
    with stops(bench), tempfile.TemporaryDirectory(prefix="tpudist-tune-") as folder:
        search = _Search(bench, share, begin + seconds, most)
        why = _by_model(search, runs, propose, pathlib.Path(folder)) if runs else _descend(search)
        spent = time.monotonic() - begin
        best, rounds = bench.measured()[search.best], []
        if best.program:
            # The best of many looks better than it is, and so does its copy: judged by new rounds of new copies.
            bench.forget(set())
            rounds = bench.run([best.number], precision=share / 4, least=_FINAL_ROUNDS, kind="compare",
                               until=max(begin + seconds, time.monotonic() + 0.2 * spent))
        elif not bench.journal.rounds:
            bench.run([0], precision=share, until=begin + seconds)
        bench.write()
    timed = [one for one in bench.measured()[1:] if one.time]
    ratio = compare(rounds, best.program or 0)
    tuned = Tuned(
        best if ratio.interval[1] < 0 else bench.measured()[0], best, ratio, compare(rounds, TWIN), len(rounds),
        len(timed), len({one.program for one in timed}), spent, is_new, why,
    )
    if apply:
        print(_applied(bench, tuned, apply), end="")
    elif show == "json":
        print(json.dumps(_json(bench, tuned)))
    elif show:
        print(_text(bench, tuned, runs, propose), end="")
    return tuned


def _applied(bench: Bench, tuned: Tuned, form: str) -> str:
    with tempfile.NamedTemporaryFile("w", prefix="tpudist-best-", suffix=".json") as file:
        json.dump([bench.space.layouts(tuned.best.changes)], file)
        file.flush()
        title = f"{bench.program.path.name}: configuration {tuned.best.number}, "
        title += f"{percent(tuned.ratio)} than the default" if tuned.best.number else "the default: none is better"
        return _extension.apply_layouts(
            module=str(bench.program.path), default=str(bench.default), configs=file.name, form=form, title=title
        )


def _text(bench: Bench, tuned: Tuned, runs: Sequence[str], propose: int) -> str:
    taken = f", in {tuned.seconds:.0f} s" if tuned.is_new else ""
    lines = [f"{bench.program.name}: measured {tuned.measured} configurations, {tuned.programs} distinct "
             f"programs{taken}; {tuned.why}"]
    if not tuned.rounds:
        lines.append("no configuration is faster than the default")
    else:
        one = tuned.fastest
        lines += [
            f"fastest: configuration {one.number}, {one.kept} of {one.forced} forced layouts kept",
            f"  than the default, in {tuned.rounds} rounds that did not choose it: {interval(tuned.ratio)}",
            f"  A/A, a second copy of the default: {interval(tuned.twin)}",
        ]
        if not tuned.best.number:
            lines.append("  no better than the default, as far as these rounds can tell")
    saved = tuned.best.number - propose  # numbers are in the order of measuring
    if not runs and saved > 0:
        lines.append(f"A model (--run) that proposes one as good among its first {propose} would save {saved} "
                     "measurements.")
    lines += [f"warning: {text}" for text in machine_warnings(bench.journal.rounds)]
    lines.append(f"written: {bench.out}, {bench.out.with_suffix('.npz')}"
                 + ("; print the best with --apply jax" if tuned.best.number else ""))
    return "\n".join(lines) + "\n"


def _json(bench: Bench, tuned: Tuned) -> dict[str, Any]:
    def change(estimate: Estimate) -> dict[str, float] | None:
        ends = zip(("ratio", "low", "high"), (estimate.value, *estimate.interval), strict=True)
        return None if math.isnan(estimate.error) else {name: math.exp(value) for name, value in ends}

    return {
        "file": str(bench.program.path), **bench.device.facts(), "measured": tuned.measured,
        "programs": tuned.programs, "seconds": tuned.seconds, "ended": tuned.why, "best": tuned.best.number,
        "fastest": tuned.fastest.number, "than_default": change(tuned.ratio), "a_a": change(tuned.twin),
        "rounds": tuned.rounds, "warnings": machine_warnings(bench.journal.rounds),
        "layouts": bench.space.layouts(tuned.best.changes),
    }
