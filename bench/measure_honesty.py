#!/usr/bin/env python3
"""Are the intervals of `tpudist measure` honest on this machine?

    bench/measure_honesty.py before.hlo.pb after.hlo.pb [--pairs 60] [--rounds 15] [--slow 0.01] [--precision 0.003]

Two copies of the default, compiled for each pair, must not differ (A/A): 95 % intervals hold 0 in 92 to 98 % of pairs.
Then one copy is slowed down by --slow, by waiting after each call, and measured to --precision: its interval must hold
the true slow-down, and not 0. Needs the jax and the tpudist of this Python. Run it alone on the machine.
"""
import argparse
import os
import pathlib
import statistics
import tempfile
import time

from tpudist import timing
from tpudist.measure import Bench, interval


def copies(bench, rounds, slow=0.0, precision=0.0):
    """Rounds of the default and a second copy, whose calls take `slow` of a usual call longer."""
    text = bench.program.with_layouts([])
    first, second = bench.device.compile(text), bench.device.compile(text)
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        bench.device.call(first)
        times.append(time.perf_counter() - begin)
    wait = slow * statistics.median(times)

    def slowed():
        bench.device.call(second)
        end = time.perf_counter() + wait
        while wait and time.perf_counter() < end:
            pass

    calls = {0: lambda: bench.device.call(first), timing.TWIN: slowed}
    turns, found, look = timing.turns_for(calls[0], 6), [], 10
    while len(found) < rounds:
        found.append(timing.measure_round(calls, len(found), time.time_ns(), turns))
        if precision and len(found) == look:
            look = timing.rounds_for(precision, look, timing.compare(found, timing.TWIN).error)
            if look <= len(found):
                break
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--slow", type=float, default=0.01)
    parser.add_argument("--precision", type=float, default=0.003)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.before, options.after, pathlib.Path(folder) / "out.pb")
        found = [timing.compare(copies(bench, options.rounds), timing.TWIN) for _ in range(options.pairs)]
        held = sum(low <= 0 <= high for low, high in (one.interval for one in found))
        print(f"{bench.program.name} on {bench.device.facts()['device']}, load {os.getloadavg()[0]:.2f}")
        print(f"A/A: {held} of {options.pairs} intervals hold 0 ({100 * held / options.pairs:.0f} %); standard error "
              f"{100 * sorted(one.error for one in found)[len(found) // 2]:.2f} % (median), differences up to "
              f"{100 * max(abs(one.value) for one in found):.2f} %")
        rounds = copies(bench, 400, options.slow, options.precision)
        slowed = timing.compare(rounds, timing.TWIN)
        print(f"planted {100 * options.slow:+.1f} %: found {interval(slowed)}, {len(rounds)} rounds, standard error "
              f"{100 * slowed.error:.2f} %")


if __name__ == "__main__":
    main()
