#!/usr/bin/env python3
"""Trains all published systems on the same data and compares them: docs/systems.md.

    python3 -m venv table && table/bin/pip install numpy scipy scikit-learn
    table/bin/python scripts/systems_table.py steps WORK    # seconds become steps, of what is not timed yet
    table/bin/python scripts/systems_table.py tune WORK     # rate and readout scale of each system
    table/bin/python scripts/systems_table.py table WORK    # trains what is missing, writes the page

WORK keeps data and runs; every command goes on where it was stopped. A system is a file of
experiments/systems (`tpudist config systems`) or experiments/best_*.yaml. Data: `tpudist synth --preset
demo`, 24 model families a source. The eight of the validation split choose (tune), and the eight of the
test split, whose run times --truth keeps, are those of the table; and AlexNet, if --alexnet names the
folder that holds layout/xla/random of TpuGraphs.

Equal training time: `steps` times each system in three bursts, one thread beside another such run, and
writes experiments/sweeps/systems: timed.json, and the sweep files, in which seconds are steps. So the runs
of a table are those of a file, whatever the machine. A system whose file has changed is timed again; to time
another again, take it out of timed.json.
--scale 0.1 takes a tenth of the time; use it with --sweeps FOLDER.
"""
import argparse
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

SWEEPS, PAGE = ROOT / "experiments" / "sweeps" / "systems", ROOT / "docs" / "systems.md"
BURSTS, TIMED, WARM, LONGEST = 3, 10, 2, 20  # steps of a burst, those before; seconds that are enough
REFERENCE = ("latenciaga_xla_diffmat", "latenciaga_nlp", "latenciaga_tile_diffmat")  # the 2nd place
# What differences are taken to: a column tests little if its own runs differ much.
BASELINES = ("tpugraphs_layout_sage", "tpugraphs_tile_sage_early")  # the data set's own
# Of this file the experiments that the 2nd place tried without gain change one thing.
TRIED, TRIED_BASE = "no gain", "latenciaga_xla"
# Files that would train what another row trains: a table has one member, trains on the training split
# of one collection, and its graphs are smaller than any limit of 10,000 nodes.
LEFT_OUT = ("latenciaga_xla_four_folds", "latenciaga_xla_train_valid", "latenciaga_xla_merged",
            "harvard_10000_nodes")
# AlexNet has 372 nodes: these would repeat harvard.
LEFT_OUT_ALEXNET = ("harvard_500_nodes", "harvard_1000_nodes")
# Synthetic graphs of the tables have 200 to 600 nodes, those of TpuGraphs thousands: so limits on nodes are a tenth.
LIMITS = {"data.reduce.max_nodes": 10, "data.segments.nodes": 10}
MEASURES = ("kendall_tau", "tile_score", "opa", "slowdown_1", "slowdown_10", "slowdown_100")
HEADS = {"kendall_tau": "tau", "tile_score": "tile score", "opa": "OPA",
         "slowdown_1": "best of 1", "slowdown_10": "of 10", "slowdown_100": "of 100"}


@dataclasses.dataclass(frozen=True)
class Table:
    name: str
    collection: str
    seconds: float     # of training; 0: as many configurations as the 2nd place sees in its time
    data: str = "synthetic"
    seeds: int = 3
    failed: bool = False  # with the experiments that their authors tried without gain

    @property
    def metric(self):
        return "tile_score" if self.collection.startswith("tile") else "kendall_tau"

    @property
    def others(self):
        """For what its differences and pictures have intervals: AlexNet is one family."""
        return "on other model families" if self.data == "synthetic" else "if trained again"


TABLES = [Table("xla_random", "layout:xla:random", 60, failed=True),
          Table("xla_default", "layout:xla:default", 60),
          Table("nlp_random", "layout:nlp:random", 120),
          Table("tile", "tile:xla", 30),
          Table("alexnet", "layout:xla:random", 30, data="alexnet"),
          Table("xla_random_equal", "layout:xla:random", 0, seeds=1),
          Table("tile_equal", "tile:xla", 0, seeds=1)]
TITLES = {"xla_random": "xla, random", "xla_default": "xla, default", "nlp_random": "nlp, random",
          "tile": "tile", "alexnet": "AlexNet: new configurations of a known graph",
          "xla_random_equal": "xla, random: equal configurations seen",
          "tile_equal": "tile: equal configurations seen"}


@dataclasses.dataclass(frozen=True)
class System:
    name: str
    file: pathlib.Path
    collections: tuple
    score: str
    source: str

    @property
    def tried(self):
        return self.score.startswith(TRIED)

    def wanted(self, table):
        left_out = LEFT_OUT + (LEFT_OUT_ALEXNET if table.data == "alexnet" else ())
        return (table.collection in self.collections and self.name not in left_out
                and (table.failed or not self.tried))


class Tool:
    """Arguments as main() describes them."""

    def __init__(self, work, build, alexnet=None, sweeps=SWEEPS, tables=None, systems=None, scale=1, out=PAGE):
        self.program = str((ROOT / build / "tpudist").resolve())
        self.work, self.sweeps = pathlib.Path(work).resolve(), pathlib.Path(sweeps).resolve()
        self.alexnet = pathlib.Path(alexnet).resolve() if alexnet else None
        self.scale, self.out, self.only = scale, pathlib.Path(out), systems
        self.tables = [t for t in TABLES if (t.data != "alexnet" or self.alexnet)
                       and (not tables or t.name in tables)]
        self.work.mkdir(parents=True, exist_ok=True)
        self.sweeps.mkdir(parents=True, exist_ok=True)
        kept = self.sweeps / "timed.json"
        self.timed = json.loads(kept.read_text()) if kept.exists() else {}

    def run(self, *words, data="table", ranks=0, accept=(0,)):
        environment = dict(os.environ, TPUDIST_DATA=str(self.work / data / "shards"),
                           OMP_NUM_THREADS="1")
        mpirun = ["mpirun", "--bind-to", "none", "--oversubscribe", "-np", str(ranks)] if ranks else []
        result = subprocess.run([*mpirun, self.program, *map(str, words)], text=True, cwd=self.work,
                                env=environment, capture_output=True)
        if result.returncode:
            said = (f"{' '.join(map(str, words))}: exit code {result.returncode}\n"
                    f"{result.stdout[-2000:]}{result.stderr[-2000:]}")
            if result.returncode not in accept:
                sys.exit(said)
            print(said, file=sys.stderr, flush=True)
        return result.stdout

    # ---- data

    def make_data(self):
        layouts = ",".join(sorted({t.collection for t in TABLES if t.metric == "kendall_tau"}))
        # Kernels are small and many; a table of eight would be one of luck.
        for source, collections, graphs in (("layout", layouts, "16,8,8"), ("tile", "tile:xla", "128,64,64")):
            self.make_once(source, lambda: self.make_families(source, collections, graphs))
        if self.alexnet:
            self.make_once("alexnet", lambda: self.run(
                "convert", self.alexnet, self.work / "alexnet" / "shards", "--collections", "layout:xla:random"))

    def make_once(self, source, make):
        made = self.work / f"{source}.made"
        if not made.exists():
            make()
            made.touch()

    def make_families(self, source, collections, graphs):
        made, truth = self.work / f"made_{source}", self.work / "truth" / source
        self.run("synth", made, "--preset", "demo", "--graphs", graphs, "--truth", truth,
                 "--collections", collections)
        for data in ("choose", "table"):
            npz = self.work / data / f"npz_{source}"
            shutil.rmtree(npz, ignore_errors=True)
            for path in sorted(made.rglob("*.npz")):
                place = path.relative_to(made)
                split, target = path.parent.name, npz / place
                if split == "valid" and data == "table" or split == "test" and data == "choose":
                    continue
                if split == "test":  # becomes the validation split, with its run times
                    target = target.parent.parent / "valid" / path.name
                    arrays = dict(np.load(path)) | {key: value for key, value
                                                    in np.load(truth / place).items()
                                                    if key != "config_time"}
                    target.parent.mkdir(parents=True, exist_ok=True)
                    np.savez(target, **arrays)
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.link(path, target)
            self.run("convert", npz, self.work / data / "shards")

    def npz(self, table, split):
        """The folder of a split's NPZ files."""
        root = (self.alexnet if table.data == "alexnet"
                else self.work / "table" / f"npz_{table.collection.split(':')[0]}")
        return root / pathlib.Path(*table.collection.split(":")) / split

    @staticmethod
    def data_of(table):
        return "alexnet" if table.data == "alexnet" else "table"

    # ---- systems

    @functools.cache
    def systems(self):
        files = [*sorted((ROOT / "experiments" / "systems").glob("*.yaml")),
                 *sorted((ROOT / "experiments").glob("best_*.yaml"))]
        return [System(file.stem, file, tuple(self.values(file)["system.collections"].strip("[]").split(", ")),
                       self.values(file)["system.score"].strip('"'),
                       self.values(file)["system.source"].strip('"'))
                for file in files if not self.only or file.stem in self.only]

    @functools.cache
    def values(self, file):
        shown = self.run("config", "show", file).splitlines()
        return dict(line.rstrip(" *").split(maxsplit=1) for line in shown if len(line.split()) > 1)

    def value(self, system, key):
        return float(self.values(system.file)[key])

    # ---- seconds become steps

    def settings(self, system, table, steps=0):
        """What every run of a system in a table sets."""
        values = self.values(system.file)
        found = {key: int(values[key]) // part for key, part in LIMITS.items()
                 if int(values.get(key, 0)) > 0 and table.data != "alexnet"}
        if steps and values.get("train.average.kind") == "swa":
            found["train.average.every"] = max(1, steps // 20)
        return found

    @staticmethod
    def timed_name(system, table):
        """Tables of one collection share what was timed."""
        return f"{table.data} {table.collection} {system.name}"

    @staticmethod
    def content(system):
        """Of the file and of those that it includes, without their comments."""
        def lines(file):
            own = [line for line in file.read_text().splitlines() if not line.startswith("#")]
            included = [line.split(maxsplit=1)[1] for line in own if line.startswith("include: ")]
            return own + [line for name in included for line in lines(file.parent / name)]
        return hashlib.sha256("\n".join(lines(system.file)).encode()).hexdigest()[:16]

    def require_timed(self):
        """Before anything is trained: the steps of a table are those of its systems as they are now."""
        for table in self.tables:
            for system in self.systems():
                name = self.timed_name(system, table)
                if system.wanted(table) and (
                        self.timed.get(name, {}).get("file") != self.content(system)
                        or system.name not in self.steps_in(table)):
                    sys.exit(f"{name} is not timed as it is now: run `steps` first")

    def burst(self, system, table):
        """Times some steps more of a system, and writes down what else a table says of it."""
        facts = self.timed.setdefault(self.timed_name(system, table), {"bursts": [], "file": self.content(system)})
        run = self.work / "timed" / self.timed_name(system, table).replace(" ", "-")
        words = ["data.collection=" + table.collection, "ensemble={members: 1, vary: [init]}",
                 "train.evaluate_every=0", "train.checkpoint_every=0", "train.last_evaluation=none",
                 "train.log_every=1", "dist.threads=1", "train.early_stop.patience=0",
                 *(f"{k}={v}" for k, v in self.settings(system, table).items())]
        steps = WARM + (max(3, min(TIMED, round(LONGEST / facts["bursts"][0]))) if facts["bursts"] else 3)
        shutil.rmtree(run, ignore_errors=True)
        printed = self.run("train", system.file, "--run-dir", run, *words, f"train.steps={steps}",
                           data=self.data_of(table))
        lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        facts["bursts"].append(statistics.fmean(
            [line["step_seconds"] for line in lines if line["kind"] == "step"][WARM:]))
        shutil.rmtree(run)
        if len(facts["bursts"]) > 1:
            return
        plan = self.run("train", system.file, "--dry-run", "--run-dir", run, "train.steps=8", *words,
                        data=self.data_of(table))
        saved = re.search(r"saves a factor of (\S+) in arithmetic", plan)
        facts |= {"memory": re.search(r"peak memory: (\S+ \S+)", printed)[1],
                  "parameters": re.search(r"parameters +(\S+) a member", plan)[1],
                  "arithmetic": 100 / float(saved[1]) if saved else 100}

    def seconds(self, system, table):
        """Of a step; the first burst is short and only says how long the others may be."""
        return statistics.median(self.timed[self.timed_name(system, table)]["bursts"][1:])

    @functools.cache
    def configs_of(self, system, table):
        """Configurations of a step: slates may be larger than what a graph has."""
        most, sizes = int(self.value(system, "batch.configs")), []
        for path in sorted(self.npz(table, "train").glob("*.npz")):
            with np.load(path) as arrays:
                sizes.append(len(arrays["config_runtime"]))
        if self.values(system.file)["batch.draw"] == "graphs":
            mean = statistics.fmean(min(most, size) for size in sizes)
        else:  # the rows of every graph in slates, each once
            mean = sum(sizes) / sum(-(-size // most) for size in sizes)
        return mean * self.value(system, "batch.slates")

    def steps_of(self, table, systems):
        """Steps of each system, four or a multiple (scores at a quarter and at half): of its seconds,
        or of the configurations that the reference sees."""
        def quarters(steps):
            return 4 * max(1, round(steps / 4))
        if table.seconds:
            return {s.name: quarters(self.scale * table.seconds / self.seconds(s, table)) for s in systems}
        timed = next(t for t in TABLES if t.collection == table.collection and t.seconds)
        reference = next((s for s in systems if s.name in REFERENCE), systems[0])
        seen = self.scale * timed.seconds / self.seconds(reference, table) * self.configs_of(reference, table)
        return {s.name: quarters(seen / self.configs_of(s, table)) for s in systems}

    def sweep_text(self, table, name, systems, each, tail, folder=None):
        """A sweep file that lies in `folder`."""
        files = [os.path.relpath(s.file, folder or self.sweeps) for s in systems]
        lines = [f"  {s}: {{" + ", ".join(f"{k}: {v}" for k, v in each[s].items()) + "}" for s in each]
        return "\n".join([
            "# yaml-language-server: $schema=" + os.path.relpath(
                ROOT / "experiments" / "schema" / "sweep.json", folder or self.sweeps),
            "# Written by scripts/systems_table.py, which says what it is for.",
            f"name: systems_{name}", "experiments:", *(f"  - {file}" for file in files),
            "set:", f"  data.collection: {table.collection}", "  train.checkpoint_every: 0",
            # It would go by the scores of the families that the table compares on.
            "  train.early_stop.patience: 0",
            # Of the scores at 1/4 and 1/2; the last ones are of all rows.
            "  train.evaluate_rows: 250", "  dist.threads: 1", "each:", *lines, tail]) + "\n"

    def time(self, pairs):
        """Times of pairs of system and table what is not timed yet."""
        once = {self.timed_name(*pair): pair for pair in pairs}
        for name, (system, _) in once.items():
            if self.timed.get(name, {}).get("file") != self.content(system):
                self.timed.pop(name, None)
        for number in range(BURSTS + 1):  # in turn, so that a slow minute of the machine is nobody's
            missing = [pair for name, pair in once.items()
                       if len(self.timed.get(name, {}).get("bursts", [])) <= number]
            with concurrent.futures.ThreadPoolExecutor(2) as pool:  # as in the table: two at a time
                list(pool.map(lambda pair: self.burst(*pair), missing))
            (self.sweeps / "timed.json").write_text(json.dumps(self.timed, indent=1, sort_keys=True) + "\n")

    def steps(self):
        self.make_data()
        wanted = [(s, t) for t in self.tables for s in self.systems() if s.wanted(t)]
        self.time(wanted)
        for table in self.tables:
            own = [s for s, t in wanted if t == table]
            steps = self.steps_of(table, own)
            each = {s.name: self.of_steps(s, table, steps[s.name]) for s in own}
            (self.sweeps / f"{table.name}.yaml").write_text(self.sweep_text(
                table, table.name, own, each, f"sweep: {{seeds: {table.seeds}, folds: none}}"))
            print(f"{table.name}: {len(own)} systems, "
                  f"{sum(steps[s.name] * self.seconds(s, table) for s in own) * table.seeds / 7200:.2f} h")

    def of_steps(self, system, table, steps):
        return {"train.steps": steps, "train.evaluate_every": steps // 4} | self.settings(system, table, steps)

    # ---- runs

    def sweep(self, file, folder, data, known=None):
        """Trains what is missing, two runs at a time. The runs by experiment: {name: folders}. A run that
        fails stays so, and is left out. `known`: another sweep's folder, whose runs of equal settings are taken."""
        list_of, old = (folder.with_name(folder.name + suffix) for suffix in ("_list.yaml", "_old"))
        listed = list_of.read_text() if list_of.exists() else ""
        # A sweep is one list. Where systems were added, the new one takes over what the old one trained.
        if old.exists() or (folder / "sweep.json").exists() and listed != file.read_text():
            self.move_runs(folder, old)
            self.run("sweep", "expand", file, "--dir", folder, data=data)
            self.move_runs(old, folder)
        list_of.parent.mkdir(parents=True, exist_ok=True)
        list_of.write_text(file.read_text())
        if known:
            if not (folder / "sweep.json").exists():
                self.run("sweep", "expand", file, "--dir", folder, data=data)
            for run in json.loads((folder / "sweep.json").read_text())["runs"]:
                self.copy_run(run["id"], known, folder)
        self.run("sweep", "run", file, "--dir", folder, "--groups", "1", data=data, ranks=2, accept=(0, 1))
        record = json.loads((folder / "sweep.json").read_text())
        runs = {}
        for run in record["runs"]:
            if not (folder / "results" / f"{run['id']}.json").exists():  # e.g. the disk was full
                sys.exit(f"{folder}: run {run['id']} has no result; see `tpudist sweep status {folder}`, and go on")
            label = record["variants"][run["variant"]]["label"].rstrip(":")
            of = runs.setdefault(label, [])
            if (folder / "runs" / run["id"] / "scores.json").exists():
                of.append(folder / "runs" / run["id"])
        if not any(runs.values()):
            sys.exit(f"{folder}: no run trained; see `tpudist sweep status {folder}`")
        return runs

    @staticmethod
    def copy_run(run, source, target):
        result = pathlib.Path("results") / f"{run}.json"
        if not (source / result).exists() or (target / result).exists():
            return
        shutil.rmtree(target / "runs" / run, ignore_errors=True)
        if (source / "runs" / run).exists():
            shutil.copytree(source / "runs" / run, target / "runs" / run)
        (target / "results").mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / result, target / result)

    @staticmethod
    def move_runs(source, target):
        for path in (*source.glob("runs/*"), *source.glob("results/*")):
            (target / path.parent.name).mkdir(parents=True, exist_ok=True)
            path.rename(target / path.parent.name / path.name)
        shutil.rmtree(source, ignore_errors=True)

    @staticmethod
    def member(run):
        return json.loads((run / "scores.json").read_text())["members"][0]

    def score(self, runs, table, trained=1):
        """Mean score of runs; below any where one of those that were trained failed or has a graph without score."""
        members = [self.member(run) for run in runs]
        if len(runs) < trained or any(m["undefined"][table.metric] for m in members):
            return -math.inf
        return statistics.fmean(m["mean"][table.metric] for m in members)

    # ---- tune

    def tuning_runs(self, table, stage, variants, seeds):
        """Trains variants {name: (system, settings)} on the families that choose. Their runs by name."""
        folder = self.work / "tune" / f"{table.name}-{stage}"
        folder.mkdir(parents=True, exist_ok=True)
        systems, each = [], {}
        for name, (system, settings) in variants.items():
            file = folder / f"{name}.yaml"
            file.write_text(f"include: {os.path.relpath(system.file, folder)}\nname: {name}\n")
            systems.append(dataclasses.replace(system, name=name, file=file))
            each[name] = settings
        file = folder.with_suffix(".yaml")
        file.write_text(self.sweep_text(table, f"{table.name}-{stage}", systems, each,
                                        f"sweep: {{seeds: {seeds}, folds: none}}", file.parent))
        return self.sweep(file, folder / "sweep", "choose")

    def tune(self):
        """Five settings of each system: the published one, the rate x 1/3 and 3, and at the best rate the
        readout scale x 1/3 and 3, by one run of a third of the steps. The best of those that are not
        published then replaces it if over two fresh seeds and all steps it is better by more than the
        standard error over the families. That is a choice and no test: of settings that are alike a quarter
        to a third passes. Seeds are not those of the table. Systems of less than 12 steps keep the published
        setting: a third of these says nothing."""
        self.require_timed()
        self.make_data()
        for table in self.tables:
            if not table.seconds or table.data == "alexnet":
                continue
            steps = self.steps_in(table)
            shown = {s.name: s for s in self.systems() if s.wanted(table) and not s.tried}
            systems = {n: s for n, s in shown.items() if int(steps[n]["train.steps"]) >= 12}
            last = {"train.evaluate_every": 0}  # only the last score counts
            base = {n: {k: self.value(s, k) for k in ("optimizer.lr", "model.readout.scale")}
                    for n, s in systems.items()}
            best, scored = {n: dict(b) for n, b in base.items()}, {n: [] for n in systems}
            for key, factors in (("optimizer.lr", (1 / 3, 1, 3)), ("model.readout.scale", (1 / 3, 3))):
                variants, values = {}, {}
                for name, system in systems.items():
                    third = self.of_steps(system, table, 4 * (int(steps[name]["train.steps"]) // 12)) | last
                    for i, factor in enumerate(factors):
                        values[f"{name}_{i}"] = (name, best[name] | {
                            key: float(f"{base[name][key] * factor:.3g}")})
                        variants[f"{name}_{i}"] = (system, third | values[f"{name}_{i}"][1])
                runs = self.tuning_runs(table, key.split(".")[-1], variants, "[11]")
                for variant, (name, setting) in values.items():
                    scored[name].append((self.score(runs[variant], table), setting))
                best = {n: max(own, key=lambda pair: pair[0])[1] for n, own in scored.items()}
            other = {n: max((pair for pair in own if pair[1] != base[n]), key=lambda pair: pair[0])[1]
                     for n, own in scored.items()}
            runs = self.tuning_runs(
                table, "confirm", {f"{n}_{kind}": (s, steps[n] | setting[n] | last) for n, s in systems.items()
                                   for kind, setting in (("published", base), ("other", other))}, "[21, 22]")
            chosen = {name: steps[name] for name in shown}
            for name in systems:
                gain, error, _ = self.gain(runs[f"{name}_other"], runs[f"{name}_published"], table, 2)
                better = gain > error
                print(f"{table.name} {name}: " + ", ".join(
                    f"{s['optimizer.lr']:g} {s['model.readout.scale']:g} {score:.4f}"
                    for score, s in scored[name])
                    + f"; {'taken' if better else 'not taken'}: {other[name]} {gain:+.4f}", flush=True)
                chosen[name] |= other[name] if better else {}
            (self.sweeps / f"{table.name}_tuned.yaml").write_text(self.sweep_text(
                table, f"{table.name}_tuned", list(shown.values()), chosen,
                f"sweep: {{seeds: {table.seeds}, folds: none}}"))

    def gain(self, runs, base, table, trained):
        """Mean over families of the scores of `runs` less those of `base`; its standard error over families,
        which does not know that another seed moves all of them; and the one with what seeds add. The first is
        infinite where one of the runs that were trained failed or a graph has no score."""
        families, seeds = [], 0.0
        for own, lost in ((runs, -math.inf), (base, math.inf)):
            by_family = {}
            for graph in (g for run in own for g in self.member(run)["graphs"]):
                by_family.setdefault(graph["name"].split(".")[0], []).append(graph[table.metric])
            if len(own) < trained or any(None in scores for scores in by_family.values()):
                return lost, 0.0, 0.0
            families.append([statistics.fmean(scores) for _, scores in sorted(by_family.items())])
            by_sweep = {}
            for run in own:
                by_sweep.setdefault(run.parent, []).append(self.member(run)["mean"][table.metric])
            seeds += sum(statistics.variance(means) / len(means) for means in by_sweep.values()
                         if len(means) > 1) / len(by_sweep) ** 2
        difference = np.subtract(*families)
        variance = difference.var(ddof=1) / len(difference)
        return difference.mean(), variance ** 0.5, (variance + seeds) ** 0.5

    def steps_in(self, table, tuned=""):
        """What the sweep file of a table sets for each system."""
        file = self.sweeps / f"{table.name}{tuned}.yaml"
        text = file.read_text().split("\neach:\n")[1] if file.exists() else ""
        return {m[1]: dict(item.split(": ") for item in m[2].split(", "))
                for m in re.finditer(r"^  (\w+): \{(.*)\}$", text, re.MULTILINE)}

    # ---- the page

    def rows(self, table, file, known=None):
        """{system: row}, its runs, scores and intervals."""
        folder = self.work / "sweeps" / file.stem
        runs = self.sweep(file, folder, self.data_of(table), known)
        collected = self.work / f"{file.stem}.json"
        self.run("sweep", "collect", folder, "--json", collected, data=self.data_of(table))
        intervals = {i["variant"].rstrip(":"): i.get("valid", {})
                     for i in json.loads(collected.read_text())["intervals"]}
        systems = {s.name: s for s in self.systems()}
        rows = {}
        for name, own in runs.items():
            if name not in systems or not own:
                continue
            members = [self.member(run) for run in own]
            undefined = any(m["undefined"][table.metric] for m in members)
            evaluations, seconds = [], []
            for run in own:
                lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
                of = [line for line in lines if line["kind"] == "evaluation"]
                evaluations.append([e["members"][0] for e in of])
                seconds.append(of[-1]["train_seconds"])
                steps = of[-1]["step"]
            rows[name] = {
                "system": systems[name], "note": "", "runs": own, "steps": steps, "seconds": statistics.fmean(seconds),
                "early": [None if None in scores else statistics.fmean(scores)
                          for scores in list(zip(*evaluations))[:2]],
                "mean": {} if undefined else {m: statistics.fmean(of["mean"][m] for of in members)
                                              for m in MEASURES if members[0]["mean"].get(m) is not None},
                "intervals": intervals.get(name, {})}
        return rows

    def compared(self, rows, reference):
        """{system: (difference to the reference, its interval, p, p by Holm)} of rows: on other model
        families, or if trained again where there is one family: without p, since a permutation test of 3 and 3
        trainings cannot go below 0.1."""
        found = {}
        for name, row in rows.items():
            if row is reference or not reference or not row["mean"]:
                continue
            file = self.work / "compare.json"
            self.run("compare", *row["runs"], "--with", *reference["runs"], "--json", file)
            result = json.loads(file.read_text())[0]
            of = result["other_families"] or result["these_graphs"] or {}  # of one run and family neither
            found[name] = (result["difference"], of.get("interval"), of.get("p") if result["other_families"] else None)
        holm = holm_adjusted([p for *_, p in found.values()])
        return {name: (*values, p) for (name, values), p in zip(found.items(), holm)}

    def draws_text(self, rows):
        """How far a score moves with the nodes that an evaluation draws; empty where none draws."""
        moved = []
        for name, row in rows.items():
            values = self.values(row["system"].file)
            if int(values.get("data.reduce.max_nodes", 0)) == 0 or values.get("data.reduce.drawn") == "trained":
                continue
            file = self.work / "draws.json"
            self.run("evaluate", row["runs"][0], "--draws", 10, "--json", file)
            sd = json.loads(file.read_text())["draws"][0]["sd"]
            if sd > 0:
                moved.append(f"{name} {sd:.4f}")
        return ("\n\nStandard deviation of a run's score over ten draws of the nodes that are scored: "
                + ", ".join(moved) + "." if moved else "")

    def baselines(self, table):
        """[(name, mean of each measure)] of models without a network, of random order, and of the times
        without noise; kept in WORK."""
        kept = self.work / f"baselines-{table.name.removesuffix('_equal')}.json"
        if kept.exists():
            return json.loads(kept.read_text())
        tile = table.metric == "tile_score"
        import additive_models  # needs scikit-learn
        train, valid = (additive_models.read_split(
            self.npz(table, split), additive_models.Kernel if tile else additive_models.Graph)
            for split in ("train", "valid"))
        if table.data == "alexnet":
            found = [("ridge on one-hot states", [additive_models.ridge_on_one_hot(train[0], valid[0])]),
                     ("boosted trees on states", [additive_models.trees_on_codes(train[0], valid[0], 3)])]
        elif tile:
            centred = [[k.configs - k.configs.mean(axis=0) for k in kernels] for kernels in (train, valid)]
            found = [("ridge on the configuration", additive_models.ridge(train, *centred)),
                     ("boosted trees on configuration and kernel", additive_models.trees(
                         train, *([k.inputs for k in kernels] for kernels in (train, valid))))]
        else:
            plain, sized = (additive_models.all_counts(train, valid, sized) for sized in (False, True))
            found = [("ridge on counts of states", additive_models.ridge(train, *plain)),
                     ("ridge on counts and sizes", additive_models.ridge(train, *sized)),
                     ("boosted trees on counts and sizes", additive_models.trees(train, *sized))]
        if table.data != "alexnet":
            place = pathlib.Path(*table.collection.split(":")) / "test"
            folder = self.work / "truth" / table.collection.split(":")[0] / place
            found.append(("run times without noise", [np.load(path)["config_time"]
                                                      for path in sorted(folder.glob("*.npz"))]))
        means = [(name, mean_measures([measures(p, g.runtime) for p, g in zip(predictions, valid)], tile))
                 for name, predictions in found]
        means.append(("random order", mean_measures([expected_measures(g.runtime) for g in valid], tile)))
        kept.write_text(json.dumps(means))
        return means

    def part_text(self, table, rows, reference, baselines=(), changed=False):
        """A table of rows, or only of those with a note, with differences to `reference` (a name)."""
        compared = self.compared(rows, rows.get(reference))
        names = sorted((n for n in rows if rows[n]["note"] or not changed),
                       key=lambda n: -rows[n]["mean"].get(table.metric, -9))
        shown = [m for m in MEASURES[2:] if any(m in row["mean"] for row in rows.values())]
        several = table.others != "if trained again"
        head = ["system", HEADS[table.metric], "if trained again", *([table.others] if several else []),
                f"to {reference}, {table.others}" if reference else "", "p (Holm)", "after 1/4", "after 1/2",
                *(HEADS[m] for m in shown), "steps", "seconds", "ms a step", "arithmetic of dense",
                "parameters", "memory"]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for name in names:
            row, facts = rows[name], self.timed[self.timed_name(rows[name]["system"], table)]
            difference, own, _, p = compared.get(name, (None, None, None, None))
            shown_interval = f" ({interval(own)})" if interval(own) else ""
            cells = [name + row["note"] + (f" ({len(row['runs'])} of {table.seeds} runs)"
                             if len(row["runs"]) < table.seeds else ""),
                     f"{row['mean'][table.metric]:.3f}" if row["mean"] else "undefined",
                     *(interval(row["mean"] and row["intervals"].get(kind))
                       for kind in ("these_graphs", "other_families")[:1 + several]),
                     f"{difference:+.3f}{shown_interval}" if name in compared else "",
                     f"{p:.2g}" if p is not None else "",
                     *("" if v is None else f"{v:.3f}" for v in row["early"]),
                     *(measure_text(m, row["mean"]) for m in shown),
                     f"{row['steps']}{' †' if row['steps'] < 100 else ''}", f"{row['seconds']:.0f}",
                     f"{1000 * self.seconds(row['system'], table):.0f}",
                     f"{facts['arithmetic']:.3g} %", facts["parameters"], facts["memory"]]
            lines.append("| " + " | ".join(cells) + " |")
        for name, mean in baselines:
            cells = [f"*{name}*", f"{mean[table.metric]:.3f}", *[""] * (5 + several),
                     *(measure_text(m, mean) for m in shown), *[""] * 6]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def table_text(self, table):
        rows = self.rows(table, self.sweeps / f"{table.name}.yaml")
        tried = {n: r for n, r in rows.items() if r["system"].tried}
        published = {n: r for n, r in rows.items() if n not in tried}
        reference = next((n for n in published if n in (REFERENCE if table.seeds == 1 else BASELINES)), "")
        text = (self.part_text(table, published, reference, self.baselines(table))
                + self.draws_text(published) + self.against_all(table, published))
        tuned_file = self.sweeps / f"{table.name}_tuned.yaml"
        if tuned_file.exists():
            tuned = self.rows(table, tuned_file, self.work / "sweeps" / table.name)
            for name, values in self.steps_in(table, "_tuned").items():
                if name in tuned and "optimizer.lr" in values:
                    tuned[name]["note"] = (f": rate {values['optimizer.lr']}, "
                                           f"scale {values['model.readout.scale']}")
            text += ("\n\n### Tuned\n\nThe systems that tuning changed.\n\n"
                     + self.part_text(table, tuned, reference, changed=True))
        if tried:
            base = {TRIED_BASE: published[TRIED_BASE]} if TRIED_BASE in published else {}
            text += ("\n\n### Tried without gain by the 2nd place\n\nEach changes one thing of "
                     f"{TRIED_BASE}.\n\n" + self.part_text(table, base | tried, TRIED_BASE))
        return text, sorted(published.items(), key=lambda r: -r[1]["mean"].get(table.metric, -9))

    def against_all(self, table, rows):
        """Differences of our own system to every other one, and which are not beaten; empty where there is none
        of our own, or one seed."""
        own = next((n for n in rows if n.startswith("best_") and rows[n]["mean"]), None)
        if not own or table.seeds == 1:
            return ""
        compared = self.compared(rows, rows[own])
        lines = [f"| system | {own} is better by | p (Holm) |", "|---|---|---|"]
        for name, (difference, of, _, p) in sorted(compared.items(), key=lambda pair: -pair[1][0]):
            shown = f" ({-of['high']:.3f} to {-of['low']:.3f})" if interval(of) else ""
            lines.append(f"| {name} | {-difference:+.3f}{shown} | {'' if p is None else f'{p:.2g}'} |")
        beaten = [n for n, (d, _, _, p) in compared.items() if p is not None and p <= 0.05 and d < 0]
        open_ = sorted({s.name for s in self.systems() if s.wanted(table) and not s.tried} - {own, *beaten})
        told = f"Not beaten (p above 0.05, or better): {', '.join(open_) if open_ else 'none'}."
        if table.others == "if trained again":
            told = "With 3 trainings each, a permutation test cannot go below p 0.1, so none is printed."
        return (f"\n\n### {own} against each\n\nWith the interval {table.others}.\n\n" + "\n".join(lines)
                + f"\n\n{told}")

    def table(self):
        """Each table when it is there; the page keeps what else it holds."""
        self.require_timed()
        self.make_data()
        for table in self.tables:
            text, rows = self.table_text(table)
            picture = self.out.with_name(f"{self.out.stem}_{table.name}.svg")
            kind = {"on other model families": "other_families", "if trained again": "these_graphs"}[table.others]
            picture.write_text(chart([(name, row["mean"].get(table.metric), row["intervals"].get(kind))
                                      for name, row in rows]))
            self.put(table.name, f"## {TITLES[table.name]}\n\n![Scores of the systems and their "
                                 f"intervals {table.others}]({picture.name})\n\n{text}")
        if self.only:
            return
        lines = ["## Published scores on TpuGraphs", "", "| system | score | source |", "|---|---|---|",
                 *(f"| {s.name} | {s.score} | {s.source} |" for s in self.systems()
                   if not s.name.startswith("best_"))]
        self.put("published", "\n".join(lines))

    def put(self, name, text):
        """Writes one part of the page in its place; a new one before the published scores."""
        page = self.out.read_text() if self.out.exists() else ""
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = page.partition(begin)
        if name != "published" and not rest:  # a new table stands before the published scores
            before, _, rest = page.partition("<!-- published -->\n")
            rest = rest and f"{end}<!-- published -->\n{rest}"
        self.out.write_text(f"{before}{'' if rest else chr(10)}{begin}\n{text}\n\n{end}{rest.partition(end)[2]}")


def interval(of):
    return f"{of['low']:.3f} to {of['high']:.3f}" if of and of["low"] is not None else ""


def holm_adjusted(ps):
    """Holm's p for each p that is not None."""
    order = sorted((i for i, p in enumerate(ps) if p is not None), key=lambda i: ps[i])
    adjusted, largest = [None] * len(ps), 0
    for rank, i in enumerate(order):
        largest = max(largest, min(1, (len(order) - rank) * ps[i]))
        adjusted[i] = largest
    return adjusted


def measure_text(name, values):
    if values.get(name) is None:
        return ""
    return f"{values[name]:.3f}" if name == "opa" else f"{100 * values[name]:.2f} %"


def measures(prediction, runtime):
    """What a ranking reaches; ties of a coarse model stand in random order."""
    order = np.lexsort((np.random.default_rng(0).random(len(prediction)), prediction))
    best = {k: runtime[order[:k]].min() / runtime.min() for k in (1, 5, 10, 100)}
    import additive_models
    tau = additive_models.tau(prediction, runtime)
    return {"kendall_tau": tau, "opa": (tau + 1) / 2, "tile_score": 2 - best[5]} | {
        f"slowdown_{k}": best[k] - 1 for k in (1, 10, 100)}


def expected_measures(runtime):
    """The means of measures() over all orders."""
    ordered = np.sort(runtime)
    best = {}
    for k in (1, 5, 10, 100):
        left, mean = 1.0, 0.0  # left: the chance that none of the faster ones is among the k
        for i, value in enumerate(ordered):
            none = left * max(0, len(ordered) - i - k) / (len(ordered) - i)
            mean, left = mean + (left - none) * value, none
        best[k] = mean / ordered[0]
    return {"kendall_tau": 0.0, "opa": 0.5, "tile_score": 2 - best[5]} | {
        f"slowdown_{k}": best[k] - 1 for k in (1, 10, 100)}


def mean_measures(of, tile):
    return {name: float(np.mean([one[name] for one in of])) for name in of[0]
            if (name == "tile_score") == tile or name not in ("tile_score", "kendall_tau")}


def chart(rows):
    """SVG: a line a system (name, score or None, interval or None). Intervals beyond all scores and -1 to 1 are
    cut, with an arrow there."""
    rows = [(name, score, of if interval(of) else None) for name, score, of in rows if score is not None]
    ends = [v for *_, of in rows if of for v in (of["low"], of["high"])]
    scores = [score for _, score, _ in rows]
    low = min(*scores, max(-1, min(ends, default=1)), 1)
    high = max(*scores, min(1, max(ends, default=-1)), -1)

    def place(score):
        return 290 + (min(max(score, low), high) - low) / ((high - low) or 1) * 440
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {(len(rows) + 2) * 20}" '
             'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
             f'<text x="290" y="24" fill="#666">{low:.2f}</text>'
             f'<text x="730" y="24" fill="#666" text-anchor="end">{high:.2f}</text>']
    for line, (name, score, of) in enumerate(rows, 2):
        y = line * 20
        parts.append(f'<text x="278" y="{y + 4}" text-anchor="end">{name}</text>')
        if of:
            parts.append(f'<path d="M{place(of["low"]):.1f} {y}H{place(of["high"]):.1f}" '
                         'stroke="#26a" stroke-width="2"/>')
            for end, sign in ((of["low"], -1), (of["high"], 1)):
                if not low <= end <= high:
                    parts.append(f'<path d="M{place(end):.1f} {y - 4}l{5 * sign} 4l{-5 * sign} 4z" fill="#26a"/>')
        parts.append(f'<circle cx="{place(score):.1f}" cy="{y}" r="4" fill="#c33"/>')
    return "\n".join(parts + ["</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["steps", "tune", "table"])
    parser.add_argument("work", help="folder of data and runs")
    parser.add_argument("--build", default="build/release", help="folder of tpudist")
    parser.add_argument("--alexnet", help="folder that holds layout/xla/random/{train,valid}")
    parser.add_argument("--sweeps", default=SWEEPS, help="folder of sweep files")
    parser.add_argument("--tables", nargs="+", choices=[t.name for t in TABLES])
    parser.add_argument("--systems", nargs="+", help="these alone")
    parser.add_argument("--scale", type=float, default=1, help="of the training time")
    parser.add_argument("--out", default=PAGE, help="the page")
    arguments = vars(parser.parse_args())
    command = arguments.pop("command")
    if arguments["systems"] and (arguments["sweeps"] == SWEEPS or command == "table" and arguments["out"] == PAGE):
        parser.error("--systems takes --sweeps, and for a table --out: else the others would be lost")
    tool = Tool(**arguments)
    {"steps": tool.steps, "tune": tool.tune, "table": tool.table}[command]()


if __name__ == "__main__":
    main()
