#!/usr/bin/env python3
"""`tune` on programs whose family no training has seen, beside other searches: a table of docs/measured.md.

    taskset -c 1 bench/tune_measured.py WORK PROGRAM ... [--build build/release] [--most 60]

WORK: where examples/measured_layouts/collect.py has dumped the programs. For each program it trains
experiments/xla.yaml without the program's family. Then four searches measure configurations of the program: `tune`
with that training, `tune` without one, a genetic search from the default, and random configurations. All configurations
of all searches are measured once more together: the table says after how many measurements each search had one within
2 % of the best of all. Last, new rounds compare the choice of `tune` and the best with the default. Needs an idle
machine, and the jax and the tpudist of this Python.
"""
import argparse
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]
LAYOUTS = SOURCE / "examples/measured_layouts"
NEAR = math.log(1.02)  # of the best known
POPULATION, PARENTS = 10, 4
sys.path.insert(0, str(LAYOUTS))


def genetic(search, rng):
    """Of the fastest measured configurations, two are crossed group by group, and one group is changed."""
    from tpudist import tune

    bench = search.bench
    groups = [group for group in bench.space.groups if len(bench.space.operations[group[0]].states) > 1]

    def child(parents):
        first, second = rng.choice(parents), rng.choice(parents)
        own = {}
        for group in groups:
            source = rng.choice((first, second))
            names = [bench.space.operations[number].name for number in group]
            own.update({name: source[name] for name in names if name in source})
        return rng.choice(list(tune._neighbours(bench, own, rng.choice(groups))))

    search.measure([{}])
    idle = 0  # generations
    while groups and idle < 20 and not search.is_over:
        before = len(search.order)
        found = [one for one in bench.measured() if one.number in search.order and one.ratio]
        parents = [one.changes for one in sorted(found, key=lambda one: one.ratio.value)[:PARENTS]]
        search.measure([child(parents) for _ in range(POPULATION)])
        idle = idle + 1 if len(search.order) == before else 0


def judged(name, options, run):
    import collect
    from tpudist import tune
    from tpudist.measure import Bench
    from tpudist.timing import TWIN, compare

    class Search(tune._Search):
        """A search that shares its measurements with others, but counts its own."""

        def __init__(self):
            super().__init__(bench, 0.01, math.inf, 0)
            self.order = []

        @property
        def is_over(self):
            return len(self.order) > options.most

        def measure(self, configs):
            numbers = [] if self.is_over else super().measure(configs)
            self.order += [number for number in numbers if number not in self.order]
            return numbers

    dumps = options.work / "dumps"
    folder = options.out / name
    shutil.rmtree(folder, ignore_errors=True)  # a search does not begin with what others have measured
    folder.mkdir(parents=True)
    bench = Bench(dumps / f"{name}.before.pb", dumps / f"{name}.after.pb", folder / "measured.pb", quiet=True)
    bench.forget = lambda numbers: None  # all are timed again
    timed = bench.run

    def run_alone(*words, **options_of_run):
        with collect.alone(options.alone):
            return timed(*words, **options_of_run)

    bench.run = run_alone
    searches = {title: Search() for title in ("tune with the model", "tune without", "genetic", "random")}
    with tempfile.TemporaryDirectory() as scratch:
        tune._by_model(searches["tune with the model"], [str(run)], 10, pathlib.Path(scratch))
    searches["tune without"].measure([{}])  # counts the default
    tune._descend(searches["tune without"])
    genetic(searches["genetic"], random.Random(name))
    own = collect.configurations(bench.space, name, math.ceil(options.most * 4 / 3))
    searches["random"].measure([{}, *(one for at, one in enumerate(own) if at % collect.SHARE_OF_NEIGHBOURS)])
    rounds = bench.run(range(len(bench.journal.configs)), rounds=8, kind="judge")
    ratios = {one.number: compare(rounds, one.program).value for one in bench.measured()
              if one.program is not None and one.program in rounds[0]["programs"]}
    best = min(ratios, key=ratios.get)
    row = {"all": len(ratios)}
    for title, search in searches.items():
        order = [number for number in search.order if number in ratios][:options.most + 1]
        near = [at for at, number in enumerate(order) if ratios[number] < ratios[best] + NEAR]
        row[title] = f"{near[0] + 1 if near else 'never'} of {len(order)}"
    # What was chosen looks faster than it is: compared by new rounds of new copies.
    Bench.forget(bench, set())
    chosen = searches["tune with the model"].best
    final = bench.run([chosen, best], precision=0.0025, least=20, most=60, kind="compare")
    row["chosen"], row["best"], row["twin"] = (
        compare(final, program) for program in (*(bench.journal.configs[n]["program"] for n in (chosen, best)), TWIN))
    return row


def main():
    from tpudist.measure import interval

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tuned"))
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--alone", default="", help="as that of collect.py")
    options = parser.parse_args()
    tpudist = options.build.resolve() / "tpudist"
    os.environ["TPUDIST_PROGRAM"] = str(tpudist)
    options.out.mkdir(parents=True, exist_ok=True)
    shards = options.out / "shards"
    subprocess.run([tpudist, "convert", LAYOUTS / "npz", shards, "--quiet"], check=True)
    print("| program | configurations | tune with the model | without | genetic | random | choice of tune | best | A/A |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.programs:
        family = name.rsplit("_", 2)[0]
        run = options.out / f"without-{family}-{options.steps}"
        if not (run / "predictions.h5").exists():
            shutil.rmtree(run, ignore_errors=True)
            subprocess.run([
                tpudist, "train", SOURCE / "experiments/xla.yaml", f"data.shards={shards}",
                "data.collection=layout:measured:cpu", f"data.exclude={{train: [{family}_*], valid: []}}",
                f"train.steps={options.steps}", "train.evaluate_every=0", "train.checkpoint_every=0",
                "train.last_evaluation=none", "--run-dir", run, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        row = judged(name, options, run)
        cells = [row[title] for title in ("tune with the model", "tune without", "genetic", "random")]
        print(f"| {name} | {row['all']} | " + " | ".join(cells)
              + "".join(f" | {interval(row[which])}" for which in ("chosen", "best", "twin")) + " |", flush=True)


if __name__ == "__main__":
    main()
