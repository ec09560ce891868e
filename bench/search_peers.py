#!/usr/bin/env python3
"""Search by trained ensembles against other ways to find a fast configuration: the tables and the picture of
docs/search.md.

    bench/search_peers.py [--build build/release] [--work search-peers] [--evaluations 10000]
    bench/search_peers.py --picture

Makes synthetic programs of 24 families: 16 graphs of eight to train on, 5 to validate, 24 graphs of eight others to
search. Trains experiments/demo.yaml five times with five members, runs build/release/bench/search_peers, writes the
part of docs/search.md between the marks, and draws docs/search.svg from its table. Finished work in the folder stays.
--picture only draws.
"""
import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess

METHODS = {  # in the order of the table: name, colour
    "search": ("search with the model", "#c33"),
    "search, mean alone": ("the same without pessimism", "#e93"),
    "ranked": ("random candidates, ranked by the model", "#26a"),
    "surrogate": ("boosted trees on own measurements", "#393"),
    "coordinate": ("coordinate descent on measurements", "#838"),
    "annealing": ("annealing on measurements", "#a73"),
    "genetic": ("genetic from the default", "#555"),
    "random": ("random", "#999"),
}
BEGIN, END = "<!-- made by bench/search_peers.py -->\n", "<!-- end -->\n"


def add_slowdowns(data):
    """To the times of each graph: how much longer they are than the shortest time known."""
    for graph in data["graphs"]:
        best = min(min(run) for runs in graph["times"].values() for run in runs)
        graph["slowdown"] = {method: [[time / best - 1 for time in run] for run in runs]
                             for method, runs in graph["times"].items()}
        graph["default"] = graph["default"] / best - 1
    return data


def slowdowns(data, method, budget):
    at = data["budgets"].index(budget)
    return [run[at] for graph in data["graphs"] for run in graph["slowdown"][method]]


def mean_of_graphs(data, method, budget):
    """One value a graph: the mean over runs."""
    at = data["budgets"].index(budget)
    return [statistics.mean(run[at] for run in graph["slowdown"][method]) for graph in data["graphs"]]


def percent(share):
    return f"{100 * share:.2f}"


def sign_test(better, worse):
    """Two-sided p of the sign test."""
    count = better + worse
    return min(1, 2 * sum(math.comb(count, k) for k in range(max(better, worse), count + 1)) / 2**count)


def claim(text, holds, numbers, p=0):
    verdict = "**fails**" if not holds else "holds" if p < 0.05 else "holds for the mean; not shown for other graphs"
    return f"| {text} | {numbers} | {verdict} |\n"


def tables(data):
    budgets = data["budgets"]
    text = "| slowdown in %: median (mean; worst) after | " + " | ".join(f"{b:,}" for b in budgets) + " |\n"
    text += "|---|" + "---|" * len(budgets) + "\n"
    for method, (name, _) in METHODS.items():
        cells = []
        for budget in budgets:
            own = slowdowns(data, method, budget)
            cells.append(f"{percent(statistics.median(own))} ({percent(statistics.mean(own))}; {percent(max(own))})")
        text += f"| {name} | " + " | ".join(cells) + " |\n"
    default = [graph["default"] for graph in data["graphs"]]
    text += (f"\nThe default is {percent(statistics.median(default))} % slower than the best known (median; worst "
             f"{percent(max(default))}).\n\n| claim | mean slowdown, %; better on graphs; p of the sign test | |\n|---|---|---|\n")
    ten, most = 10, budgets[-1]

    def against(method, budget):
        mine, other = mean_of_graphs(data, "search", ten), mean_of_graphs(data, method, budget)
        better = sum(m < o for m, o in zip(mine, other))
        worse = sum(m > o for m, o in zip(mine, other))
        p = sign_test(better, worse)
        return (statistics.mean(mine) < statistics.mean(other),
                f"{percent(statistics.mean(mine))} against {percent(statistics.mean(other))}; "
                f"{better} of {len(mine)}, worse on {worse}; p {p:.2g}", p)

    text += claim(f"search with 10 measurements beats ranked candidates with 10, both with {data['evaluations']:,} "
                  "evaluations", *against("ranked", ten))
    text += claim("search with 10 beats random with 1,000", *against("random", most))
    text += claim("aim: search with 10 beats the genetic search with 1,000", *against("genetic", most))
    middle = statistics.median(slowdowns(data, "search", ten))
    within = statistics.mean(s <= 0.02 for s in slowdowns(data, "search", ten))
    text += claim("aim: search with 10 is within 2 % of the best known (median)", middle <= 0.02,
                  f"{percent(middle)}; {100 * within:.0f} % of searches")
    return text


def means_of(table):
    """The budgets, and the mean slowdown of each method at each, from the table of the page."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    budgets = rows[0][1:]
    names = {name: method for method, (name, _) in METHODS.items()}
    return budgets, {names[row[0]]: [float(re.search(r"\(([\d.]+);", cell)[1]) / 100 for cell in row[1:]]
                     for row in rows if row[0] in names}


def picture(budgets, means):
    left, right, top, bottom, width, height = 60, 470, 14, 300, 760, 345
    least, most = 2e-4, 0.5
    xs = [left + (right - left) * i / (len(budgets) - 1) for i in range(len(budgets))]

    def y(value):
        return bottom - (bottom - top) * math.log(min(max(value, least), most) / least) / math.log(most / least)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="#fff"/>']
    for value in (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3):
        parts.append(f'<path d="M{left} {y(value):.1f}H{right}" stroke="#ddd"/><text x="{left - 6}" '
                     f'y="{y(value) + 4:.1f}" fill="#444" text-anchor="end">{100 * value:g} %</text>')
    for x, budget in zip(xs, budgets):
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" fill="#444" text-anchor="middle">{budget}</text>')
    parts.append(f'<text x="{(left + right) / 2}" y="{bottom + 36}" fill="#444" text-anchor="middle">measured '
                 'configurations; mean slowdown against the best known</text>')
    at = top - 16
    for place, method in sorted((y(values[-1]), method) for method, values in means.items()):
        name, colour = METHODS[method]
        line = "L".join(f"{x:.1f} {y(value):.1f}" for x, value in zip(xs, means[method]))
        thick = 3 if method == "search" else 1.5
        parts.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="{thick}"/>')
        at = max(at + 15, place)  # labels that do not overlap
        parts.append(f'<text x="{right + 10}" y="{at + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def measure(options):
    """What build/release/bench/search_peers prints."""
    work, tpudist = options.work, options.build / "tpudist"

    def call(*words):
        subprocess.run([str(word) for word in words], check=True)

    if not (work / "shards").exists():
        call(tpudist, "synth", work / "npz", "--preset", "demo", "--collections", "layout:xla:random", "--graphs",
             "16,5,24")
        call(tpudist, "convert", work / "npz", work / "shards")
    runs = [work / f"run-{seed}" for seed in range(1, options.runs + 1)]
    for seed, run in enumerate(runs, 1):
        if not (run / "predictions.h5").exists():
            call(tpudist, "train", "experiments/demo.yaml", f"data.shards={work / 'shards'}", f"seed.init={seed}",
                 f"seed.order={seed}", "--run-dir", run, "--resume")
    found = work / f"peers-{options.evaluations}.json"
    if not found.exists():
        text = subprocess.run([str(options.build / "bench/search_peers"), str(options.evaluations),
                               *map(str, runs)], check=True, stdout=subprocess.PIPE).stdout
        found.write_bytes(text)
    return add_slowdowns(json.loads(found.read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("search-peers"))
    parser.add_argument("--evaluations", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--picture", action="store_true", help="only draw the table of the page")
    options = parser.parse_args()
    page = pathlib.Path("docs/search.md")
    before, rest = page.read_text().split(BEGIN)
    made, after = rest.split(END)
    if not options.picture:
        made = "\n" + tables(measure(options)) + "\n"
        page.write_text(before + BEGIN + made + END + after)
        print(made)
    pathlib.Path("docs/search.svg").write_text(picture(*means_of(made)))


if __name__ == "__main__":
    main()
