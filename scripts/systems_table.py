#!/usr/bin/env python3
"""Trains all published systems on the same data and compares them: docs/systems.md.

    python3 -m venv table && table/bin/pip install numpy scipy scikit-learn
    table/bin/python scripts/systems_table.py steps WORK    # once a machine: seconds become steps
    table/bin/python scripts/systems_table.py tune WORK     # rate and readout scale of each system
    table/bin/python scripts/systems_table.py table WORK    # trains what is missing, writes the page

WORK keeps data and runs; every command goes on where it was stopped. A system is a file of
experiments/systems (`tpudist config systems`) or experiments/best_*.yaml. Data: `tpudist synth --preset
demo --graphs 16,8,8`, 24 model families a source. The eight of the validation split choose (tune), and
the eight of the test split, whose run times --truth keeps, are those of the table; and AlexNet, if
--alexnet names the folder that holds layout/xla/random of TpuGraphs.

Equal training time: `steps` times 30 steps of each system with one thread beside another such run, and
writes experiments/sweeps/systems/*.yaml, in which seconds are steps. So the runs of a table are those
of a file, whatever the machine. --scale 0.1 takes a tenth of the time; use it with --sweeps FOLDER.
"""
import argparse
import concurrent.futures
import dataclasses
import functools
import json
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
import additive_models  # noqa: E402

TIMED, WARM, LONGEST = 30, 2, 60  # steps that are timed, those before them; seconds that are enough
REFERENCE = ("latenciaga_xla_diffmat", "latenciaga_nlp", "latenciaga_tile_diffmat")  # the 2nd place
LAYOUT = ("kendall_tau", "opa", "slowdown_1", "slowdown_10", "slowdown_100")
HEADS = {"kendall_tau": "tau", "tile_score": "tile score", "opa": "OPA", "slowdown_1": "best of 1",
         "slowdown_10": "of 10", "slowdown_100": "of 100"}


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


@dataclasses.dataclass
class System:
    name: str
    file: pathlib.Path
    collections: list
    score: str
    source: str

    def wanted(self, table):
        if table.collection not in self.collections or self.name.endswith("_four_folds"):
            return False  # without folds the latter is the 2nd place's network
        return table.failed or not self.score.startswith("no gain")


class Tool:
    def __init__(self, arguments):
        self.program = str((ROOT / arguments.build / "tpudist").resolve())
        self.work = pathlib.Path(arguments.work).resolve()
        self.sweeps = (pathlib.Path(arguments.sweeps) if arguments.sweeps
                       else ROOT / "experiments" / "sweeps" / "systems").resolve()
        self.alexnet = pathlib.Path(arguments.alexnet).resolve() if arguments.alexnet else None
        self.scale, self.out = arguments.scale, pathlib.Path(arguments.out)
        self.tables = [t for t in TABLES if (t.data != "alexnet" or self.alexnet)
                       and (not arguments.tables or t.name in arguments.tables)]
        self.only = arguments.systems
        self.work.mkdir(parents=True, exist_ok=True)

    def run(self, *words, data="table", ranks=0):
        environment = dict(os.environ, TPUDIST_DATA=str(self.work / data / "shards"),
                           OMP_NUM_THREADS="1")
        mpirun = ["mpirun", "--bind-to", "none", "--oversubscribe", "-np", str(ranks)] if ranks else []
        result = subprocess.run([*mpirun, self.program, *map(str, words)], text=True, cwd=self.work,
                                env=environment, capture_output=True)
        if result.returncode:
            sys.exit(f"{' '.join(map(str, words))}: exit code {result.returncode}\n"
                     f"{result.stdout[-2000:]}{result.stderr[-2000:]}")
        return result.stdout

    # ---- data

    def make_data(self):
        if (self.work / "data.json").exists():
            return
        made, truth = self.work / "made", self.work / "truth"
        self.run("synth", made, "--preset", "demo", "--graphs", "16,8,8", "--truth", truth,
                 "--collections", ",".join(sorted({t.collection for t in TABLES})))
        for data in ("choose", "table"):
            shutil.rmtree(self.work / data, ignore_errors=True)
            for path in sorted(made.rglob("*.npz")):
                place = path.relative_to(made)
                split, target = path.parent.name, self.work / data / "npz" / place
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
            self.run("convert", self.work / data / "npz", self.work / data / "shards")
        if self.alexnet:
            self.run("convert", self.alexnet, self.work / "alexnet" / "shards", "--collections",
                     "layout:xla:random")
        (self.work / "data.json").write_text("{}")

    @staticmethod
    def data_of(table):
        return "alexnet" if table.data == "alexnet" else "table"

    # ---- systems

    @functools.cache
    def systems(self):
        files = [*sorted((ROOT / "experiments" / "systems").glob("*.yaml")),
                 *sorted((ROOT / "experiments").glob("best_*.yaml"))]
        return [System(file.stem, file, self.values(file)["system.collections"].strip("[]").split(", "),
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

    def facts_file(self, name, table):
        """Of a system on the data of a table; tables of one collection share it."""
        return self.work / "steps" / f"{table.data}-{table.collection.replace(':', '-')}-{name}.json"

    def time_steps(self, system, table):
        """Seconds of a step and what else the table says of it; kept in WORK/steps."""
        kept = self.facts_file(system.name, table)
        if kept.exists():
            return json.loads(kept.read_text())
        run = kept.with_suffix("")
        words = ["data.collection=" + table.collection, "ensemble={members: 1, vary: [init]}",
                 "train.evaluate_every=0", "train.checkpoint_every=0", "train.last_evaluation=none",
                 "train.log_every=1", "dist.threads=1", "train.early_stop.patience=0"]

        def timed(steps):
            shutil.rmtree(run, ignore_errors=True)
            printed = self.run("train", system.file, "--run-dir", run, *words, f"train.steps={steps}",
                               data=self.data_of(table))
            lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
            return printed, [line["step_seconds"] for line in lines if line["kind"] == "step"]
        first = timed(WARM)[1][-1]
        printed, times = timed(WARM + max(3, min(TIMED, round(LONGEST / first))))
        plan = self.run("train", system.file, "--dry-run", "train.steps=8", *words,
                        data=self.data_of(table))
        saved = re.search(r"saves a factor of (\S+) in arithmetic", plan)
        facts = {"seconds": statistics.fmean(times[WARM:]),
                 "memory": re.search(r"peak memory: (\S+ \S+)", printed)[1],
                 "parameters": re.search(r"parameters +(\S+) a member", plan)[1],
                 "share": 100 / float(saved[1]) if saved else 100,
                 "configs": self.value(system, "batch.slates") * self.value(system, "batch.configs")}
        shutil.rmtree(run)
        kept.write_text(json.dumps(facts, indent=1))
        return facts

    def steps_of(self, table, systems, facts):
        """Steps of each system, four or a multiple (scores at a quarter and at half): of its seconds,
        or of the configurations that the reference sees."""
        def quarters(steps):
            return 4 * max(1, round(steps / 4))
        if table.seconds:
            return {s.name: quarters(self.scale * table.seconds / facts[s.name]["seconds"])
                    for s in systems}
        timed = next(t for t in TABLES if t.collection == table.collection and t.seconds)
        name = next((s.name for s in systems if s.name in REFERENCE), systems[0].name)
        seen = self.scale * timed.seconds / facts[name]["seconds"] * facts[name]["configs"]
        return {s.name: quarters(seen / facts[s.name]["configs"]) for s in systems}

    def sweep_text(self, table, name, systems, each, tail):
        files = [os.path.relpath(s.file, self.sweeps) for s in systems]
        lines = [f"  {s}: {{" + ", ".join(f"{k}: {v}" for k, v in each[s].items()) + "}" for s in each]
        return "\n".join([
            "# yaml-language-server: $schema=" + os.path.relpath(
                ROOT / "experiments" / "schema" / "sweep.json", self.sweeps),
            "# Written by scripts/systems_table.py, which says what it is for.",
            f"name: systems_{name}", "experiments:", *(f"  - {file}" for file in files),
            "set:", f"  data.collection: {table.collection}", "  train.checkpoint_every: 0",
            # It would go by the scores of the families that the table compares on.
            "  train.early_stop.patience: 0",
            "  dist.threads: 1", "each:", *lines, tail]) + "\n"

    def steps(self):
        self.make_data()
        (self.work / "steps").mkdir(exist_ok=True)
        systems = self.systems()
        wanted = [(s, t) for t in self.tables for s in systems if s.wanted(t)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:  # as in the table: two at a time
            once = {self.facts_file(s.name, t): (s, t) for s, t in wanted}
            facts_of = dict(zip(once, pool.map(lambda pair: self.time_steps(*pair), once.values())))
        self.sweeps.mkdir(parents=True, exist_ok=True)
        for table in self.tables:
            own = [s for s, t in wanted if t == table]
            facts = {s.name: facts_of[self.facts_file(s.name, table)] for s in own}
            steps = self.steps_of(table, own, facts)
            each = {name: {"train.steps": n, "train.evaluate_every": n // 4}
                    for name, n in steps.items()}
            (self.sweeps / f"{table.name}.yaml").write_text(self.sweep_text(
                table, table.name, own, each, f"sweep: {{seeds: {table.seeds}, folds: none}}"))
            print(f"{table.name}: {len(own)} systems, "
                  f"{sum(steps[s.name] * facts[s.name]['seconds'] for s in own) * table.seeds / 7200:.2f} h")

    # ---- runs

    def sweep(self, file, folder, data):
        """Trains what is missing, two runs at a time. The runs by system and values: [(values, runs)]."""
        self.run("sweep", "run", file, "--dir", folder, "--groups", "1", data=data, ranks=2)
        record = json.loads((folder / "sweep.json").read_text())
        runs = {}
        for run in record["runs"]:
            label = record["variants"][run["variant"]]["label"]
            runs.setdefault(label, []).append(folder / "runs" / run["id"])
        return runs

    def score(self, run, table):
        return json.loads((run / "scores.json").read_text())["members"][0]["mean"][table.metric]

    def tune(self):
        """Rate x 1/3, 1, 3, then readout scale x 1/3, 3 at the best rate; on the families that choose."""
        self.make_data()
        for table in self.tables:
            if not table.seconds or table.data == "alexnet":
                continue
            chosen = {}
            for system in (s for s in self.systems() if s.wanted(table)):
                base = {k: self.value(system, k) for k in ("optimizer.lr", "model.readout.scale")}
                steps = self.steps_in(table)[system.name]
                best = dict(base)
                for key in base:
                    folder = self.work / "tune" / f"{table.name}-{system.name}-{key.split('.')[-1]}"
                    values = [float(f"{base[key] * factor:.3g}") for factor in (1 / 3, 1, 3)]
                    each = {system.name: steps | {k: v for k, v in best.items() if k != key}}
                    file = folder.with_suffix(".yaml")
                    file.parent.mkdir(parents=True, exist_ok=True)
                    text = self.sweep_text(table, file.stem, [system], each,
                                           f"sweep: {{seeds: 1, folds: none, over: {{{key}: {values}}}}}")
                    file.write_text(text.replace(os.path.relpath(system.file, self.sweeps),
                                                 str(system.file)))
                    runs = self.sweep(file, folder, "choose")
                    scores = [self.score(one, table) for one, in runs.values()]
                    best[key] = values[int(np.nanargmax(scores))]
                    print(f"{table.name} {system.name} {key}: "
                          + ", ".join(f"{v:g} {s:.4f}" for v, s in zip(values, scores)), flush=True)
                if best != base:
                    chosen[system.name] = steps | best
            own = [s for s in self.systems() if s.name in chosen]
            (self.sweeps / f"{table.name}_tuned.yaml").write_text(self.sweep_text(
                table, f"{table.name}_tuned", own, chosen,
                f"sweep: {{seeds: {table.seeds}, folds: none}}"))

    def steps_in(self, table):
        """What the sweep file of a table sets for each system."""
        text = (self.sweeps / f"{table.name}.yaml").read_text().split("\neach:\n")[1]
        return {m[1]: dict(item.split(": ") for item in m[2].split(", "))
                for m in re.finditer(r"^  (\w+): \{(.*)\}$", text, re.MULTILINE)}

    # ---- the page

    def rows(self, table, file, tuned):
        """A row for each system: its scores, intervals and its runs."""
        folder = self.work / "sweeps" / file.stem
        runs = self.sweep(file, folder, self.data_of(table))
        collected = self.work / f"{file.stem}.json"
        self.run("sweep", "collect", folder, "--json", collected, data=self.data_of(table))
        intervals = {i["variant"]: i["valid"] for i in json.loads(collected.read_text())["intervals"]}
        rows = []
        for label, own in runs.items():
            scores = [json.loads((run / "scores.json").read_text())["members"][0]["mean"] for run in own]
            quarters = []
            for run in own:
                lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
                evaluations = [e["members"][0] for e in lines if e["kind"] == "evaluation"]
                quarters.append(evaluations[:2])
            rows.append({"name": label.rstrip(":") + (" (tuned)" if tuned else ""), "system": label,
                         "steps": str(evaluations[-1]["step"]), "runs": own, "early": np.mean(quarters, axis=0),
                         "mean": {k: np.mean([s[k] for s in scores]) for k in scores[0]
                                  if isinstance(scores[0][k], float)},
                         "intervals": intervals.get(label, {})})
        return rows

    def against(self, row, reference):
        """Difference to the 2nd place with the interval for other families, and its p; of one family
        the interval for other runs."""
        if row is reference or not reference:
            return None
        file = self.work / "compare.json"
        self.run("compare", *row["runs"], "--with", *reference["runs"], "--json", file)
        result = json.loads(file.read_text())[0]
        of = result["other_families"] or result["these_graphs"]
        return of["interval"] | {"value": result["difference"]}, of.get("p")

    def baselines(self, table):
        """[(name, mean score)] of models without a network; of layouts alone."""
        if table.metric == "tile_score":
            return []
        folder = "/".join(table.collection.split(":"))
        root = self.alexnet if table.data == "alexnet" else self.work / "table" / "npz"
        train, valid = (additive_models.read_split(root / folder / s) for s in ("train", "valid"))
        rng = np.random.default_rng(0)
        found = [("random order", np.mean([additive_models.tau(rng.random(len(g.runtime)), g.runtime)
                                           for g in valid]))]
        if table.data == "alexnet":
            return found + [("ridge on one-hot states", additive_models.ridge_on_one_hot(train[0], valid[0])),
                            ("boosted trees on codes, depth 3",
                             additive_models.trees_on_codes(train[0], valid[0], 3))]
        return found + [("ridge on counts of states", additive_models.ridge_on_counts(train, valid, False)),
                        ("and of sizes", additive_models.ridge_on_counts(train, valid, True))]

    def table_text(self, table):
        files = [(self.sweeps / f"{table.name}.yaml", False),
                 (self.sweeps / f"{table.name}_tuned.yaml", True)]
        rows = [row for file, tuned in files if file.exists()
                for row in self.rows(table, file, tuned)]
        reference = next((r for r in rows if r["system"] in REFERENCE), None)
        compared = [self.against(row, reference) for row in rows]
        holm = holm_adjusted([c[1] if c else None for c in compared])
        rows = sorted(zip(rows, compared, holm), key=lambda r: -r[0]["mean"][table.metric])
        metrics = [m for m in (table.metric, *LAYOUT[1:]) if m in rows[0][0]["mean"]]
        head = ["system", HEADS[table.metric], "other runs", "other families", "to the 2nd place",
                "p (Holm)", "at 1/4", "at 1/2", *(HEADS[m] for m in metrics[1:]), "steps", "ms a step", "of dense",
                "parameters", "memory"]
        lines = [" | ".join(["", *head, ""]).strip(), "|" + "---|" * len(head)]
        for row, difference, p in rows:
            facts = json.loads(self.facts_file(row["system"], table).read_text())
            these, families = (row["intervals"].get(k) for k in ("these_graphs", "other_families"))
            cells = [row["name"], f"{row['mean'][table.metric]:.3f}", interval(these), interval(families),
                     f"{difference[0]['value']:+.3f} ({interval(difference[0])})" if difference else "",
                     f"{p:.2g}" if p is not None else "", *(f"{v:.3f}" for v in row["early"]),
                     *(f"{row['mean'][m]:.3f}" if m == "opa" else f"{100 * row['mean'][m]:.2f} %"
                       for m in metrics[1:]),
                     row["steps"], f"{1000 * facts['seconds']:.0f}",
                     f"{facts['share']:.3g} %", facts["parameters"], facts["memory"]]
            lines.append("| " + " | ".join(cells) + " |")
        for name, value in self.baselines(table):
            lines.append(f"| *{name}* | {value:.3f} |" + " |" * (len(head) - 2))
        return "\n".join(lines), [(r[0]["name"], r[0]) for r in rows]

    def table(self):
        """Each table when it is there; the page keeps what else it holds."""
        self.make_data()
        for table in self.tables:
            text, rows = self.table_text(table)
            picture = self.out.with_name(f"{self.out.stem}_{table.name}.svg")
            picture.write_text(chart([(name, row["mean"][table.metric],
                                       row["intervals"].get("other_families")) for name, row in rows]))
            self.put(table.name, f"## {TITLES[table.name]}\n\n![Scores of the systems and their "
                                 f"intervals for other families]({picture.name})\n\n{text}")
        lines = ["## Published scores on TpuGraphs", "", "| system | score | source |", "|---|---|---|",
                 *(f"| {s.name} | {s.score} | {s.source} |" for s in self.systems())]
        self.put("published", "\n".join(lines))

    def put(self, name, text):
        """Writes one part of the page in its place, or at the end."""
        page = self.out.read_text() if self.out.exists() else ""
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = page.partition(begin)
        self.out.write_text(f"{before}{'' if rest else chr(10)}{begin}\n{text}\n\n{end}{rest.partition(end)[2]}")


def interval(of):
    return f"{of['low']:.3f} to {of['high']:.3f}" if of else ""


def holm_adjusted(ps):
    """Holm's p for each p that is not None."""
    order = sorted((i for i, p in enumerate(ps) if p is not None), key=lambda i: ps[i])
    adjusted, largest = [None] * len(ps), 0
    for rank, i in enumerate(order):
        largest = max(largest, min(1, (len(order) - rank) * ps[i]))
        adjusted[i] = largest
    return adjusted


def chart(rows):
    """SVG: a line a system (name, score, interval or None)."""
    ends = [v for _, score, of in rows for v in (score, *((of["low"], of["high"]) if of else ()))]
    low, high = max(-1, min(ends)), min(1, max(ends))

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
        parts.append(f'<circle cx="{place(score):.1f}" cy="{y}" r="4" fill="#c33"/>')
    return "\n".join(parts + ["</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["steps", "tune", "table"])
    parser.add_argument("work", help="folder of data and runs")
    parser.add_argument("--build", default="build/release", help="folder of tpudist")
    parser.add_argument("--alexnet", help="folder that holds layout/xla/random/{train,valid}")
    parser.add_argument("--sweeps", help="folder of sweep files (default: experiments/sweeps/systems)")
    parser.add_argument("--tables", nargs="+", choices=[t.name for t in TABLES])
    parser.add_argument("--systems", nargs="+", help="these alone")
    parser.add_argument("--scale", type=float, default=1, help="of the training time")
    parser.add_argument("--out", default=str(ROOT / "docs" / "systems.md"))
    arguments = parser.parse_args()
    tool = Tool(arguments)
    {"steps": tool.steps, "tune": tool.tune, "table": tool.table}[arguments.command]()


if __name__ == "__main__":
    main()
