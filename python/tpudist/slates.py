"""The slates of a training as a map-style dataset for PyTorch's DataLoader."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _extension
from .data import Graph, Slate, Source, source_options
from .errors import ConfigError
from .optional import load

if TYPE_CHECKING:
    from .experiment import Experiment

__all__ = ["SlateDataset"]


class SlateDataset:
    """Slates in the order of `tpudist train`: item i is slate i % batch of step i // batch. It depends only on the seed
    and the data.

    A map-style dataset: give it to torch.utils.data.DataLoader with shuffle=False, or call `loader`. Workers may be
    forked or spawned; they send codes, which `features` decodes on use. `len(dataset)` is one epoch, or `steps` steps;
    items beyond an epoch belong to the next ones.

        for batch in SlateDataset("tpudist-data", "layout:xla:random", configs=10, batch=4).loader(workers=2):
            for slate in batch: ...

    `folds` K and `hold_out` F: slates of the graphs of fold F, which a member with this fold never trains on, keep
    their positions with weight 0, like the slates that fill up the last batch of an epoch. `member`: the member whose
    own rows to draw (`batch.order: per_member`, `vary: [order]`); None: the rows that all members share. `valid`:
    patterns of (included, excluded) graphs of the validation split, which joins the training split
    (`fold_over: train+valid`). All other arguments have the names of experiment keys (docs/configuration.md).
    """

    def __init__(
        self,
        shards: str | os.PathLike[str],
        collection: str,
        *,
        split: str = "train",
        configs: int = 10,
        batch: int = 4,
        seed: int = 1,
        draw: str = "rows",
        mix: str = "uniform",
        bias: float = 3.0,
        unit: str = "slates",
        duplicates: str = "min",
        member: int | None = None,
        folds: int | None = None,
        fold_seed: int = 1,
        fold_file: str | os.PathLike[str] = "",
        hold_out: int | None = None,
        steps: int | None = None,
        **data: Any,
    ) -> None:
        if unit not in ("slates", "graph"):
            raise ConfigError(f"unit: '{unit}' is none of slates, graph")
        self._source = Source(source_options(shards, collection, split, duplicates=duplicates, **data))
        self._order_options: dict[str, Any] = {
            "seed": seed, "slates": batch, "configs": configs, "draw": draw, "mix": mix, "bias": bias,
            "by_graph": unit == "graph",
        }
        self.batch = batch
        self.steps = steps
        self._member = -1 if member is None else member
        self.folds: dict[str, int] = {}
        self.hold_out = hold_out
        if hold_out is not None and folds is None:
            raise ConfigError(f"hold_out={hold_out} names a fold: give the number of `folds`")
        if folds is not None:
            if split != "train":
                raise ConfigError(f"folds={folds}: folds are of the training split, not of {split}")
            if hold_out is not None and not 0 <= hold_out < folds:
                raise ConfigError(f"hold_out={hold_out}: the folds are 0 to {folds - 1}")
            options = self._source.options
            self.folds = _extension.folds(
                **{name: options[name] for name in ("shards", "collection", "include", "exclude", "valid")},
                folds=folds, seed=fold_seed, file=os.fspath(fold_file),
            )
        self._order: _extension.Order | None = None
        self._process = 0
        self._held_out: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, experiment: Experiment | Mapping[str, Any], member: int = 0, *, steps: int | None = None, **data: Any
    ) -> SlateDataset:
        """The slates that `member` (0: the first) of an experiment, or of a run's `config`, trains on. `data` overrides
        where and how they are read: shards, cache."""
        config = experiment if isinstance(experiment, Mapping) else experiment.config
        where, batch, ensemble = config["data"], config["batch"], config["ensemble"]
        number = ensemble["first_member"] + member
        if not 0 <= member < ensemble["members"]:
            raise ConfigError(f"member {member}: the experiment has {ensemble['members']}")
        for key in ("max_configs", "entropy_filter"):
            if where.get(key):
                raise ConfigError(f"data.{key}={where[key]}: slates in Python are of all rows; set it to 0")
        if not isinstance(where["collection"], str):
            raise ConfigError(
                f"data.collection={where['collection']}: slates in Python are of one collection; name one of these"
            )
        if where.get("segments", {}).get("by", "none") != "none":
            raise ConfigError("data.segments.by: slates in Python are of whole graphs; set it to none")
        own_rows = batch["order"] == "per_member" or "order" in ensemble["vary"]
        holds_out = ensemble["folds"] != "none" and "fold" in ensemble["vary"]
        folds = int(ensemble["folds"]) if holds_out else None
        file = ensemble["fold_file"]
        options = {
            "shards": where["shards"],
            "include": where["include"]["train"],
            "exclude": where["exclude"]["train"],
            "reduce": where["reduce"],
            "cache": where["cache"],
            "cache_bytes": where["cache_bytes"],
            "cache_dir": where["cache_dir"],
            "cache_size": where["cache_size"],
            **data,
        }
        if ensemble["fold_over"] == "train+valid":
            options["valid"] = (where["include"]["valid"], where["exclude"]["valid"])
        return cls(
            collection=where["collection"],
            configs=batch["configs"],
            batch=batch["slates"],
            seed=config["seed"]["order"],
            draw=batch["draw"],
            mix=batch["mix"],
            bias=batch.get("bias", 3.0),
            unit=batch["unit"],
            duplicates=where["duplicates"],
            member=number if own_rows else None,
            folds=folds,
            fold_seed=ensemble["fold_seed"],
            fold_file="" if file == "none" else file,
            hold_out=None if folds is None else number % folds,
            steps=steps,
            **options,
        )

    @property
    def order(self) -> _extension.Order:
        data = self._source.data
        if self._order is None or (self._process != os.getpid() and not data.in_memory):
            order = _extension.order(data, **self._order_options)
            self._held_out = frozenset(
                i for i in range(len(data)) if self.folds and self.folds[data.entry(i)["name"]] == self.hold_out
            )
            self._order = order
            self._process = os.getpid()  # last; until then other threads make their own order
            return order
        return self._order

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch; slates of weight 0 fill up the last one."""
        return self.order.steps_per_epoch

    @property
    def graphs(self) -> list[Graph]:
        """The graphs, indexed by their numbers in the order."""
        data = self._source.data
        return [Graph(self._source, i, data.entry(i)) for i in range(len(data))]

    @property
    def selection_hash(self) -> int:
        """XXH3 of everything that determines the rows: names, source hashes, filters, policy for duplicates."""
        return self._source.data.selection_hash

    def __len__(self) -> int:
        return (self.steps_per_epoch if self.steps is None else self.steps) * self.batch

    def __getitem__(self, item: int) -> Slate:
        if not 0 <= item < len(self):
            raise IndexError(f"no slate {item} of {len(self)}")
        step, index = divmod(item, self.batch)
        graph, epoch, number, weight, rows, slate = self.order.slate(step, index, self._member)
        if graph in self._held_out:
            weight = 0.0
        return Slate(self._source, graph, rows, *slate, epoch, number, weight)

    def __iter__(self) -> Iterator[Slate]:
        return (self[item] for item in range(len(self)))

    def step(self, step: int) -> list[Slate]:
        """The slates of a batch; steps count from 0."""
        return [self[step * self.batch + index] for index in range(self.batch)]

    def loader(self, workers: int = 0, **options: Any) -> Any:
        """A torch DataLoader over lists of `batch` slates, with this many workers; `options` are its other arguments,
        such as multiprocessing_context="spawn". Workers send several batches at once, about 1 MiB by the size of
        the first, since a message costs more than reading its slates; with your own collate_fn or sampler they send
        single batches. Batches are always whole, even with drop_last."""
        make = load("torch.utils.data", "torch").DataLoader
        options.pop("drop_last", None)
        if not workers or options.keys() & {"collate_fn", "sampler"}:
            options.setdefault("collate_fn", _as_list)
            return make(self, batch_size=self.batch, shuffle=False, num_workers=workers, **options)
        first = self.step(0) if len(self) else []
        size = max(1, sum(2 * slate.states.size for slate in first))  # as Slate.__getstate__ sends it
        steps = max(1, min(16, (1 << 20) // size))
        collate = functools.partial(_as_steps, self.batch)
        return _loader_of_steps(make)(
            self, batch_size=self.batch * steps, shuffle=False, num_workers=workers, collate_fn=collate, **options
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_order": None}


def _as_list(slates: Sequence[Slate]) -> list[Slate]:
    return list(slates)


def _as_steps(batch: int, slates: Sequence[Slate]) -> list[list[Slate]]:
    _keep_freed_memory()
    return [list(slates[first : first + batch]) for first in range(0, len(slates), batch)]


@functools.cache
def _keep_freed_memory() -> None:
    """Makes glibc keep freed memory: it returns memory to the system, and page faults double the cost of a message,
    until one larger piece was freed."""
    bytearray(4 << 20)


@functools.cache
def _loader_of_steps(make: Any) -> Any:
    class Loader(make):  # type: ignore[misc]
        """A DataLoader whose messages hold several batches; it yields them one by one."""

        def __iter__(self) -> Iterator[list[Slate]]:
            for steps in super().__iter__():
                yield from steps

        def __len__(self) -> int:
            return len(self.dataset) // int(self.dataset.batch)

    return Loader
