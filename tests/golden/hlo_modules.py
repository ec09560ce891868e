"""Makes small programs with JAX on a CPU and the arrays of their graphs, read by the rules of docs/data.md and not by
tpudist's code. Needs jax[cpu] and NumPy.

    python tests/golden/hlo_modules.py tests/data/hlo/modules

For each NAME: NAME.pb (HloModuleProto, or HloProto from a dump), and a line of golden.txt: NAME, nodes, edges,
CRC-32 of node_feat (float32), node_opcode (uint8), edge_index (int64), node_splits.
"""
import glob
import os
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy as np

OPCODES = (
    "abs add add-dependency after-all all-reduce all-to-all atan2 batch-norm-grad batch-norm-inference "
    "batch-norm-training bitcast bitcast-convert broadcast call ceil cholesky clamp collective-permute "
    "count-leading-zeros compare complex concatenate conditional constant convert convolution copy copy-done copy-start "
    "cosine custom-call divide domain dot dynamic-slice dynamic-update-slice exponential exponential-minus-one fft floor "
    "fusion gather get-dimension-size set-dimension-size get-tuple-element imag infeed iota is-finite log log-plus-one "
    "and not or xor map maximum minimum multiply negate outfeed pad parameter partition-id popcnt power real recv "
    "recv-done reduce reduce-precision reduce-window remainder replica-id reshape reverse rng rng-get-and-update-state "
    "rng-bit-generator round-nearest-afz rsqrt scatter select select-and-scatter send send-done shift-left "
    "shift-right-arithmetic shift-right-logical sign sine slice sort sqrt subtract tanh trace transpose "
    "triangular-solve tuple tuple-select while cbrt all-gather collective-permute-start collective-permute-done logistic "
    "dynamic-reshape all-reduce-start all-reduce-done reduce-scatter all-gather-start all-gather-done opt-barrier "
    "async-start async-update async-done round-nearest-even stochastic-convert").split()
TYPES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 15, 18, 13, 14, 17]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Message:
    """Field number -> the values in order: integers, or bytes."""

    def __init__(self, data):
        self.fields, at = {}, 0
        while at < len(data):
            key, at = varint(data, at)
            if key & 7 == 0:
                value, at = varint(data, at)
            elif key & 7 == 2:
                size, at = varint(data, at)
                value, at = data[at:at + size], at + size
            else:
                size = 8 if key & 7 == 1 else 4
                value, at = data[at:at + size], at + size
            self.fields.setdefault(key >> 3, []).append(value)

    def integer(self, field):
        return signed(self.fields.get(field, [0])[-1])

    def integers(self, field):
        out = []
        for value in self.fields.get(field, []):
            if isinstance(value, int):
                out.append(signed(value))
                continue
            at = 0
            while at < len(value):
                one, at = varint(value, at)
                out.append(signed(one))
        return out

    def text(self, field):
        return self.fields.get(field, [b""])[-1].decode()

    def message(self, field):
        return Message(self.fields.get(field, [b""])[-1])

    def messages(self, field):
        return [Message(value) for value in self.fields.get(field, [])]


def cut(values, count):
    return (list(values) + [0] * count)[:count]


def measured(values, count):
    total, product = 0, 1
    for value in values:
        total, product = total + value, product * value
    wrap = lambda x: signed(x & ((1 << 64) - 1))
    return cut(values, count) + [wrap(total), wrap(product)]


def row(instruction, root):
    shape = instruction.message(3)
    kind = shape.integer(2)
    window = instruction.message(15).messages(1)
    conv = instruction.message(16)
    out = [int(instruction.integer(35) == root), 0] + [int(kind == t) for t in TYPES]
    out += measured(shape.integers(3), 6) + [len(shape.fields.get(4, [])), instruction.integer(9)]
    out += cut(instruction.integers(14), 6)
    for field in range(1, 7):
        out += measured([d.integer(field) for d in window], 6)
    reversal = [int(d.integer(7) != 0) for d in window]
    out += cut(reversal, 6) + [sum(reversal), len(reversal) - sum(reversal)]
    out += [conv.integer(7), conv.integer(8)] + cut(conv.integers(11), 4)
    out += [conv.integer(3), conv.integer(4)] + cut(conv.integers(6), 4)
    out += [conv.integer(9), conv.integer(10), instruction.integer(50), instruction.integer(58)]
    slices = instruction.messages(17)
    for field in (1, 3, 2):
        out += measured([s.integer(field) for s in slices], 2)
    out += measured(instruction.integers(20), 2)
    pads = instruction.message(21).messages(1)
    for field in (1, 2):
        out += measured([p.integer(field) for p in pads], 2)
    out += [int(instruction.integer(60) != 0)] + cut(shape.message(5).integers(1), 6)
    assert len(out) == 140
    return out


def arrays(module):
    computations = module.messages(3)
    number, root_of, features, opcodes, names = {}, {}, [], [], []
    splits = [0]
    for computation in computations:
        for instruction in computation.messages(2):
            number[instruction.integer(35)] = len(number)
    for computation in computations:
        root_of[computation.integer(5)] = number[computation.integer(6)]
    edges = []
    for computation in computations:
        for instruction in computation.messages(2):
            user = len(features)
            features.append(row(instruction, computation.integer(6)))
            opcode = instruction.text(2)
            opcodes.append(OPCODES.index(opcode) + 1 if opcode in OPCODES else 0)
            edges += [(user, n) for n in {number[i] for i in instruction.integers(36)}]
            edges += [(user, root_of[i]) for i in instruction.integers(38)]
        if any(part in computation.text(1) for part in ("cluster", "while", "cond")):
            splits.append(len(features))
    if splits[-1] != len(features) or len(splits) == 1:
        splits.append(len(features))
    return (np.array(features, np.float32), np.array(opcodes, np.uint8),
            np.array(sorted(edges), np.int64).reshape(-1, 2), np.array(splits, np.int64))


def programs():
    import jax
    import jax.numpy as jnp
    from jax import lax

    x, m, image = jnp.ones((8, 16)), jnp.ones((16, 16)), jnp.ones((4, 12, 12, 8))
    kernel, ids = jnp.ones((3, 3, 8, 16)), jnp.arange(6, dtype=jnp.int32)
    conv = lambda a, k, **kw: lax.conv_general_dilated(
        a, k, **{"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC"), **kw})
    loss = lambda a, k: jnp.sum(jnp.tanh(conv(a, k, window_strides=(2, 2))) ** 2)
    pool = lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return {
        "scan": (lambda a, w: lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), a, None, length=5), (x, m)),
        "while": (lambda a: lax.while_loop(lambda s: s[1] < 9, lambda s: (s[0] * 2, s[1] + 1), (a, 0)), (x,)),
        "cond": (lambda a: lax.cond(a.sum() > 0, lambda b: b.T @ b, lambda b: b.T @ (-b), a), (x,)),
        "switch": (lambda a: lax.switch(ids[2], [jnp.sin, jnp.cos, jnp.exp], a), (x,)),
        "sort": (lambda a: jnp.argsort(a, axis=0), (x,)),
        "sort_pair": (lambda a: lax.sort((a, a.T.reshape(8, 16)), dimension=1, is_stable=False), (x,)),
        "fft": (lambda a: jnp.abs(jnp.fft.rfft(a)), (x,)),
        "gather": (lambda a: a[ids % 8, ids], (x,)),
        "scatter": (lambda a: a.at[ids].add(2.0), (x,)),
        "pad": (lambda a: lax.pad(a, 0.0, ((1, 2, 0), (-3, 4, 1))), (x,)),
        "slices": (lambda a: (a[1:7:2, 3:], lax.dynamic_slice(a, (1, 2), (3, 4)),
                              lax.dynamic_update_slice(a, a[:2, :3], (ids[1], ids[2]))), (x,)),
        "convolution": (conv, (image, kernel)),
        "convolution_grad": (jax.grad(loss, (0, 1)), (image, kernel)),
        "convolution_groups": (lambda a, k: conv(a, k, feature_group_count=4, rhs_dilation=(2, 1)),
                               (image, jnp.ones((3, 3, 2, 16)))),
        "convolution_transposed": (lambda a, k: conv(a, k, lhs_dilation=(2, 2), padding=((2, 1), (-1, 3))),
                                   (image, kernel)),
        "pool_grad": (jax.grad(lambda a: pool(a).sum()), (image,)),
        "attention": (lambda a, b: jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", a, b)),
                      (jnp.ones((2, 3, 4, 8)), jnp.ones((2, 3, 5, 8)))),
        "types": (lambda a: (a.astype(jnp.bfloat16), a.astype(jnp.int8), a > 0, lax.complex(a, a),
                             lax.bitcast_convert_type(a, jnp.uint32), a.astype(jnp.float8_e4m3fn)), (x,)),
        "random": (lambda a: a + jax.random.normal(jax.random.key(3), a.shape), (x,)),
        "linear_algebra": (lambda a: (jnp.linalg.cholesky(a), jnp.cumsum(a, 1), jnp.flip(a, 1), lax.top_k(a, 3)), (m,)),
    }


def layout_pair(folder):
    """A training step before and after layout assignment, from XLA's own dump: two HloProtos."""
    program = """
import jax, jax.numpy as jnp
from jax import lax
def f(a, k, w):
    y = lax.conv_general_dilated(a, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return (jnp.tanh(y).reshape(4, -1) @ w).sum()
jax.jit(jax.grad(f, (1, 2)))(jnp.ones((4, 6, 6, 3)), jnp.ones((3, 3, 3, 8)), jnp.ones((288, 10)))
"""
    with tempfile.TemporaryDirectory() as dump:
        flags = f"--xla_dump_to={dump} --xla_dump_hlo_as_proto " \
                "--xla_dump_hlo_pass_re=.*layout-assignment.*"
        subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "XLA_FLAGS": flags})
        for when in ("before", "after"):
            found = [f for f in glob.glob(f"{dump}/*jit_f*{when}_layout-assignment*.hlo.pb")]
            pb = max(found, key=os.path.getsize)
            yield f"layouts_{when}", pathlib.Path(pb).read_bytes()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    import jax

    lines, made = [], []
    for name, (function, inputs) in programs().items():
        hlo = jax.jit(function).lower(*inputs).compiler_ir("hlo")
        made.append((name, hlo.as_serialized_hlo_module_proto(), False))
    made += [(*pair, True) for pair in layout_pair(folder)]
    for name, proto, wrapped in made:
        (folder / f"{name}.pb").write_bytes(proto)
        module = Message(proto).message(1) if wrapped else Message(proto)
        got = arrays(module)
        crc = " ".join(f"{zlib.crc32(a.tobytes()):08x}" for a in got)
        lines.append(f"{name} {len(got[1])} {len(got[2])} {crc}")
    (folder / "golden.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
