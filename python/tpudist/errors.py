"""The errors, by the exit code of the program (docs/command-line.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["ConfigError", "DataError", "Error", "HangError", "Stopped", "error_of", "exit_code_of", "first_line"]


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


def exit_code_of(command: str, work: Callable[[], object]) -> int:
    """Does the work of a command, prints its error as the program does, and returns the exit code."""
    try:
        work()
        return 0
    except Error as error:
        text, code = str(error), error.exit_code
    except OSError as error:
        text, code = f"{error.filename or command}: {error.strerror or error}", 1
    except KeyboardInterrupt:
        text, code = f"{command}: stopped", Stopped.exit_code
    except (MemoryError, RuntimeError) as error:  # the last is jaxlib's
        text, code = f"{command}: {first_line(error)}", 1
    for line in text.splitlines():
        print(f"tpudist: error: {line}", file=sys.stderr)
    return code


def first_line(error: BaseException) -> str:
    """What an exception of XLA says first."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
