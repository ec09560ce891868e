"""Finds fast layouts of a program on the machine at hand (docs/measure.md)."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import random
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from . import _extension
from .hlo import Changes, Space, State
from .measure import Bench, Measured, interval, percent, seconds_of, share_of, stops
from .program import run_program
from .timing import TWIN, Estimate, compare, machine_warnings

__all__ = ["Tuned", "tune"]

_FINAL_ROUNDS, _SURE = 20, 3  # `_SURE`: standard errors, since one of a batch is lucky
_PARENTS, _IDLE = 4, 5  # `_IDLE`: batches without a faster configuration, until the search ends


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
        self.best, self.idle = 0, -1  # batches since the best was found; the default is the first

    @property
    def count(self) -> int:
        """Measured configurations beside the default."""
        return len(self.bench.journal.configs) - 1

    @property
    def why(self) -> str:
        """Why the search ends; "" if it goes on."""
        if time.monotonic() > self.until or self.count >= self.most:
            return "the budget is spent"
        return f"{_IDLE} batches found nothing faster" if self.idle >= _IDLE else ""

    def measure(self, configs: Sequence[Changes]) -> None:
        """Compiles what is new, times programs that no round has, and takes the best if it is faster than the best so
        far by more than the times are uncertain."""
        new = [one for one in configs if self.bench.journal.number_of(one) is None]
        over = new[max(0, self.most - self.count) :]
        numbers = self.bench.take([one for one in configs if one not in over], self.until)
        # The default, whose program is 0, is in all rounds; one that failed has none.
        timed = {one.number for one in self.bench.measured()
                 if not one.program or (one.time and not math.isnan(one.time.error))}
        if missing := [number for number in numbers if number not in timed]:
            self.bench.run([*missing, self.best], precision=self.precision, until=self.until)
            self.bench.write()
        every, best = self.bench.measured(), self.bench.fastest([self.best, *numbers])
        before, after = every[self.best].ratio, every[best].ratio
        is_faster = before and after and before.value - after.value > _SURE * math.hypot(before.error, after.error)
        self.best, self.idle = (best, 0) if is_faster else (self.best, self.idle + 1)
        self.bench.forget({0, self.best})
        self.bench.show(f"{self.count} measured, best {percent(one) if (one := every[self.best].ratio) else '-'}\n")


def _children(bench: Bench, count: int) -> list[Changes]:
    """New configurations: each group is that of one of the fastest so far, and one group has a random state."""
    rng, children = random.Random(len(bench.journal.configs)), list[Changes]()
    found = [(one.ratio.value, one.number, one.changes) for one in bench.measured() if one.ratio]
    parents = [changes for *_, changes in sorted(found)[:_PARENTS]] or [{}]
    groups = bench.space.choices()
    for _ in range(20 * count if groups else 0):
        child, changed = dict[str, State](), rng.choice(groups)
        for group in groups:
            source, operations = rng.choice(parents), [bench.space.operations[number] for number in group]
            state = rng.randrange(len(operations[0].states))
            new = {one.name: one.states[state] if group == changed else source.get(one.name, one.default)
                   for one in operations}
            child |= {one.name: new[one.name] for one in operations if new[one.name] != one.default}
        if bench.journal.number_of(child) is None and child not in children:
            children.append(child)
        if len(children) == count:
            break
    return children


def _evolve(search: _Search, propose: int) -> str:
    """Measures children of the fastest, a batch at a time."""
    search.idle = (search.count - search.best) // propose  # of an earlier process, too
    while not search.why:
        if not (children := _children(search.bench, propose)):
            return "nothing new is left near the fastest"
        search.measure(children)
    return search.why


def _by_model(search: _Search, runs: Sequence[str], propose: int, folder: pathlib.Path) -> str:
    """Search, measure, correct the model by the measurements, and again."""
    bench, module = search.bench, search.bench.program.path
    common = [str(module), "--default", str(bench.default), "--run", *runs, "--json"]
    listed = json.loads(run_program(["search", *common, "--propose", str(min(1000, 20 * propose))]))["ranking"]
    pool = [entry["layouts"] for entry in listed]
    following = [entry["layouts"] for entry in listed if not entry.get("default")][:propose]
    pool_file, measured_file = folder / "pool.json", folder / "measured.json"
    while following:
        pool_file.write_text(json.dumps(following))
        search.measure(Space.read(module, bench.default, str(pool_file)).configs)
        if search.why:
            return search.why
        pool += (children := [bench.space.layouts(one) for one in _children(bench, 20 * propose)])
        timed = [{"layouts": bench.space.layouts(one.changes), "time": math.exp(one.ratio.value)}
                 for one in bench.measured() if one.ratio]
        failed = [bench.space.layouts(one.changes) for one in bench.measured() if one.error]  # unknown to the model
        pool_file.write_text(json.dumps([layouts for layouts in pool if layouts not in failed]))
        measured_file.write_text(json.dumps(timed))
        ranked = json.loads(run_program(
            ["rank", *common, "--configs", str(pool_file), "--measured", str(measured_file),
             "--next", str((propose + 1) // 2), "--top", "1"]
        ))
        following = [entry["layouts"] for entry in ranked["measured"]["next"]]
        following += [one for one in children if one not in following][: propose // 2]  # where the model is wrong
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
        search.measure([bench.journal.changes(number) for number in range(len(bench.journal.configs))])
        why = _by_model(search, runs, propose, pathlib.Path(folder)) if runs else _evolve(search, propose)
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
    if apply or show:
        print(_applied(bench, tuned, apply) if apply else json.dumps(_json(bench, tuned)) + "\n" if show == "json"
              else _text(bench, tuned, runs, propose), end="")
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
        lines.append(f"A model (--run) that has one as good in its first {propose} would save {saved} measurements.")
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
