#!/usr/bin/env python3
"""Finds the experiments best_xla, best_nlp and best_tile of experiments/ by `tpudist sweep`.

    table/bin/python scripts/find_best.py WORK xla    # the environment and the WORK of systems_table.py

Networks and settings are chosen on the families of WORK/choose, which no table scores, at the training time
of the table; nothing here reads the families of a table. Three rounds:

1. Every network of SOURCES at three rates, a third of the time (nlp: a sixth), seed 11.
2. The two best networks (nlp: the best one) again, and with each change: as long, seeds 11 and 12.
3. These with the best one to five changes of different keys: all of the time, seeds 13 and 14. The best mean
   is printed, and how far the others are below it, with the standard error over families and seeds.

Candidates of xla train on both of its collections and are compared by the mean. Candidates are timed, and slow
ones take fewer steps. WORK/best keeps what is timed and trained: a search that was stopped goes on. To search
anew, remove that folder.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import systems_table  # noqa: E402

BOTH = "[consumer_to_producer, producer_to_consumer]"
CONFIG = "[config_consumer_to_producer, config_producer_to_consumer]"
ALL = BOTH[:-1] + ", " + CONFIG[1:]


def residual(repeat, *blocks):
    return f"{{layer: residual, repeat: {repeat}, skip: project, blocks: [{', '.join(blocks)}]}}"


def sage(width, repeat, directions="[consumer_to_producer]", more=""):
    return f"{{layer: sage, width: {width}, aggregation: max, repeat: {repeat}, directions: {directions}{more}}}"


def first_place(convolution):
    """The blocks of the 1st place around a convolution."""
    return "{layer: instance_norm}", convolution, "{layer: channel_attention, reduction: 8}"


NORM, ACROSS = "{layer: layer_norm}", "{layer: config_attention}"
SCORED_ACROSS = {"evaluate": "{slate: {configs: 128}}"}  # what ACROSS needs to know
SUM_L2 = "[" + ", ".join([f"{{layer: sage, width: 64, aggregation: sum, directions: {BOTH}, join: shared}}, "
                          "{layer: l2_norm}"] * 3) + "]"
EDGE_MLP = "{layer: edge_mlp, width: 16, hidden: 64, config_width: 16, config_hidden: 64}"
LAYOUT_NETWORKS = {
    "max4": f"[{sage(64, 4)}]",
    "max6": f"[{sage(64, 6)}]",
    "max4_both": f"[{sage(64, 4, BOTH)}]",
    "max4_all": f"[{sage(64, 4, ALL)}]",
    "max3_config": f"[{sage(64, 1)}, {sage(64, 2, CONFIG)}]",
    "max4_wider": f"[{sage(64, 2, BOTH)}, {sage(128, 2, BOTH)}]",
    "max6_residual": f"[{sage(64, 6, BOTH, ', residual: true')}]",
    "residual_norm": f"[{residual(4, NORM, sage(64, 1, BOTH))}]",
    "instance_norm": f"[{residual(3, *first_place(sage(64, 1, BOTH)))}]",
    "sum3_l2": SUM_L2,
    "edge_mlp": f"[{EDGE_MLP}]",
    "sage_edge_mlp": f"[{sage(32, 2, BOTH)}, {EDGE_MLP}]",
    "parallel": f"[{{layer: parallel, branches: [{{blocks: [{sage(64, 3, BOTH)}]}}, {{blocks: [{EDGE_MLP}]}}]}}]",
    "pna": f"[{{layer: pna, width: 32, repeat: 3, directions: {BOTH}}}]",
    "gatv2": f"[{{layer: gatv2, width: 16, heads: 4, repeat: 3, directions: {BOTH}}}]",
    "gcn": f"[{residual(4, NORM, f'{{layer: gcn, width: 64, directions: {BOTH}}}')}]",
    "gine": f"[{{layer: gine, width: 64, repeat: 3, directions: {BOTH}}}]",
    "virtual_node": f"[{sage(64, 2, BOTH)}, {{layer: virtual_node}}, {sage(64, 2, BOTH)}]",
    "joined_again": f"[{sage(64, 2, BOTH)}, {{layer: join_config, width: 64}}, {sage(64, 2, BOTH)}]",
    "self_attention": f"[{sage(64, 2, BOTH)}, {residual(1, NORM, '{layer: self_attention, width: 16, heads: 4}')}]",
    "linear_attention": f"[{sage(64, 2, BOTH)}, {residual(2, NORM, '{layer: linear_attention, width: 16, heads: 4}')}]",
    "across": f"[{sage(64, 1)}, {sage(64, 2, CONFIG)}, {ACROSS}]",
    "across_config": f"[{sage(64, 1)}, {residual(2, *first_place(sage(64, 1, CONFIG)), ACROSS)}]",
    "across_both": f"[{residual(3, *first_place(sage(64, 1, BOTH)), ACROSS)}]",
}
LAYOUT_NETWORKS = {name: {"model.blocks": blocks} | (
    {"batch.slates": "2", "batch.configs": "64"} | SCORED_ACROSS
    if name.startswith("across") else {}) for name, blocks in LAYOUT_NETWORKS.items()}
LAYOUT_BASE = {
    "data.duplicates": "min", "batch.slates": "4", "batch.configs": "40", "batch.order": "shared",
    "model.encoder.dimension_features": "true", "model.readout.scale": "0.03",
    "loss": "{list_mle: {temperature: 0.3}}",
    "optimizer.eps": "1e-6", "optimizer.clip_norm": "100", "optimizer.decay": "{output: 1e-4}",
    "schedule": "{name: multistep, at: [0.6, 0.8], factor: 0.316228}"}
LOSSES = [{"loss": text} for text in (
    "{list_mle: {temperature: 0.1}}", "{list_mle: {temperature: 1}}", "{pairwise_logistic: {sigma: 1}}",
    "{pairwise_logistic: {sigma: 5}}", "{pairwise_hinge: {margin: 0.3}}")]
SCHEDULES = [{"schedule": "{name: cosine, warmup: 0.05}"},
             {"train.average": "{kind: ema, decay: 0.98}"},
             {"optimizer.decay": "{all: 1e-2}"}, {"optimizer.clip_norm": "1"}]
LAYOUT_CHANGES = [
    *LOSSES, *SCHEDULES,
    {"batch.slates": "8", "batch.configs": "20"}, {"batch.slates": "2", "batch.configs": "80"},
    {"batch.slates": "4", "batch.configs": "80"}, {"batch.draw": "graphs"}, {"batch.mix": "balanced"},
    {"batch.mix": "close"}, {"data.duplicates": "mean"},
    {"data.reduce": "{keep: config_neighbours, hops: 3, direction: both, edges: all}"},
    {"model.readout.pool": "config_sum"}, {"model.readout.pool": "mean+max", "model.readout.scale": "1"},
    {"model.readout.scale": "0.1"}, {"model.readout.widths": "[64]"},
    {"model.encoder.node_transform": "standardised"}, {"model.encoder.code_width": "4"},
    {"model.encoder.width": "64"}, {"model.encoder.random_walk": "8"}, {"data.segments": "{by: consecutive, nodes: 100}"},
    {"loss": "{pairwise_hinge: {margin: 0.3, hardest: 0.5}}"},
    {"loss": "{batch_hinge: {margin: 0.3, relative: true}}", "batch.slates": "4", "batch.unit_slates": "4",
     "batch.draw": "graphs"}]
TILE_NETWORKS = {
    "early3": f"[{sage(64, 3, BOTH)}]",
    "early2_norm": f"[{residual(2, NORM, sage(64, 1, BOTH))}]",
    "late3": f"[{sage(64, 3, BOTH)}]",
    "late3_mean": "[" + sage(64, 3, BOTH).replace("max", "mean") + "]",
    "late_wide": f"[{sage(128, 2, BOTH)}]",
    "late_norm": f"[{residual(3, NORM, sage(128, 1, BOTH))}]",
    "late_first": f"[{residual(2, *first_place(sage(128, 1)))}, {{layer: activation, kind: gelu}}]",
    "late_sum_l2": SUM_L2,
    "early_gcn": f"[{residual(3, NORM, f'{{layer: gcn, width: 64, directions: {BOTH}}}')}]",
    "early_across": f"[{residual(2, NORM, sage(64, 1, BOTH))}, {ACROSS}]",
}
TILE_BASE = LAYOUT_BASE | {
    "batch.slates": "8", "batch.configs": "64", "model.encoder.config_transform": "standardised",
    "model.encoder.node_transform": "standardised", "model.readout.scale": "1", "model.readout.pool": "mean+max",
    "loss": "{list_mle: {temperature: 1}}"}
TILE_NETWORKS = {name: {"model.blocks": blocks} | (
    {"model.encoder.join": "late", "model.readout.config_widths": "[128, 128]", "model.readout.widths": "[128, 128]"}
    if name.startswith("late") else {"model.readout.widths": "[64]"}) | (
    SCORED_ACROSS if name.endswith("across") else {})
    for name, blocks in TILE_NETWORKS.items()}
TILE_CHANGES = [
    *LOSSES[2:], *SCHEDULES, {"loss": "{pairwise_hinge: {margin: 1}}"}, {"loss": "{list_mle: {temperature: 0.3}}"},
    {"loss": "{pairwise_logistic: {top: 5, top_weight: 5}}"},
    {"batch.slates": "16", "batch.configs": "32"}, {"batch.slates": "2", "batch.configs": "1024"},
    {"batch.slates": "1", "batch.configs": "16384"}, {"batch.draw": "graphs"},
    {"batch.mix": "fast"}, {"batch.mix": "balanced"},
    {"model.encoder.config_transform": "log"}, {"model.encoder.node_transform": "log"},
    {"model.readout.pool": "sum", "model.readout.scale": "0.03"}, {"model.readout.scale": "0.3"},
    {"model.encoder.width": "128"},
    {"model.readout.config_widths": "[256, 256, 256]", "model.readout.widths": "[256, 256, 256]"},
    {"model.readout.widths": "[256, 256, 256]"}]
# nlp trains twice as long, so it tries only the six best networks of xla's round 1.
NLP_NETWORKS = {name: LAYOUT_NETWORKS[name] for name in (
    "max3_config", "max4_all", "max4", "instance_norm", "max4_both", "residual_norm")}
# Tables, share of their time in rounds 1 and 2, base, networks, changes, and how many networks round 2 changes.
SOURCES = {
    "xla": (("xla_random", "xla_default"), 1 / 3, LAYOUT_BASE, LAYOUT_NETWORKS, LAYOUT_CHANGES, 2),
    "nlp": (("nlp_random",), 1 / 6, LAYOUT_BASE, NLP_NETWORKS, LAYOUT_CHANGES, 1),
    "tile": (("tile",), 1 / 3, TILE_BASE, TILE_NETWORKS, TILE_CHANGES, 2)}
RATES = ("7e-4", "2e-3", "6e-3")


def file_text(name, collection, values):
    """A whole experiment file."""
    tree = {}
    for key, text in {"data.shards": "${env:TPUDIST_DATA,tpudist-data}", "data.collection": collection,
                      "train.steps": "100", **values}.items():
        *path, last = key.split(".")
        of = tree
        for part in path:
            of = of.setdefault(part, {})
        of[last] = text

    def lines(of, indent=""):
        for key, value in of.items():
            if isinstance(value, dict):
                yield f"{indent}{key}:"
                yield from lines(value, indent + "  ")
            else:
                yield f"{indent}{key}: {value}"
    return "\n".join(lines({"name": name, "seed": "{init: 1, order: 1}", **tree, "plan": "auto",
                            "ensemble": "{members: 5, vary: [init, order]}"})) + "\n"


class Search:
    def __init__(self, tool, source):
        names, self.share, self.base, self.networks, self.changes, self.best = SOURCES[source]
        self.tool, self.folder = tool, tool.sweeps
        self.tables = [next(t for t in systems_table.TABLES if t.name == name) for name in names]

    def round(self, number, candidates, share, seeds):
        """Trains candidates {name: values} for a share of the tables' time. {name: its runs of all tables}."""
        first, systems, runs = self.tables[0], {}, {}
        timed, same_time = {}, {}  # rate and schedule change no step's time
        for name, values in candidates.items():
            place = self.folder / f"{name}.yaml"
            place.write_text(file_text(name, first.collection, values))
            if not self.tool.run("config", "show", place, accept=(0, 2)):
                continue  # such as segments, which not every network can train
            systems[name] = systems_table.System(name, place, (first.collection,), "", "")
            costs = str({k: v for k, v in values.items() if not k.startswith(("optimizer.", "schedule"))})
            timed[name] = same_time.setdefault(costs, systems[name])
        for table in self.tables:
            file = self.folder / f"round_{number}_{table.name}.yaml"
            if not file.exists():  # the tables of a source have graphs of one size: timed on the first
                self.tool.time([(system, first) for system in same_time.values()])
                each = {name: {"train.steps": max(4, round(
                    share * table.seconds / self.tool.seconds(timed[name], first)))}
                    for name in systems}
                file.write_text(self.tool.sweep_text(
                    table, f"round_{number}_{table.name}", list(systems.values()), each,
                    f"sweep: {{seeds: [{', '.join(map(str, seeds))}], folds: none}}", self.folder))
            for name, own in self.tool.sweep(file, self.folder / f"sweep_{number}_{table.name}", "choose").items():
                runs[name] = runs.get(name, []) + own
        return runs

    def ranked(self, number, runs, seeds):
        """[(mean score of the tables, name)], best first."""
        table, trained = self.tables[0], len(seeds) * len(self.tables)
        found = sorted(((self.tool.score(own, table, trained), name) for name, own in runs.items()), reverse=True)
        for score, name in found:
            difference, _, error = self.tool.gain(runs[name], runs[found[0][1]], table, trained)
            error_text = f" (SE {error:.4f})" if name != found[0][1] else ""
            print(f"round {number}: {score:.4f} {name} {difference:+.4f}{error_text}", flush=True)
        return found

    def run(self):
        first = {f"{name}_{rate.replace('-', '')}": self.base | network | {"optimizer.lr": rate}
                 for name, network in self.networks.items() for rate in RATES}
        by_network = {}  # each at its best rate
        for _, name in self.ranked(1, self.round(1, first, self.share, (11,)), (11,)):
            by_network.setdefault(name.rpartition("_")[0], name)
        best = list(by_network.values())[:self.best]
        second = {f"{name}_again": first[name] for name in best} | {
            f"{name}_c{i}": first[name] | change for name in best for i, change in enumerate(self.changes)}
        scores = {name: score for score, name in
                  self.ranked(2, self.round(2, second, self.share, (11, 12)), (11, 12))}
        third = {}
        for name in best:
            gains = sorted(((scores[f"{name}_c{i}"] - scores[f"{name}_again"], i)
                            for i in range(len(self.changes)) if f"{name}_c{i}" in scores), reverse=True)
            values, taken = first[name], []
            third[f"{name}_plus0"] = values
            for change in (self.changes[i] for gain, i in gains if gain > 0):
                if len(taken) < 5 and not any(set(change) & set(other) for other in taken):
                    values, taken = values | change, [*taken, change]
                    third[f"{name}_plus{len(taken)}"] = values
        chosen = self.ranked(3, self.round(3, third, 1, (13, 14)), (13, 14))[0][1]
        print((self.folder / f"{chosen}.yaml").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", help="folder of data and runs")
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("--build", default="build/release", help="folder of tpudist")
    words = parser.parse_args()
    tool = systems_table.Tool(words.work, words.build, sweeps=pathlib.Path(words.work) / "best" / words.source)
    tool.make_data()
    Search(tool, words.source).run()


if __name__ == "__main__":
    main()
