"""The compiled part of the package: data as NumPy arrays. Not for users."""

from typing import Any

import numpy as np
import numpy.typing as npt

version: str

_Slate = tuple[
    npt.NDArray[np.int64],  # configs [K]
    npt.NDArray[np.float64],  # targets [K]
    npt.NDArray[np.int32],  # states [K, nc]; tile: [K]
    npt.NDArray[np.float32] | None,  # the slate's own states [S, F]; None: those of the graph
]

class Reduction:
    def __init__(
        self, keep: str = "none", hops: int = 1, direction: str = "both", edges: str = "touching_config"
    ) -> None: ...

class Dataset:
    @property
    def selection_hash(self) -> int: ...
    @property
    def in_memory(self) -> bool: ...
    @property
    def resident_bytes(self) -> int: ...
    def __len__(self) -> int: ...
    def entry(self, graph: int) -> dict[str, Any]: ...
    def rows(self, graph: int) -> int: ...
    def arrays(self, graph: int) -> dict[str, npt.NDArray[Any]]: ...
    def targets(self, graph: int) -> npt.NDArray[np.float64]: ...
    def configs(self, graph: int) -> npt.NDArray[np.int64]: ...
    def slate(self, graph: int, rows: npt.NDArray[np.int64]) -> _Slate: ...

class Order:
    @property
    def slates_per_epoch(self) -> int: ...
    @property
    def steps_per_epoch(self) -> int: ...
    def slate(
        self, step: int, index: int, member: int
    ) -> tuple[int, int, int, float, npt.NDArray[np.int64], _Slate]: ...

def open(
    *,
    shards: str,
    collection: str,
    split: str,
    include: list[str],
    exclude: list[str],
    duplicates: str,
    reduce: Reduction,
    cache: str,
    cache_bytes: int,
    cache_dir: str,
    cache_size: int,
    valid: tuple[list[str], list[str]] | None,
    threads: int,
) -> Dataset: ...
def order(
    data: Dataset, *, seed: int, slates: int, configs: int, draw: str, mix: str, bias: float, by_graph: bool
) -> Order: ...
def collections(shards: str) -> list[str]: ...
def graphs(shards: str, collection: str, split: str) -> list[dict[str, Any]]: ...
def folds(
    *,
    shards: str,
    collection: str,
    include: list[str],
    exclude: list[str],
    folds: int,
    seed: int,
    file: str,
    valid: tuple[list[str], list[str]] | None,
) -> dict[str, int]: ...
def predictions(path: str) -> list[dict[str, Any]]: ...
def decode(states: npt.NDArray[np.int32], table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]: ...
def pattern_of(name: str) -> str: ...
def yaml(text: str, name: str) -> Any: ...
