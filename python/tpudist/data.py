"""Shards as Python objects: collections, graphs, slates of configurations.

Sizes in the shapes: n nodes, m edges, c configurations of a graph, nc nodes that can be configured, K configurations
of a slate, F features of a configuration (TpuGraphs: 18 for each configurable node of a layout graph, 24 of a tile
graph), S distinct states of all configurable nodes. Your own data may have other widths than 140, 18 and 24.
Arrays of a graph are read-only views, not copies; a slate owns its arrays.
"""

from __future__ import annotations

import os
import pathlib
import threading
import uuid
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from . import _extension
from .errors import ConfigError, DataError
from .optional import load

if TYPE_CHECKING:
    from .slates import SlateDataset

__all__ = ["Graph", "Graphs", "Slate", "collections", "open"]

_Floats = npt.NDArray[np.float32]


class Source:
    """The graphs that one call of the C++ library opens, on first use.

    A forked process shares the graphs with its parent; if configurations are streamed from files, it opens its own. In
    a spawned process the pickled source opens the graphs again, and raises DataError if they have changed.
    """

    _live: weakref.WeakValueDictionary[str, Source] = weakref.WeakValueDictionary()

    def __init__(self, options: dict[str, Any], token: str | None = None) -> None:
        self.options = options
        self._token = token or uuid.uuid4().hex
        self._data: _extension.Dataset | None = None
        self._selection: int | None = None  # the hash of the rows, when it is known
        self._of_parent: list[object] = []
        self._process = 0
        self._arrays: dict[int, dict[str, npt.NDArray[Any]]] = {}
        self._opening = threading.Lock()
        Source._live[self._token] = self

    @property
    def data(self) -> _extension.Dataset:
        data = self._data
        if data is not None and self._is_own(data):
            return data
        with self._opening:  # several threads may come first at the same time
            if self._data is not None and self._is_own(self._data):
                return self._data
            if self._data is not None:
                self._of_parent.append(self._data)  # the parent closes its files
            options = dict(self.options)
            options["reduce"] = _extension.Reduction(**options["reduce"])
            data = _extension.open(**options, threads=_threads())
            self.check_selection(data.selection_hash)
            self._data = data
            self._process = os.getpid()  # last, so that other threads wait for the lock until then
            return data

    def check_selection(self, selection: int | None) -> None:
        """Raises DataError unless the rows with this hash are those opened before, here or in another process."""
        if self._selection is None:
            self._selection = selection
        elif selection not in (None, self._selection):
            shards, collection, split = (self.options[key] for key in ("shards", "collection", "split"))
            raise DataError(f"{shards}: the rows of {collection} {split} changed since they were opened: open anew")

    def _is_own(self, data: _extension.Dataset) -> bool:
        return data.in_memory or self._process == os.getpid()

    def arrays(self, graph: int) -> dict[str, npt.NDArray[Any]]:
        if graph not in self._arrays:
            self._arrays[graph] = self.data.arrays(graph)
        return self._arrays[graph]

    @property
    def is_tile(self) -> bool:
        return str(self.options["collection"]).startswith("tile")

    def __reduce__(self) -> tuple[Any, ...]:
        return _source_of, (self._token, self.options, self._selection)


def _after_fork() -> None:
    for source in Source._live.values():
        source._opening = threading.Lock()  # the parent's may be held by a thread that the child does not have


os.register_at_fork(after_in_child=_after_fork)


def _source_of(token: str, options: dict[str, Any], selection: int | None) -> Source:
    """The source of this process, or a new one, so that a slate from a worker finds its graph."""
    source = Source._live.get(token) or Source(options, token)
    source.check_selection(selection)
    return source


def _absolute(folder: str | os.PathLike[str]) -> str:
    """The absolute path of the folder, valid in another working directory too."""
    return str(pathlib.Path(folder).absolute())


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def source_options(
    shards: str | os.PathLike[str],
    collection: str,
    split: str,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    duplicates: str = "keep",
    reduce: Mapping[str, Any] | None = None,
    cache: str = "auto",
    cache_bytes: int = 2 << 30,
    cache_dir: str = "none",
    cache_size: int = 32 << 30,
    valid: tuple[Sequence[str], Sequence[str]] | None = None,
) -> dict[str, Any]:
    """The arguments of _extension.open; `reduce` stays a dict so that it can be pickled."""
    return {
        "shards": _absolute(shards),
        "collection": collection,
        "split": split,
        "include": list(include),
        "exclude": list(exclude),
        "duplicates": duplicates,
        "reduce": _kept(reduce or {}),
        "cache": cache,
        "cache_bytes": cache_bytes,
        "cache_dir": cache_dir,
        "cache_size": cache_size,
        "valid": None if valid is None else (list(valid[0]), list(valid[1])),
    }


def _kept(reduce: Mapping[str, Any]) -> dict[str, Any]:
    """The part of `data.reduce` that decides which nodes a graph keeps, without how a step draws among them."""
    if reduce.get("max_nodes") and reduce.get("drawn", "seen") == "seen":  # else all are, by trainings too
        raise ConfigError(
            f"data.reduce.max_nodes={reduce['max_nodes']}: nodes are drawn in training and scoring alone, graphs and "
            "slates in Python have all; set it to 0"
        )
    known = ("keep", "hops", "direction", "edges")
    for key in reduce.keys() - {*known, "max_nodes", "drawn", "sample", "config_weight"}:
        raise ConfigError(f"reduce: unknown key {key}; known are {', '.join(known)}")
    return {key: value for key, value in reduce.items() if key in known}


_T = TypeVar("_T")
_S = TypeVar("_S", bound=np.generic)


class _Known(property, Generic[_T]):
    """A fact of the manifest under the name of the property, or under `key`."""

    def __init__(self, doc: str, key: str = "") -> None:
        super().__init__(doc=doc)
        self.key = key

    def __set_name__(self, owner: type, name: str) -> None:
        self.key = self.key or name

    def __get__(self, graph: Any, owner: type | None = None) -> _T:  # type: ignore[override]
        found: Any = self if graph is None else self.read(graph)
        return found  # type: ignore[no-any-return]

    def read(self, graph: Graph) -> Any:
        return graph._entry[self.key]


class _Array(_Known[npt.NDArray[_S]], Generic[_S]):
    """An array of a graph, opened on first use."""

    def read(self, graph: Graph) -> Any:
        return graph._source.arrays(graph._index)[self.key]


class Graph:
    """One graph with its configurations. Until an array is used, only sizes are read."""

    def __init__(self, source: Source, index: int, entry: Mapping[str, Any]) -> None:
        self._source = source
        self._index = index
        self._entry = dict(entry)

    name = _Known[str]("The name: the stem of the NPZ file that it was converted from.")
    split = _Known[str]('"train", "valid" or "test".')
    family = _Known[str]("The model family: folds never split one, unless a fold file does.")
    shard = _Known[str]("The HDF5 file that holds it.")
    nodes = _Known[int]("n, the number of nodes (of the whole graph, also where it is reduced).")
    edges = _Known[int]("m, the number of edges (of the whole graph).")
    configs = _Known[int]("c, the number of measured configurations.")
    distinct_configs = _Known[int]("The number of distinct ones among them.")
    node_features = _Array[np.float32]("[n, 140] float32, as TpuGraphs' node_feat; own data may have other widths.")
    opcodes = _Array[np.uint8]("[n] uint8; all 0 where the collection has no opcodes.")
    edge_index = _Array[np.int32]("[m, 2] int32: (consumer, producer), as in TpuGraphs.")
    config_nodes = _Array[np.int32]("[nc] int32, the nodes that can be configured; empty for tile.")
    runtimes = _Array[np.int64]("[c] int64, measured run times in ns; 0 in test splits.")
    normalizers = _Array[np.int64]("[c] int64, TpuGraphs' config_runtime_normalizers; empty for layout.")
    config_groups = _Array[np.int32](
        "[c] int32: equal numbers are equal configurations; numbered by first occurrence.", "config_group"
    )
    states = _Array[np.float32](
        "[S, 18] float32, the distinct states of each configurable node, node by node; empty for graphs that are not "
        "stored as codes."
    )
    state_offsets = _Array[np.int32](
        "[nc + 1] int32: node j has the states state_offsets[j] .. state_offsets[j + 1] - 1."
    )

    def __len__(self) -> int:
        """The number of rows to draw from: c, or the distinct configurations if a policy merges duplicates."""
        return self._source.data.rows(self._index)

    @property
    def targets(self) -> npt.NDArray[np.float64]:
        """[rows] float64, the values to rank: ns (layout) or run time / normalizer (tile), after the policy for
        duplicates. Smaller is faster."""
        return self._source.data.targets(self._index)

    def slate(self, rows: Sequence[int] | npt.NDArray[np.int64] | slice | None = None) -> Slate:
        """These rows in this order (None: all), read without Python's lock. Raises IndexError beyond the last row."""
        if rows is None or isinstance(rows, slice):
            rows = np.arange(len(self), dtype=np.int64)[rows or slice(None)]
        given = np.asarray(rows)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise TypeError(f"rows are a list of integers, not {given.dtype} of shape {list(given.shape)}")
        numbers = np.array(given, dtype=np.int64, order="C")  # the slate's own
        return Slate(self._source, self._index, numbers, *self._source.data.slate(self._index, numbers))

    def to_pyg(self, configs: Sequence[int] | npt.NDArray[np.int64] | slice | None = None) -> Any:
        """A torch_geometric.data.Data with these rows, see Slate.to_pyg."""
        return self.slate(configs).to_pyg()

    to_data = to_pyg

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {self.nodes} nodes, {self.configs} configurations>"


class Slate:
    """K configurations of one graph."""

    __slots__ = (
        "_features", "_index", "_source", "_table", "configs", "epoch", "number", "rows", "states", "targets", "weight",
    )

    def __init__(
        self,
        source: Source,
        index: int,
        rows: npt.NDArray[np.int64],
        configs: npt.NDArray[np.int64],
        targets: npt.NDArray[np.float64],
        states: npt.NDArray[np.int32],
        table: _Floats | None,
        epoch: int = 0,
        number: int = 0,
        weight: float = 1.0,
    ) -> None:
        self._source = source
        self._index = index
        self._table = table
        self._features: _Floats | None = None
        #: [K] int64, the rows of the graph.
        self.rows = rows
        #: [K] int64, the numbers of the configurations in the shard (the first of equal ones).
        self.configs = configs
        #: [K] float64, ns (layout) or run time / normalizer (tile); smaller is faster.
        self.targets = targets
        #: [K, nc] int32, for each configurable node its row in `table`; tile: [K].
        self.states = states
        #: in an order: the pass over the data, and the slate's number in (graph, epoch).
        self.epoch, self.number = epoch, number
        #: in an order: 0 if a training takes no gradient from this slate, else 1.
        self.weight = weight

    @property
    def graph(self) -> Graph:
        """Its graph."""
        return Graph(self._source, self._index, self._source.data.entry(self._index))

    @property
    def table(self) -> _Floats:
        """[S, F] float32, the states that `states` refers to: the graph's states, or the slate's own."""
        return self._source.arrays(self._index)["states"] if self._table is None else self._table

    @property
    def features(self) -> _Floats:
        """The decoded configurations: [K, nc, 18] float32 (layout) or [K, 24] (tile); made once and kept."""
        if self._features is None:
            self._features = _extension.decode(self.states, self.table)
        return self._features

    def to_torch(self) -> dict[str, Any]:
        """`configs`, `targets`, `states`, `table` and `features` as torch tensors over the same memory."""
        names = ("configs", "targets", "states", "table", "features")
        return {name: tensor(getattr(self, name)) for name in names}

    def to_pyg(self) -> Any:
        """A torch_geometric.data.Data:

        x [n, 140] float32, opcode [n] int64, edge_index [2, m] int64 (row 0 consumers, row 1 producers),
        config_index [nc] int64 the configurable nodes, config [nc, K, 18] float32 (tile: [1, K, 24]),
        y [1, K] float64 the targets, name. PyTorch Geometric's Batch joins such objects if K is equal.
        """
        make = load("torch_geometric.data", "torch_geometric").Data
        arrays = self._source.arrays(self._index)
        config = tensor(self.features)
        return make(
            x=tensor(arrays["node_features"]),
            opcode=tensor(arrays["opcodes"]).long(),
            edge_index=tensor(arrays["edge_index"]).long().t().contiguous(),
            config_index=tensor(arrays["config_nodes"]).long(),
            config=config.unsqueeze(0) if self._source.is_tile else config.transpose(0, 1),
            y=tensor(self.targets).unsqueeze(0),
            name=self._source.data.entry(self._index)["name"],
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __getstate__(self) -> tuple[Any, ...]:
        # One string of bytes with narrow codes: pickling four arrays takes longer than reading them, and a batch of
        # arrays is more than a pipe holds.
        narrow = self.states.astype(np.uint16 if len(self.table) <= 1 << 16 else np.int32)
        packed = b"".join(array.tobytes() for array in (self.rows, self.configs, self.targets, narrow))
        return (
            self._source, self._index, self._table, packed, self.states.shape, narrow.dtype.char, self.epoch,
            self.number, self.weight,
        )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._features = None  # decoded again on use: codes are a twentieth of its size
        self._source, self._index, self._table, packed, shape, narrow, self.epoch, self.number, self.weight = state
        count = shape[0]
        self.rows, self.configs = np.frombuffer(bytearray(packed[: 16 * count]), np.int64).reshape(2, count)
        self.targets = np.frombuffer(bytearray(packed[16 * count : 24 * count]), np.float64)
        self.states = np.frombuffer(packed, narrow, offset=24 * count).astype(np.int32).reshape(shape)

    def __repr__(self) -> str:
        return f"<Slate of {len(self)} configurations of {self.graph.name}>"


class Graphs(Mapping[str, Graph]):
    """The graphs of a split of a collection by name, in the order of their names. Reads only the manifest; the first
    use of an array opens all graphs of its file."""

    def __init__(self, shards: str | os.PathLike[str], collection: str, split: str, **options: Any) -> None:
        self.shards = _absolute(shards)
        self.collection = collection
        self.split = split
        self._options = options
        entries = _extension.graphs(self.shards, collection, split)
        if not entries:
            raise ConfigError(f"the shards in {self.shards} hold no graph of {collection} {split}")
        by_file: dict[str, list[str]] = {}
        for entry in entries:
            by_file.setdefault(entry["shard"], []).append(entry["name"])
        self._graphs: dict[str, Graph] = {}
        sources = {
            file: Source(
                source_options(
                    shards, collection, split, include=[_extension.pattern_of(name) for name in names], **options
                )
            )
            for file, names in by_file.items()
        }
        for entry in entries:
            file = entry["shard"]
            self._graphs[entry["name"]] = Graph(sources[file], by_file[file].index(entry["name"]), entry)

    @property
    def collections(self) -> list[str]:
        """All collections in the folder."""
        return collections(self.shards)

    def __getitem__(self, name: str) -> Graph:
        if name not in self._graphs:
            raise KeyError(f"{self.collection} {self.split} has no graph '{name}'")
        return self._graphs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._graphs)

    def __len__(self) -> int:
        return len(self._graphs)

    def slates(self, **options: Any) -> SlateDataset:
        """The slates of these graphs in the order of a training: SlateDataset(shards, collection, ...). Where
        `options` are silent, those of `open` hold."""
        from .slates import SlateDataset

        return SlateDataset(self.shards, self.collection, split=self.split, **{**self._options, **options})

    def __repr__(self) -> str:
        return f"<Graphs {self.collection} {self.split}: {len(self)} in {self.shards}>"


def collections(shards: str | os.PathLike[str]) -> list[str]:
    """The collections in a folder of shards, such as "layout:xla:random"."""
    return _extension.collections(os.fspath(shards))


def open(  # noqa: A001
    shards: str | os.PathLike[str], collection: str | None = None, split: str = "train", **options: Any
) -> Graphs:
    """The graphs of a split of a collection.

    `collection` may be left out if the folder has only one. `options`: `duplicates` (keep, or one row for equal
    configurations: min, mean, median, first), `reduce` (as `data.reduce` of an experiment), `cache` (auto, memory,
    stream), `cache_bytes`, `cache_dir`. Raises ConfigError and DataError.
    """
    if collection is None:
        found = collections(shards)
        if len(found) != 1:
            raise ConfigError(f"{os.fspath(shards)} holds {len(found)} collections, name one: {', '.join(found)}")
        collection = found[0]
    return Graphs(shards, collection, split, **options)


def tensor(array: npt.NDArray[Any]) -> Any:
    """A torch tensor over the memory of the array; do not write to it if the array is read-only."""
    torch = load("torch", "torch")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        return torch.from_numpy(array)
