"""Programs on a device of jax: compiled, run and compared."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import os
import pathlib
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import ConfigError, DataError, Error
from .hlo import Program, first_line
from .optional import load

__all__ = ["Compiled", "Device", "failure"]

_JAX = "'tpudist[measure]'"


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A program on the device."""

    executable: Any
    fingerprint: str  # equal for equal optimised programs
    optimised: str


class Device:
    """A device of jax, with inputs for one program."""

    def __init__(self, program: Program, name: str, inputs: pathlib.Path | None) -> None:
        jax = load("jax", _JAX)
        self._internal = load("jaxlib._jax", _JAX)
        self._compiler = load("jax._src.compiler", _JAX)
        jax.config.update("jax_enable_x64", True)  # else 64-bit inputs are cut
        self.program, self.version = program, str(jax.__version__)
        kind, _, place = name.partition(":")
        try:
            self.device = jax.devices(kind or None)[int(place or 0)]
        except (RuntimeError, ValueError, IndexError) as error:
            raise ConfigError(f"--device {name}: jax finds none: {first_line(error)}") from error
        given = _arrays(inputs) if inputs else {}
        rng = np.random.default_rng(0)
        self._inputs = []
        for number, (element, dimensions) in enumerate(program.parameters):
            array = given[str(number)] if str(number) in given else _values(element, dimensions, rng, program.path)
            if tuple(array.shape) != dimensions or array.dtype != _dtype(element, program.path):
                raise DataError(f"{inputs}: input {number} is {array.dtype}{list(array.shape)}, the program needs "
                                f"{element}{list(dimensions)}")
            self._inputs.append(jax.device_put(array, self.device))
        options = load("jaxlib._hlo", _JAX).HloPrintOptions.fingerprint()
        options.print_large_constants = options.print_backend_config = True
        self._options = options

    def compile(self, text: str) -> Compiled:
        """Raises Error with the compiler's words."""
        try:
            mlir = self.program.to_mlir(text)
            options = self._compiler.get_compile_options(num_replicas=1, num_partitions=1)
            executable = self.device.client.compile_and_load(
                mlir, self._internal.DeviceList((self.device,)), options
            )
            module = executable.hlo_modules()[0]
            plain = module.to_string(self._options)
        except Exception as error:  # jaxlib has no one type for them
            raise Error(f"does not compile: {first_line(error)}") from error
        return Compiled(executable, hashlib.sha256(plain.encode()).hexdigest()[:16], module.to_string())

    def call(self, compiled: Compiled) -> list[Any]:
        """Runs it once and waits for the results."""
        results = compiled.executable.execute_sharded(self._inputs).disassemble_into_single_device_arrays()
        for (result,) in results:
            result.block_until_ready()
        return [result for (result,) in results]

    def results(self, compiled: Compiled) -> list[npt.NDArray[Any]]:
        """Raises Error if it runs out of memory, or fails."""
        stats = compiled.executable.get_compiled_memory_stats()
        needed, free = stats.temp_size_in_bytes + stats.output_size_in_bytes, self._free_bytes()
        if needed > free:
            raise Error(f"runs out of memory: it needs {needed / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free")
        try:
            return [np.asarray(result) for result in self.call(compiled)]
        except Exception as error:
            raise Error(failure(error)) from error

    def _free_bytes(self) -> float:
        if self.device.platform == "cpu":
            with contextlib.suppress(OSError):
                found = re.search(r"MemAvailable:\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text())
                return int(found[1]) * 1024 if found else math.inf
        stats = self.device.memory_stats() or {}
        return float(stats["bytes_limit"] - stats["bytes_in_use"]) if "bytes_limit" in stats else math.inf

    def facts(self) -> dict[str, Any]:
        """What times depend on."""
        kind = str(self.device.device_kind)
        if self.device.platform == "cpu":
            with contextlib.suppress(OSError):
                found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
                kind = f"{found[1] if found else kind}, {len(os.sched_getaffinity(0))} cores"
        return {"device": f"{self.device.platform}: {kind}", "jax": self.version}


def _arrays(path: pathlib.Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with np.load(path) as file:
            return dict(file)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: is no NPZ of arrays: {first_line(error)}") from error


def _dtype(element: str, path: pathlib.Path) -> np.dtype[Any]:
    known = {"pred": "bool", "bf16": "bfloat16", "c64": "complex64", "c128": "complex128"}
    words = {"s": "int", "u": "uint", "f": "float"}
    name = known.get(element) or re.sub(r"^[suf](?=\d)", lambda found: words[found[0]], element)
    name = {"f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}.get(element, name)
    try:
        return np.dtype(name)
    except TypeError:
        found = getattr(load("ml_dtypes", _JAX), name, None)
        if found is None:
            raise DataError(f"{path}: an input has elements of type {element}, which measure cannot make") from None
        dtype: np.dtype[Any] = np.dtype(found)
        return dtype


def _values(element: str, dimensions: tuple[int, ...], rng: np.random.Generator, path: pathlib.Path) -> Any:
    """Small values: integers from 0 to 3, which labels and indices may be, and floats of deviation 0.1."""
    dtype = _dtype(element, path)
    if element[0] in "su" or element == "pred":
        return rng.integers(0, 2 if element == "pred" else 4, dimensions).astype(dtype)
    return np.asarray(rng.normal(0, 0.1, dimensions)).astype(dtype)


def failure(error: BaseException) -> str:
    """What a program that cannot run is told by."""
    words = "runs out of memory" if "RESOURCE_EXHAUSTED" in str(error) else "does not run"
    return f"{words}: {first_line(error)}"
