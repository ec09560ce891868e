"""The errors, by the exit code of the program (docs/command-line.md)."""

from __future__ import annotations

__all__ = ["ConfigError", "DataError", "Error", "HangError", "Stopped", "error_of"]


class Error(RuntimeError):
    """tpudist failed; the text says in one line what, where and what to do. Base of all errors here."""

    exit_code: int = 1


class ConfigError(Error):
    """A wrong argument, command line or experiment file."""

    exit_code = 2


class DataError(Error):
    """Input data that violate their schema; the text names file, array and index."""

    exit_code = 3


class Stopped(Error):
    """A training stopped on request or at its time limit, with a checkpoint: `Run.resume` continues it."""

    exit_code = 85


class HangError(Error):
    """A training that finished nothing for `dist.timeout`, or lost a rank: `Run.resume` continues it."""

    exit_code = 86


def error_of(exit_code: int, text: str) -> Error:
    """The exception of an exit code."""
    for kind in (ConfigError, DataError, Stopped, HangError):
        if kind.exit_code == exit_code:
            return kind(text)
    error = Error(text)
    error.exit_code = exit_code
    return error
