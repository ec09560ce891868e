"""Programs of XLA as text: layouts are forced in it, and found again in what the compiler made of it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _extension
from .errors import ConfigError, DataError, Error, exit_code_of, first_line
from .optional import jaxlib

__all__ = ["Changes", "Program", "Space", "State", "copied", "kept", "replaced", "state_of"]

#: Dimensions of output and operands of an operation, minor to major; () leaves a tensor to the compiler.
State = tuple[tuple[int, ...], ...]
#: A configuration: the operations whose state is not the default one. {} is the default.
Changes = Mapping[str, State]

_INSTRUCTION = re.compile(r"(\s+)(ROOT )?%(\S+) = (.+?) ([a-z][\w-]*)\((.*)")
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\](?:\{([\d,]*)[^}]*\})?")
_OUTSIDE = ("infeed", "outfeed", "recv", "send")  # what is not in the module


def _dimensions(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(",") if one)


@dataclasses.dataclass(frozen=True)
class Operation:
    """A configurable operation, see _extension.layouts."""

    name: str  # as configurations write it; with its computation before it if others have the same name
    opcode: str
    node: int
    states: tuple[State, ...]
    default: State


@dataclasses.dataclass(frozen=True)
class Space:
    """The layouts of a program, and the configurations that were asked for."""

    operations: tuple[Operation, ...]
    groups: tuple[tuple[int, ...], ...]  # numbers of operations that change together
    configs: tuple[Changes, ...]

    @classmethod
    def read(cls, module: pathlib.Path, default: pathlib.Path, configs: str) -> Space:
        """`configs` as in `tpudist rank --configs`. Raises DataError and ConfigError."""
        found = _extension.layouts(module=str(module), default=str(default), configs=configs)
        operations = tuple(
            Operation(name, opcode, node, tuple(map(state_of, states)), state_of(states[standard]))
            for name, opcode, node, states, standard in found["operations"]
        )
        changes = [
            {own.name: own.states[state] for own, state in zip(operations, config, strict=True)
             if own.states[state] != own.default}
            for config in found["configs"]
        ]
        return cls(operations, tuple(map(tuple, found["groups"])), tuple(changes))

    def choices(self) -> list[tuple[int, ...]]:
        """The groups with several states; each operation by itself if groups leave fewer than 1,000 configurations."""
        groups, each = ([own for own in some if len(self.operations[own[0]].states) > 1]
                        for some in (self.groups, [(number,) for number in range(len(self.operations))]))
        return groups if math.prod(len(self.operations[own[0]].states) for own in groups) >= 1000 else each

    def full(self, changes: Changes) -> list[State]:
        """The state of every operation."""
        return [changes.get(own.name, own.default) for own in self.operations]

    def layouts(self, changes: Changes) -> dict[str, list[list[int]]]:
        """The configuration in the form of `tpudist rank --configs FILE`."""
        states = zip(self.operations, self.full(changes), strict=True)
        return {own.name: [list(tensor) for tensor in state] for own, state in states}


def state_of(tensors: Iterable[Iterable[int]]) -> State:
    """A state of lists, as JSON has it."""
    return tuple(tuple(dimensions) for dimensions in tensors)


@dataclasses.dataclass(frozen=True)
class Constraint:
    """A layout that was forced on a tensor: of an operation the output (0) or an operand (1, 2)."""

    operation: str
    tensor: int
    dimensions: tuple[int, ...]
    layout: tuple[int, ...]  # of all dimensions, minor to major
    names: tuple[str, ...]  # of instructions that may hold the tensor

    def __str__(self) -> str:
        part = "output" if self.tensor == 0 else f"operand {self.tensor}"
        return f"{self.operation} {part} {{{','.join(map(str, self.layout))}}}"


@dataclasses.dataclass
class _Instruction:
    line: int
    name: str
    shape: str
    opcode: str
    operands: list[str]
    inputs: str  # operands and attributes, as written

    @property
    def dimensions(self) -> tuple[int, ...]:
        array = _ARRAY.match(self.shape)
        return _dimensions(array[2]) if array else ()


class Program:
    """A module before layout assignment. Raises DataError for a file that is none."""

    def __init__(self, path: pathlib.Path) -> None:
        self._hlo = hlo = jaxlib("_hlo")
        self.path = path
        self.proto, module = _read(path)
        options = hlo.HloPrintOptions()
        options.print_large_constants = True
        options.print_metadata = False
        self.name: str = module.name
        text = module.to_string(options)
        for key in ("num_partitions", "replica_count"):
            found = re.search(rf"^HloModule .*\b{key}=(\d+)", text)
            if found and int(found[1]) > 1:
                raise DataError(f"{path}: is a program for several devices ({key} {found[1]}), measure runs on one")
        # Inputs that the program may overwrite could not be given to it twice.
        text, self.donates = re.subn(r"(?:input_output_alias|buffer_donor)=\{ .*? \}, ", "", text, count=2)
        self._lines: list[str] = text.splitlines()
        self._instructions: dict[str, _Instruction] = {}
        self.parameters: list[tuple[str, tuple[int, ...]]] = []  # element type and dimensions
        self._parse()

    def _parse(self) -> None:
        entry, parameters = False, {}
        for number, line in enumerate(self._lines):
            found = _INSTRUCTION.match(line)
            if not found:
                entry = line.startswith("ENTRY ") or (entry and not line.startswith("%"))
                continue
            _, _, name, shape, opcode, inputs = found.groups()
            if opcode in _OUTSIDE or re.search(r'custom_call_target="\w*callback"', inputs):
                raise DataError(f"{self.path}: {name} ({opcode}) speaks with the program that made the module, so "
                                "nothing else can run it")
            operands = re.findall(r"%([^\s,)]+)", inputs.partition(")")[0])
            self._instructions[name] = _Instruction(number, name, shape, opcode, operands, inputs)
            self._lines[number] = f'{line}, metadata={{op_name="{name}"}}'  # tells the instruction apart later
            if entry and opcode == "parameter":
                parameters[int(inputs.partition(")")[0])] = shape
        for _, shape in sorted(parameters.items()):
            array = _ARRAY.fullmatch(shape)
            if not array:
                raise DataError(f"{self.path}: the input {shape} is no array")
            self.parameters.append((array[1], _dimensions(array[2])))

    def constraints(self, space: Space, changes: Changes) -> list[Constraint]:
        """The layouts to force: those that differ from the default's, since a forced layout keeps the compiler from
        fusing. A state orders some dimensions; the others are major, in their default order."""
        found = []
        for operation in space.operations:
            state = changes.get(operation.name, operation.default)
            name = operation.name.rpartition("/")[2]
            own = self._instructions[name]
            for tensor, minor in enumerate(state):
                if minor == operation.default[tensor]:
                    continue
                holder = name if tensor == 0 else own.operands[tensor - 1]
                dimensions = self._instructions[holder].dimensions
                if not minor or len(dimensions) < 2:
                    continue
                layout = (*minor, *(d for d in reversed(range(len(dimensions))) if d not in minor))
                names = (holder, f"{name}:{tensor}", name)[: 2 if tensor == 0 else 3]
                found.append(Constraint(name, tensor, dimensions, layout, names))
        return found

    def with_layouts(self, constraints: Sequence[Constraint]) -> str:
        """The text of the program with these layouts forced."""
        lines = dict(enumerate(self._lines))
        by_operation: dict[str, list[Constraint]] = {}
        for constraint in constraints:
            by_operation.setdefault(constraint.operation, []).append(constraint)
        for name, own_constraints in by_operation.items():
            own = self._instructions[name]
            line, before, after = lines[own.line], "", ""
            for constraint in own_constraints:
                layout = "{" + ",".join(map(str, constraint.layout)) + "}"
                if constraint.tensor == 0:
                    raw = f"{name}.raw.tpudist"
                    line = line.replace(f"%{name} = ", f"%{raw} = ", 1)
                    root = "ROOT " if "ROOT %" in line.split(" = ")[0] else ""
                    line = line.replace("ROOT ", "", 1) if root else line
                    after = f"\n  {root}%{name} = {_custom_call(own.shape, layout, raw, f'{name}:0')}"
                else:
                    operand = own.operands[constraint.tensor - 1]
                    forced = f"{name}.{constraint.tensor}.tpudist"
                    shape = self._instructions[operand].shape
                    call = _custom_call(shape, layout, operand, f"{name}:{constraint.tensor}")
                    before += f"  %{forced} = {call}\n"
                    line = _with_operand(line, own.opcode, constraint.tensor - 1, forced)
            lines[own.line] = before + line + after
        return "\n".join(lines.values())

    def to_mlir(self, text: str) -> Any:
        """The text in the form that jaxlib compiles."""
        module = self._hlo.hlo_module_from_text(text)
        computation = self._hlo.XlaComputation(module.as_serialized_hlo_module_proto())
        return jaxlib("_jax").mlir.xla_computation_to_mlir_module(computation)

def _custom_call(shape: str, layout: str, operand: str, tag: str) -> str:
    array = _ARRAY.match(shape)
    assert array is not None
    forced = f"{array[1]}[{array[2]}]{layout}"
    return (
        f'{forced} custom-call(%{operand}), custom_call_target="LayoutConstraint", '
        f'operand_layout_constraints={{{forced}}}, metadata={{op_name="{tag}"}}'
    )


def _with_operand(line: str, opcode: str, index: int, name: str) -> str:
    head, inner = line.split(f" {opcode}(", 1)
    operands, tail = inner.split(")", 1)
    names = operands.split(", ")
    names[index] = f"%{name}"
    return f"{head} {opcode}({', '.join(names)}){tail}"


def kept(constraints: Sequence[Constraint], optimised: str) -> list[bool]:
    """Whether the optimised module has the tensor of each constraint in memory with the forced layout. Tensors inside
    of fusions are in no memory."""
    fused = set(re.findall(r" fusion\(.*?calls=%([^\s,]+)", optimised))
    held: set[tuple[str, tuple[int, ...], tuple[int, ...]]] = set()
    computation = ""
    for line in optimised.splitlines():
        found = _INSTRUCTION.match(line)
        if not found:
            opened = re.match(r"(?:ENTRY )?%(\S+) \(", line)
            computation = opened[1] if opened else computation
            continue
        name = re.search(r'op_name="([^"]*)"', line)
        if computation in fused or not name:
            continue
        for array in _ARRAY.finditer(found[4]):  # several of a tuple
            held.add((name[1], _dimensions(array[2]), _dimensions(array[3] or "")))
    return [any((name, own.dimensions, own.layout) in held for name in own.names) for own in constraints]


def copied(optimised: str) -> dict[str, int]:
    """For the journal: the copies of the optimised module, inside of fusions too, and their bytes."""
    shapes = re.findall(r" = (\w+)\[([\d,]*)\]\S* copy\(", optimised)
    bits = [int((re.search(r"\d+", element) or "8")[0]) for element, _ in shapes]  # "8": pred has no number
    sizes = [math.prod(_dimensions(one)) * size // 8 for size, (_, one) in zip(bits, shapes, strict=True)]
    return {"copies": len(sizes), "copied_bytes": sum(sizes)}


def _read(path: pathlib.Path) -> tuple[bytes, Any]:
    """An HloModuleProto, and its HloModule."""
    hlo = jaxlib("_hlo")
    try:
        proto = _module_bytes(path, hlo)
        return proto, hlo.HloModule.from_serialized_hlo_module_proto(proto)
    except (IndexError, RuntimeError, ValueError) as error:
        raise DataError(f"{path}: XLA does not read it as a module: {first_line(error)}") from error


def _module_bytes(path: pathlib.Path, hlo: Any) -> bytes:
    """The HloModuleProto in an HloProto (of a dump) or a tuning file, or the file itself, or of text."""
    data = path.read_bytes()
    if data.startswith(b"HloModule "):
        return bytes(hlo.hlo_module_from_text(data.decode()).as_serialized_hlo_module_proto())
    tag, at = _varint(data, 0)
    if tag != 0x0A:
        raise ValueError("it does not begin as one")
    size, at = _varint(data, at)
    inner = data[at : at + size]
    return inner if inner.startswith(b"\n") else data  # an HloModuleProto begins with its name


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


@contextlib.contextmanager
def replaced(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A new file to write: at any time the path is the old one or the whole new one."""
    new = path.with_name(f".{path.name}.new")
    try:
        yield new
        with new.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            new.unlink()


def main(words: Sequence[str]) -> int:
    """`python -m tpudist.hlo TEXT PROTO`: makes the proto of any module from its text, by XLA's own parser."""
    def work() -> None:
        if len(words) != 2:
            raise ConfigError("python -m tpudist.hlo TEXT PROTO: give two files")
        proto, _ = _read(pathlib.Path(words[0]))
        with replaced(pathlib.Path(words[1])) as new:
            new.write_bytes(proto)

    return exit_code_of("tpudist.hlo", work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
