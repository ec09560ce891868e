"""What was measured: a journal that a kill cannot damage, and TpuGraphs' tuning file and NPZ of it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _extension
from .errors import ConfigError, DataError, Error
from .hlo import Changes, Space, State, replaced, state_of

__all__ = ["Journal", "tuning_bytes", "write_results"]

_BEGIN = b'{"measured":'


class Journal:
    """Lines of JSON beside the tuning file, each on disk before the next step. The first says what is measured; then
    come, in any order, `config` (a configuration and what became of it), `round` (times of programs) and `failed` (a
    program that could not be timed). A last line that a kill has cut is dropped. One process at a time. Raises
    ConfigError or DataError if the file is of something else, and leaves that as it is."""

    def __init__(self, path: pathlib.Path, facts: Mapping[str, Any]) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"{path}: another process measures into it") from None
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error
        self._file.seek(0)
        data = self._file.read()
        self._size = data.rfind(b"\n") + 1  # bytes of whole lines
        try:
            lines = [dict(json.loads(line)) for line in data[: self._size].splitlines()]
            known = dict(lines[0]["measured"]) if lines else dict(facts)
            if not data.startswith(_BEGIN[: len(data)]):
                raise ValueError("it does not begin as one")
        except (KeyError, TypeError, ValueError) as error:
            self.close()
            raise DataError(f"{path}: no journal of tpudist measure: {error}") from error
        if known != dict(facts) and not any("config" in line for line in lines):  # of a first try that failed
            known, lines, self._size = dict(facts), [], 0
        if known != dict(facts):
            self.close()
            what = ", ".join(key for key in facts if known.get(key) != facts[key]) or "tpudist"
            raise ConfigError(f"{path}: was measured with another {what}: give another --out, or move it away")
        self._file.truncate(self._size)
        if not lines:
            self._append({"measured": known})
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

    @contextlib.contextmanager
    def begun(self, changes: Changes) -> Iterator[None]:
        """A configuration in work. Raises Error if the process was ended there twice, which a file remembers."""
        file, line = self.path.with_suffix(".begun"), _key(changes) + "\n"
        before = file.read_text() if file.exists() else ""
        if before == 2 * line:
            raise Error("ended the process twice")
        file.write_text(before + line if before == line else line)
        try:
            yield
        finally:
            file.unlink()

    def add_config(self, changes: Changes, **result: Any) -> int:
        """`result`: `program`, the number of the first configuration with an equal program, or `error`."""
        one = {"config": {name: changes[name] for name in sorted(changes)}, **result}
        self._append(one)
        self._known[_key(changes)] = number = len(self.configs)
        self.configs.append(one)
        return number

    def add_round(self, **result: Any) -> None:
        one = {"round": len(self.rounds), **result}
        self._append(one)
        self.rounds.append(one)

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

    def _append(self, line: Mapping[str, Any]) -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
            os.fsync(self._file.fileno())
        except OSError as error:  # a full disk, say
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)
            raise Error(f"{self.path}: {error.strerror}; the same command goes on from here") from error
        self._size += written

    def close(self) -> None:
        self._file.close()


def _key(changes: Mapping[str, Iterable[Iterable[int]]]) -> str:
    return json.dumps({name: state_of(changes[name]) for name in sorted(changes)})


def write_results(
    out: pathlib.Path, module: bytes, space: Space, times: Sequence[tuple[Changes, Sequence[int]]]
) -> None:
    """Writes OUT, a tuning file, and the same as NPZ beside it. `times`: configurations with their nanoseconds, one
    for each round; none for a configuration that failed."""
    with replaced(out) as new:
        new.write_bytes(tuning_bytes(module, space, times))
    with replaced(out.with_suffix(".npz")) as new:
        _extension.write_npz(str(out), str(new))


def tuning_bytes(module: bytes, space: Space, times: Sequence[tuple[Changes, Sequence[int]]]) -> bytes:
    """A ModuleTuningData of TpuGraphs (tpu_graphs/proto/tuning.proto)."""
    parts = [_field(1, module)]
    for changes, nanoseconds in times:
        config = _field(2, _field(1, b"".join(_field(1, _node(state)) for state in space.full(changes))))
        last = b"" if changes else _integer(5, 1)
        runs = [_field(4, _integer(4, ns)) for ns in nanoseconds] or [_integer(3, 1)]
        parts += [_field(3, config + run + last) for run in runs]
    return b"".join([*parts, *(_integer(4, own.node) for own in space.operations)])


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
