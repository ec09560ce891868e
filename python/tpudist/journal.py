"""What was measured: a journal that a kill cannot damage, and TpuGraphs' tuning file and NPZ of it."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _extension
from .errors import ConfigError, DataError
from .hlo import Changes, Space, State, state_of

__all__ = ["Journal", "tuning_bytes", "write_whole"]


class Journal:
    """Lines of JSON beside the tuning file, each on disk before the next step. The first says what is measured; then
    come, in any order, `config` (a configuration and what became of it), `round` (times of programs) and `failed` (a
    program that could not be timed). A last line
    that a kill has cut is dropped. One process at a time. Raises ConfigError if the file is of something else."""

    def __init__(self, path: pathlib.Path, facts: Mapping[str, Any]) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"{path}: another process measures into it") from None
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error
        self._file.seek(0)
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        try:
            lines = [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise DataError(f"{path}: no journal of tpudist measure: {error}") from error
        if not lines:
            self._append({"measured": dict(facts)})
        elif (known := lines[0].get("measured")) != dict(facts):
            differ = [key for key in facts if (known or {}).get(key) != facts[key]]
            what = ", ".join(differ) or "tpudist"
            raise ConfigError(f"{path}: was measured with another {what}: give another --out, or move it away")
        #: by number; 0 is the default
        self.configs: list[dict[str, Any]] = [line for line in lines if "config" in line]
        self.rounds: list[dict[str, Any]] = [line for line in lines if "round" in line]
        for line in lines:
            if "failed" in line:
                self._forget(line["failed"], line["error"])
        self._known = {_key(one["config"]): number for number, one in enumerate(self.configs)}

    def number_of(self, changes: Changes) -> int | None:
        """The number of a configuration, or None."""
        return self._known.get(_key(changes))

    def add_config(self, changes: Changes, **result: Any) -> int:
        """`result`: `program`, the number of the first configuration with an equal program, or `error`."""
        self._known[_key(changes)] = number = len(self.configs)
        self.configs.append({"config": {name: changes[name] for name in sorted(changes)}, **result})
        self._append(self.configs[-1])
        return number

    def add_round(self, **result: Any) -> None:
        self.rounds.append({"round": len(self.rounds), **result})
        self._append(self.rounds[-1])

    def drop(self, program: int, error: str) -> None:
        """All configurations with this program have failed."""
        self._append({"failed": program, "error": error})
        self._forget(program, error)

    def _forget(self, program: int, error: str) -> None:
        for one in self.configs:
            if one.get("program") == program:
                del one["program"]
                one["error"] = error

    def changes(self, number: int) -> Changes:
        """The configuration of this number."""
        return {name: state_of(state) for name, state in self.configs[number]["config"].items()}

    def programs(self) -> list[int]:
        """The programs that can be measured, each by its first configuration."""
        return sorted({one["program"] for one in self.configs if "program" in one})

    def _append(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _key(changes: Mapping[str, Iterable[Iterable[int]]]) -> str:
    return json.dumps({name: state_of(changes[name]) for name in sorted(changes)})


def write_whole(path: pathlib.Path, data: bytes) -> None:
    """Writes a file that is either the old one or the new one at any time."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o666 & ~_umask())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_results(
    out: pathlib.Path, module: bytes, space: Space, rows: Sequence[tuple[Changes, int]], failed: Sequence[Changes]
) -> None:
    """Writes OUT, a tuning file, and the same as NPZ beside it. `rows`: configurations and nanoseconds."""
    write_whole(out, tuning_bytes(module, space, rows, failed))
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as folder:
        npz = pathlib.Path(folder) / out.with_suffix(".npz").name
        _extension.write_npz(str(out), str(npz))
        os.replace(npz, out.with_suffix(".npz"))


def tuning_bytes(
    module: bytes, space: Space, rows: Sequence[tuple[Changes, int]], failed: Sequence[Changes] = ()
) -> bytes:
    """A ModuleTuningData of TpuGraphs (tpu_graphs/proto/tuning.proto)."""
    data = _field(1, module)
    configs: dict[str, bytes] = {}
    for changes, nanoseconds in [*rows, *((changes, -1) for changes in failed)]:
        key = _key(changes)
        if key not in configs:
            nodes = b"".join(_field(1, _node(state)) for state in space.full(changes))
            configs[key] = _field(2, _field(1, nodes))
        run = configs[key] + _field(4, _integer(4, nanoseconds)) if nanoseconds >= 0 else configs[key] + _integer(3, 1)
        data += _field(3, run if changes else run + _integer(5, 1))
    return data + b"".join(_integer(4, own.node) for own in space.operations)


def _node(state: State) -> bytes:
    given = [number for number, tensor in enumerate(state) if tensor]
    return b"".join(
        _field(1, b"".join(_integer(1, d) for d in tensor)) for tensor in state[: max(given, default=-1) + 1]
    )


def _varint(value: int) -> bytes:
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data
