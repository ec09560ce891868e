"""What against_pyg.py measures: graphs, networks and sizes of slates."""
import dataclasses
import pathlib
import subprocess

RESNET = ("layout:xla:default", "resnet_main_10904")
ALEXNET = ("layout:xla:random", "alexnet_train_batch_32")
# One graph each of `tpudist synth --graphs 1,0,0`: 5,659 and 14,105 nodes.
SYNTHETIC_NLP = ("layout:nlp:random", "attention_bano.4x2.fp16")
SYNTHETIC_XLA = ("layout:xla:random", "conv_sela.4x2.fp16")
SYNTHETIC_CONFIGS = 400

# Sum over the layers of the columns that go in and come out, see PRESETS in pyg_network.py.
COLUMNS = {"latenciaga_xla": 1568, "latenciaga_nlp": 5696}


@dataclasses.dataclass(frozen=True)
class Case:
    graph: tuple  # collection, name
    model: str = "latenciaga_xla"
    configs: int = 10
    slates: int = 1
    members: int = 1
    plan: str = "auto"
    mode: str = "train"
    unit: str = "slates"  # graph: the slates of a batch share a plan
    split: str = "train"  # infer: whose runs are scored

    def peer_bytes(self, nodes):
        """Memory of a step of the peer, by what was measured on graphs of 3,163 nodes."""
        return 0.65e9 + 18.0 * COLUMNS[self.model] * nodes * self.configs * self.slates

    def title(self):
        work = f"{self.slates} x {self.configs}"
        if self.mode != "train":
            work = "score a run" if self.mode == "infer" else f"{work} until tau"
        if self.plan != "auto":
            work += f", plan={self.plan}"
        if self.unit != "slates":
            work += ", merged"
        if self.split != "train":
            work += f" of the {self.split} split"
        if self.members > 1:
            work += f", {self.members} members"
        return " | ".join([self.graph[1][:18], self.model.removeprefix("latenciaga_"), work])


def sizes(graph, model, configs):
    return [Case(graph, model, k) for k in configs]


CASES = {
    "resnet-xla": sizes(RESNET, "latenciaga_xla", (4, 10, 32, 91)),
    "resnet-nlp": sizes(RESNET, "latenciaga_nlp", (4, 10, 32, 91)),
    "alexnet-xla": sizes(ALEXNET, "latenciaga_xla", (4, 10, 32, 100)),
    "alexnet-nlp": sizes(ALEXNET, "latenciaga_nlp", (4, 10, 32, 100)),
    # The 2nd place's batches, and five members of them: the peer trains one after the other.
    "batch": [dataclasses.replace(case, unit=unit) for unit in ("slates", "graph") for case in (
        Case(ALEXNET, configs=4, slates=10), Case(ALEXNET, configs=4, slates=10, members=5),
        Case(RESNET, configs=4, slates=10))],
    "dense": [Case(graph, configs=k, plan="dense") for graph in (RESNET, ALEXNET)
              for k in (4, 10, 32)],
    "infer": [Case(ALEXNET, mode="infer"), Case(ALEXNET, mode="infer", split="valid"),
              Case(RESNET, mode="infer")],
    "infer-nlp": [Case(RESNET, "latenciaga_nlp", mode="infer")],
    "synthetic": sizes(SYNTHETIC_NLP, "latenciaga_nlp", (4, 10, 32, 100))
                 + sizes(SYNTHETIC_XLA, "latenciaga_xla", (4, 10, 32, 100)),
    "tau": [Case(ALEXNET, configs=4, slates=10, mode="tau", unit="graph")],
}


class Inputs:
    """NPZ files and shards of the graphs, made in `work`; `npz` as `tpudist convert` takes it."""

    def __init__(self, tpudist, npz, work):
        self.tpudist, self.npz, self.work = tpudist, pathlib.Path(npz), pathlib.Path(work)

    def path(self, graph, split="train"):
        """The NPZ file of a graph, None where there is none."""
        if graph in (SYNTHETIC_NLP, SYNTHETIC_XLA):
            root = self._synthetic(graph[0])
        else:
            root = self.npz
        path = root / graph[0].replace(":", "/") / split / f"{graph[1]}.npz"
        return path if path.exists() else None

    def shards(self, graph, split="train"):
        """Shards of this graph alone, with its valid split if it has one, or with that split in the
        place of the train split."""
        root = self.work / (graph[1] + ("-valid" if split == "valid" else ""))
        for source, place in [("train", "train"), ("valid", "valid")] if split == "train" else [
                ("valid", "train")]:
            path = self.path(graph, source)
            link = root / "npz" / graph[0].replace(":", "/") / place / f"{graph[1]}.npz"
            if path and not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path.absolute())
        if not (root / "shards").exists():
            self._run("convert", root / "npz", root / "shards")
        return root / "shards"

    def _synthetic(self, collection):
        preset = collection.split(":")[1]
        root = self.work / f"synthetic-{preset}"
        if not root.exists():
            self._run("synth", root, "--preset", preset, "--collections", collection,
                      "--graphs", "1,0,0", "--configs", SYNTHETIC_CONFIGS)
        return root

    def _run(self, *command):
        subprocess.run([self.tpudist, *map(str, command)], check=True, capture_output=True)
