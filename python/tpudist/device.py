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

from .errors import ConfigError, DataError, Error, first_line
from .hlo import Program
from .optional import jaxlib, load

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
        self._internal = jaxlib("_jax")
        self._compiler = load("jax._src.compiler", _JAX)
        jax.config.update("jax_enable_x64", True)  # else 64-bit inputs are cut
        load("jax._src.lax.linalg", _JAX).initialize_lapack()  # else calls of LAPACK end the process
        self.program, self.version = program, str(jax.__version__)
        kind, _, place = name.partition(":")
        try:
            self.device = jax.devices(kind or None)[int(place or 0)]
        except (RuntimeError, ValueError, IndexError) as error:
            raise ConfigError(f"--device {name}: jax finds none: {first_line(error)}") from error
        types = [_dtype(element, program.path) for element, _ in program.parameters]
        sizes = [math.prod(own) * one.itemsize for one, (_, own) in zip(types, program.parameters, strict=True)]
        self._require_memory(sum(sizes) + max(sizes, default=0), f"{program.path}: its inputs run")
        given = _arrays(inputs) if inputs else {}
        if unknown := set(given) - set(map(str, range(len(types)))):
            raise DataError(f"{inputs}: {min(unknown)} is none of the {len(types)} inputs; they are named 0, 1, ...")
        rng = np.random.default_rng(0)
        self._inputs = []
        for number, (dtype, (element, dimensions)) in enumerate(zip(types, program.parameters, strict=True)):
            array = given.get(str(number))
            if array is None:
                array = _values(dtype, dimensions, rng)
            elif array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
                array = array.view(dtype)  # an NPZ does not know bfloat16
            if tuple(array.shape) != dimensions or array.dtype != dtype:
                raise DataError(f"{inputs}: input {number} is {array.dtype}{list(array.shape)}, the program needs "
                                f"{element}{list(dimensions)}")
            self._inputs.append(jax.device_put(array, self.device))
        options = jaxlib("_hlo").HloPrintOptions.fingerprint()
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
        self._require_memory(stats.temp_size_in_bytes + stats.output_size_in_bytes, "runs")
        try:
            return [np.asarray(result) for result in self.call(compiled)]
        except Exception as error:
            raise Error(failure(error)) from error

    def _require_memory(self, needed: int, who: str) -> None:
        if needed > (free := self._free_bytes()):
            raise Error(f"{who} out of memory: {needed / 1e9:.3g} GB are needed, {free / 1e9:.3g} GB are free")

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
    except Exception as error:  # NumPy and zipfile have many
        raise DataError(f"{path}: is no NPZ of arrays: {first_line(error)}") from error


def _dtype(element: str, path: pathlib.Path) -> np.dtype[Any]:
    known = {"pred": "bool", "bf16": "bfloat16", "c64": "complex64", "c128": "complex128"}
    words = {"f8": "float8_", "s": "int", "u": "uint", "f": "float"}
    name = known.get(element) or re.sub(r"^(f8(?=e)|[suf](?=\d))", lambda found: words[found[0]], element)
    try:
        return np.dtype(name)  # jax has told NumPy those of ml_dtypes
    except TypeError:
        raise DataError(f"{path}: an input has elements of type {element}, which measure cannot make") from None


def _values(dtype: np.dtype[Any], dimensions: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Small values: integers from 0 to 3, which labels and indices may be, and floats of deviation 0.1."""
    if dtype.kind == "b" or "int" in dtype.name:
        return np.asarray(rng.integers(0, 2 if dtype.kind == "b" else 4, dimensions, np.int8)).astype(dtype)
    values = np.asarray(rng.standard_normal(dimensions, np.float32))
    return np.multiply(values, np.float32(0.1), out=values).astype(dtype, copy=False)


def failure(error: BaseException) -> str:
    """What a program that cannot run is told by."""
    words = "runs out of memory" if "RESOURCE_EXHAUSTED" in str(error) else "does not run"
    return f"{words}: {first_line(error)}"
