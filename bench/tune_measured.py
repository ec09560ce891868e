#!/usr/bin/env python3
"""`tune` on programs whose family no training has seen, beside random configurations: a table of docs/measured.md.

    taskset -c 1 bench/tune_measured.py WORK PROGRAM ... [--build build/release] [--most 60]

WORK: where examples/measured_layouts/collect.py has dumped the programs. For each program it trains
experiments/xla.yaml without the program's family. Then `tune` runs with that training and without one. All
configurations of both, and as many random ones, are measured once more together: the table says after how many
measurements each search had one within 2 % of the best of all. Last, new rounds compare the choices of `tune` and the
best with the default. Needs an idle machine, and the jax and the tpudist of this Python.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
LAYOUTS = SOURCE / "examples/measured_layouts"
NEAR = math.log(1.02)  # of the best known
sys.path.insert(0, str(LAYOUTS))


def state(config):
    from tpudist.hlo import state_of

    return {name: state_of(own) for name, own in config.items()}


def judged(name, options, run):
    import collect
    from tpudist.measure import Bench
    from tpudist.timing import TWIN, compare
    from tpudist.tune import tune

    folder = options.out / name
    shutil.rmtree(folder, ignore_errors=True)  # a search does not begin with what others have measured
    folder.mkdir(parents=True)
    files = [options.work / "dumps" / f"{name}.{when}.pb" for when in ("before", "after")]
    orders, chosen = {}, {}
    for title, runs in (("with the model", [str(run)]), ("without", [])):
        out = folder / f"{title.split()[0]}.pb"
        found = tune(files[0], default=files[1], out=out, runs=runs, most=options.most, quiet=True)
        chosen[title] = found.fastest.changes
        lines = map(json.loads, out.with_suffix(".jsonl").read_text().splitlines())
        orders[title] = [state(one["config"]) for one in lines if "config" in one]
    bench = Bench(*files, folder / "judged.pb", quiet=True)
    own = collect.configurations(bench.space, name, math.ceil(options.most * 4 / 3))
    orders["random"] = [{}, *(one for at, one in enumerate(own) if at % collect.SHARE_OF_NEIGHBOURS)]
    numbers = bench.take([one for order in orders.values() for one in order])
    rounds = bench.run(numbers, rounds=8, kind="judge")
    ratios = {one.number: compare(rounds, one.program).value for one in bench.measured()
              if one.program is not None and one.program in rounds[0]["programs"]}
    best = min(ratios, key=ratios.get)
    row = {"all": len(ratios)}
    for title, order in orders.items():
        order = [number for one in order if (number := bench.journal.number_of(one)) in ratios]
        near = [at for at, number in enumerate(order) if ratios[number] < ratios[best] + NEAR]
        row[title] = f"{near[0] + 1 if near else 'never'} of {len(order)}"
    # What was chosen looks faster than it is: compared by new rounds of new copies.
    bench.forget(set())
    picked = [*(bench.journal.number_of(one) for one in chosen.values()), best]
    final = bench.run(picked, precision=0.0025, least=20, most=60, kind="compare")
    row["compared"] = [compare(final, bench.journal.configs[number]["program"]) for number in picked]
    row["compared"].append(compare(final, TWIN))
    return row


def main():
    import collect
    from tpudist.measure import Bench, interval

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tuned"))
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--alone", default="", help="as that of collect.py")
    options = parser.parse_args()
    timed = Bench.run

    def run_alone(*words, **options_of_run):
        with collect.alone(options.alone):
            return timed(*words, **options_of_run)

    Bench.run = run_alone
    tpudist = options.build.resolve() / "tpudist"
    os.environ["TPUDIST_PROGRAM"] = str(tpudist)
    options.out.mkdir(parents=True, exist_ok=True)
    shards = options.out / "shards"
    subprocess.run([tpudist, "convert", LAYOUTS / "npz", shards, "--quiet"], check=True)
    titles = ("configurations", "with the model", "without", "random", "choice with the model", "without", "best", "A/A")
    print("| program | " + " | ".join(titles) + " |\n" + "|---" * (len(titles) + 1) + "|")
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
        cells = [row[title] for title in ("all", "with the model", "without", "random")]
        cells += [interval(one) for one in row["compared"]]
        print(f"| {name} | " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
