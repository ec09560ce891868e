"""Times in shuffled rounds, and what they say in spite of a machine that drifts."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["TWIN", "Estimate", "compare", "corrected", "estimates", "machine_warnings", "measure_round"]

TWIN = -1  #: the number of the second copy of the default, whose number is 0
_LEAST_NS, _MOST_CALLS = 3_000_000, 50  # short programs are called more often
_Z = 1.96


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A median with its standard error; NaN where there are too few rounds."""

    value: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Holds the true median in 95 % of cases."""
        return self.value - _Z * self.error, self.value + _Z * self.error


def median(values: Sequence[float]) -> Estimate:
    """The median, with the standard error of Price and Bonett (2001), which asks nothing of the distribution. At least
    three values give one."""
    n, ordered = len(values), sorted(values)
    if n < 3:
        return Estimate(statistics.median(values) if values else math.nan, math.nan)
    c = max(1, round((n + 1) / 2 - math.sqrt(n)))
    outside = sum(math.comb(n, k) for k in range(c)) / 2**n
    z = statistics.NormalDist().inv_cdf(1 - outside)
    return Estimate(statistics.median(ordered), (ordered[n - c] - ordered[c - 1]) / (2 * z))


def measure_round(calls: Mapping[int, Callable[[], object]], number: int, seed: int, least_of: int) -> dict[str, Any]:
    """Times each program once, in an order drawn for this round: a call to warm up, then the least of a few. Returns a
    round for the journal: the programs, their nanoseconds, and how busy and fast the cores were."""
    order = sorted(calls)
    random.Random(f"{seed} {number}").shuffle(order)
    before, times = _Machine(), {}
    for program in order:
        times[program] = _least_time(calls[program], least_of)
    after, programs = _Machine(), sorted(calls)
    return {
        "programs": programs,
        "ns": [times[program] for program in programs],
        "busy": round(after.others_since(before), 3),
        "mhz": sorted({round(mhz) for mhz in (*before.mhz, *after.mhz)}),
    }


def _least_time(call: Callable[[], object], least_of: int) -> int:
    call()
    least, spent, count = 1 << 62, 0, 0
    while count < least_of or (spent < _LEAST_NS and count < _MOST_CALLS):
        begin = time.perf_counter_ns()
        call()
        taken = time.perf_counter_ns() - begin
        least, spent, count = min(least, taken), spent + taken, count + 1
    return least


class _Machine:
    """The state of this process's cores."""

    def __init__(self) -> None:
        self.cores = sorted(os.sched_getaffinity(0))
        self.time, used = time.monotonic(), os.times()
        self.own = used.user + used.system
        self.busy, self.mhz = 0.0, []
        try:
            with open("/proc/stat") as file:
                words = [line.split() for line in file if line.startswith("cpu")]
            lines = {own[0]: [int(word) for word in own[1:9]] for own in words}
            ticks = os.sysconf("SC_CLK_TCK")
            self.busy = sum(sum(lines[f"cpu{core}"]) - sum(lines[f"cpu{core}"][3:5]) for core in self.cores) / ticks
            with open("/proc/cpuinfo") as file:
                all_mhz = [float(line.split(":")[1]) for line in file if line.startswith("cpu MHz")]
            self.mhz = [all_mhz[core] for core in self.cores if core < len(all_mhz)]
        except (OSError, KeyError, ValueError):
            pass  # not Linux, or a machine that hides it

    def others_since(self, before: _Machine) -> float:
        """How many cores other processes used on average; 0 over a time too short to say."""
        seconds = self.time - before.time
        return max(0.0, (self.busy - before.busy - self.own + before.own) / seconds) if seconds > 0.3 else 0.0


def corrected(rounds: Sequence[Mapping[str, Any]]) -> list[dict[int, float]]:
    """For each round the logarithm of each program's time, without the slowness of the round: how much slower than
    usual the other programs were in this round (median). Rounds of different programs are joined by the default."""
    blocks: dict[tuple[int, ...], list[int]] = {}
    for number, own in enumerate(rounds):
        blocks.setdefault(tuple(own["programs"]), []).append(number)
    result: list[dict[int, float]] = [{} for _ in rounds]
    usual = statistics.median([math.log(_default(own)) for own in rounds]) if rounds else 0.0
    for programs, numbers in blocks.items():
        logs = [[math.log(ns) for ns in rounds[number]["ns"]] for number in numbers]
        levels = [0.0] * len(logs)
        columns: list[float] = []
        for _ in range(10):  # median polish: a time of each program, a level of each round
            columns = [statistics.median(row[p] - level for row, level in zip(logs, levels, strict=True))
                       for p in range(len(programs))]
            levels = [statistics.median(x - c for x, c in zip(row, columns, strict=True)) for row in logs]
        default = statistics.fmean(c for p, c in zip(programs, columns, strict=True) if p in (0, TWIN))
        for number, row in zip(numbers, logs, strict=True):
            rest = [x - c for x, c in zip(row, columns, strict=True)]
            for at, program in enumerate(programs):
                level = statistics.median(rest[:at] + rest[at + 1 :])
                result[number][program] = row[at] - level - default + usual
    return result


def _default(own: Mapping[str, Any]) -> float:
    """The default's time in a round: the geometric mean of both copies."""
    times = dict(zip(own["programs"], own["ns"], strict=True))
    return math.sqrt(times[0] * times[TWIN])


def estimates(rounds: Sequence[Mapping[str, Any]]) -> dict[int, Estimate]:
    """Program -> the logarithm of its time."""
    values: dict[int, list[float]] = {}
    for own in corrected(rounds):
        for program, value in own.items():
            values.setdefault(program, []).append(value)
    return {program: median(own) for program, own in values.items()}


def compare(rounds: Sequence[Mapping[str, Any]], program: int) -> Estimate:
    """The logarithm of a program's time by the default's, from the differences within rounds. TWIN gives A/A: what a
    difference of nothing looks like."""
    differences = []
    for own in rounds:
        times = dict(zip(own["programs"], own["ns"], strict=True))
        if program in times:
            default = times[0] if program == TWIN else _default(own)
            differences.append(math.log(times[program] / default))
    return median(differences)


def machine_warnings(rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    """What speaks against the times, one sentence each."""
    if not rounds:
        return []
    found = []
    values: dict[int, list[float]] = {}
    for one in corrected(rounds):
        for program, value in one.items():
            values.setdefault(program, []).append(value)
    spread = statistics.median([statistics.stdev(own) if len(own) > 1 else 0.0 for own in values.values()])
    if spread > 0.02:
        found.append(f"a noisy machine: times of one program deviate by {100 * spread:.1f} % between rounds")
    twin = compare(rounds, TWIN)
    low, high = twin.interval
    if low > 0.001 or high < -0.001:
        found.append(
            f"two copies of the default differ by {100 * twin.value:+.2f} % (A/A): smaller differences say nothing"
        )
    busy = [own["busy"] for own in rounds]
    if statistics.fmean(busy) > 0.1:
        found.append(f"busy cores: other processes used {statistics.fmean(busy):.2f} cores, in the worst round "
                     f"{max(busy):.2f}")
    mhz = [one for own in rounds for one in own["mhz"]]
    if mhz and max(mhz) > 1.05 * min(mhz):
        found.append(f"the clock changed: {min(mhz)} to {max(mhz)} MHz; fix the frequency if you can")
    return found
