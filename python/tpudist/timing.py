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

import numpy as np
import numpy.typing as npt

__all__ = ["RULE", "TWIN", "Estimate", "compare", "corrected", "estimates", "machine_warnings", "measure_round",
           "medians", "rounds_for", "turns_for"]

RULE = 1  #: of these times: journals of another are refused
TWIN = -1  #: the number of the second copy of the default, whose number is 0
_IN_A_TURN = 3  # calls
_LEAST_NS, _MOST_CALLS = 3_000_000, 48  # of short programs
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


def medians(series: Sequence[Sequence[float]]) -> list[Estimate]:
    """The median of each series of rounds, with the standard error of Price and Bonett (2001), which asks nothing of
    the distribution. At least five values give one: of fewer, intervals hold too rarely. Where rounds resemble the one
    before, in the mean over all series, they say less: the errors grow as those of a first-order autoregression."""
    found, alike, pairs = [], 0.0, 1
    for values in series:
        n, ordered = len(values), sorted(values)
        if n < 5:
            found.append(Estimate(statistics.median(values) if values else math.nan, math.nan))
            continue
        c = max(1, round((n + 1) / 2 - math.sqrt(n)))
        outside = sum(math.comb(n, k) for k in range(c)) / 2**n
        z = statistics.NormalDist().inv_cdf(1 - outside)
        found.append(Estimate(statistics.median(ordered), (ordered[n - c] - ordered[c - 1]) / (2 * z)))
        signs = np.sign(np.array(values) - found[-1].value)
        alike += float(signs[1:] @ signs[:-1])
        pairs += int(np.count_nonzero(signs[1:] * signs[:-1]))
    correlation = min(0.9, max(0.0, math.sin(math.pi / 2 * alike / pairs)))  # of normal values with such signs
    wider = math.sqrt((1 + correlation) / (1 - correlation))
    return [Estimate(one.value, one.error * wider) for one in found]


def measure_round(calls: Mapping[int, Callable[[], object]], number: int, seed: int, turns: int) -> dict[str, Any]:
    """Times all programs in turns of three calls, in an order drawn for each turn. Virtual machines are slower by up to
    half for some seconds, so the slowness of a turn is taken away. A program's time is the mean of the middle half of
    its turns, which favours no program whose times vary more. Returns a round for the journal."""
    rng, programs, before, times = random.Random(f"{seed} {number}"), sorted(calls), _Machine(), []
    for _ in range(turns):
        turn = {program: _mean_time(calls[program]) for program in rng.sample(programs, len(programs))}
        times.append([turn[program] for program in programs])
    after, logs = _Machine(), np.log(times)
    levels = _polished(logs)[1]
    middle = np.sort(logs - levels + np.median(levels), axis=0)[turns // 4 : turns - turns // 4]
    return {
        "programs": programs,
        "ns": np.exp(middle.mean(axis=0)).round().astype(int).tolist(),
        "turns": turns,
        "busy": round(after.others_since(before), 3),
        "mhz": sorted({round(mhz) for mhz in (*before.mhz, *after.mhz)}),
    }


def turns_for(call: Callable[[], object], calls: int) -> int:
    """How many turns a round has for this many calls of each program, or more of short ones, by the default's time."""
    return math.ceil(max(calls, min(_MOST_CALLS, _LEAST_NS / max(1.0, _mean_time(call)))) / _IN_A_TURN)


def _mean_time(call: Callable[[], object]) -> float:
    """Nanoseconds of a call, after one that warms up the caches."""
    call()
    begin = time.perf_counter_ns()
    for _ in range(_IN_A_TURN):
        call()
    return (time.perf_counter_ns() - begin) / _IN_A_TURN


def _polished(logs: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Median polish: a time for each program [columns], and how much slower each row was for all of them [rows, 1]."""
    levels = np.zeros((len(logs), 1))
    for _ in range(10):
        columns = np.median(logs - levels, axis=0)
        levels = np.median(logs - columns, axis=1, keepdims=True)
    return columns, levels


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
        logs = np.log(np.array([rounds[number]["ns"] for number in numbers], np.float64))
        columns, _ = _polished(logs)
        default = columns[[program in (0, TWIN) for program in programs]].mean()
        values = logs - _medians_of_others(logs - columns) - default + usual
        for number, row in zip(numbers, values.tolist(), strict=True):
            result[number] = dict(zip(programs, row, strict=True))
    return result


def _medians_of_others(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """For each number the median of the others in its row."""
    ordered, places, others = np.sort(rows), rows.argsort().argsort(), rows.shape[1] - 1
    low, high = (at + (at >= places) for at in ((others - 1) // 2, others // 2))
    return (np.take_along_axis(ordered, low, 1) + np.take_along_axis(ordered, high, 1)) / 2


def _default(own: Mapping[str, Any]) -> float:
    """The default's time in a round: the geometric mean of both copies."""
    times = dict(zip(own["programs"], own["ns"], strict=True))
    return math.sqrt(times[0] * times[TWIN])


def estimates(rounds: Sequence[Mapping[str, Any]]) -> dict[int, Estimate]:
    """Program -> the logarithm of its time."""
    values = _by_program(rounds)
    return dict(zip(values, medians(list(values.values())), strict=True))


def _by_program(rounds: Sequence[Mapping[str, Any]]) -> dict[int, list[float]]:
    values: dict[int, list[float]] = {}
    for own in corrected(rounds):
        for program, value in own.items():
            values.setdefault(program, []).append(value)
    return values


def compare(rounds: Sequence[Mapping[str, Any]], program: int) -> Estimate:
    """The logarithm of a program's time by the default's, from the differences within rounds. TWIN gives A/A: what a
    difference of nothing looks like."""
    if program == 0:
        return Estimate(0.0, 0.0)
    # The mean of the medians of both differences, each symmetric if there is none. To the mean of both copies there
    # would be one from skewed noise alone: a mean is less skewed.
    times = [dict(zip(own["programs"], own["ns"], strict=True)) for own in rounds if program in own["programs"]]
    differences = [[math.log(own[program] / own[copy]) for own in times] for copy in (0, TWIN) if copy != program]
    found = medians(differences)
    signs = [np.sign(np.array(own) - one.value) for own, one in zip(differences, found, strict=True)]
    alike = float(np.mean(signs[0] * signs[-1])) if times else 0.0  # of both medians, as their correlation
    first, last = found[0], found[-1]
    error = math.sqrt(abs(first.error**2 + last.error**2 + 2 * alike * first.error * last.error)) / 2
    return first if program == TWIN else Estimate((first.value + last.value) / 2, error)


def rounds_for(precision: float, count: int, error: float) -> int:
    """After how many rounds an error that is this large after `count` should be below the precision; at most twice as
    many. Looks in between would find it small by luck, and stop there with intervals that are too short."""
    return min(2 * count, math.ceil(count * (error / precision) ** 2))


def machine_warnings(rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    """What speaks against the times, one sentence each."""
    if not rounds:
        return []
    found = []
    values = _by_program(rounds).values()
    spread = statistics.median([statistics.stdev(own) if len(own) > 1 else 0.0 for own in values])
    if spread > 0.02:
        found.append(f"a noisy machine: times of one program deviate by {100 * spread:.1f} % between rounds")
    twin = compare(rounds, TWIN)
    low, high = twin.interval
    if low > 0.001 or high < -0.001:
        found.append(
            f"two copies of the default differ by {100 * math.expm1(twin.value):+.2f} % (A/A): smaller differences "
            "say nothing"
        )
    busy = [own["busy"] for own in rounds]
    if statistics.fmean(busy) > 0.1:
        found.append(f"busy cores: other processes used {statistics.fmean(busy):.2f} cores, in the worst round "
                     f"{max(busy):.2f}")
    mhz = [one for own in rounds for one in own["mhz"]]
    if mhz and max(mhz) > 1.05 * min(mhz):
        found.append(f"the clock changed: {min(mhz)} to {max(mhz)} MHz; fix the frequency if you can")
    return found
