"""The program `tpudist`, started as a child process."""

from __future__ import annotations

import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from .errors import Error, error_of

__all__ = ["program", "run_program"]

# What Open MPI's mpirun prints after a rank has ended.
_MPIRUN = ("-----", "MPI_ABORT was invoked", "mpirun ", "Primary job", "with errorcode", "NOTE: invoking")
_MPIRUN_LOG = re.compile(r"\[[^\s\]]+:\d+\] ")  # Open MPI's own log: [host:pid] ...


def program() -> str:
    """The program: $TPUDIST_PROGRAM, else `tpudist` beside this Python, else on the PATH."""
    named = os.environ.get("TPUDIST_PROGRAM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise Error(f"TPUDIST_PROGRAM={named}: no such program")
        return found
    beside = pathlib.Path(sys.executable).parent / "tpudist"  # where pip puts the wheel's program
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("tpudist")
    if found is None:
        raise Error("the program tpudist was not found: put it on the PATH, or name it by TPUDIST_PROGRAM")
    return found


def error_from(exit_code: int, log: str) -> Error:
    """The exception for a program that failed, with the text of its errors or the end of its log."""
    lines = log.strip().splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith("tpudist: error")), None)
    if first is None:
        ended = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        return error_of(exit_code, "\n".join([f"tpudist {ended}", *lines[-20:]]))
    # mpirun's own words follow an empty line, or begin like _MPIRUN or _MPIRUN_LOG.
    own = itertools.takewhile(str.strip, lines[first:])
    text = "\n".join(line for line in own if not line.startswith(_MPIRUN) and not _MPIRUN_LOG.match(line))
    return error_of(exit_code, re.sub(r"^tpudist: error(?: \(rank \d+\))?: ", "", text, flags=re.MULTILINE).strip())


def run_program(arguments: Sequence[str | os.PathLike[str]], *, quiet: bool = True) -> str:
    """Runs `tpudist ARGUMENTS` and returns its standard output. Raises the Error of its exit code. Unless `quiet`,
    passes its log on to standard error line by line."""
    command = [program(), *(os.fspath(word) for word in arguments), *(["--quiet"] if quiet else [])]
    with (
        tempfile.TemporaryFile("w+", errors="replace") as output,  # no pipe: only one is read at a time
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, text=True, errors="replace"
        ) as child,
    ):
        assert child.stderr is not None
        log = ""
        try:
            for line in child.stderr:
                log += line
                if not quiet:
                    sys.stderr.write(line)
            child.wait()
        except BaseException:
            child.kill()
            raise
        if child.returncode != 0:
            raise error_from(child.returncode, log)
        output.seek(0)
        return output.read()
