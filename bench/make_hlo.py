#!/usr/bin/env python3
"""Makes modules of HLO to measure with: one of many nodes (text), and one with a large constant (proto).

    bench/make_hlo.py layers large.txt 43615
    bench/make_hlo.py constant constant.pb 1000000000
"""
import sys


def layers(nodes):
    """Repeated layers: a convolution, a dot, two reshapes, elementwise operations and a reduction in each."""
    lines, entry = ["HloModule layers", "sum {", "  a = f32[] parameter(0)", "  b = f32[] parameter(1)",
                    "  ROOT c = f32[] add(a, b)", "}", "ENTRY main {"], []
    add = lambda name, text: entry.append(f"  {name} = {text}")
    shape, last, layer, parameters = "f32[8,16,16,32]", "x", 0, 1
    add("x", f"{shape} parameter(0)")
    add("zero", "f32[] constant(0)")
    while len(entry) + 3 + 35 < nodes:
        n, label = layer, ("b01f_01io->b01f", "b10f_10io->b10f", "0b1f_01io->0b1f")[layer % 3]
        flat, weight = (("f32[2048,32]", "f32[32,32]"), ("f32[1024,64]", "f32[64,64]"), ("f32[128,512]", "f32[512,512]"))[layer % 3]
        add(f"k{n}", f"f32[3,3,32,32] parameter({parameters})")
        add(f"w{n}", f"{weight} parameter({parameters + 1})")
        parameters += 2
        add(f"conv{n}", f"{shape} convolution({last}, k{n}), window={{size=3x3 pad=1_1x1_1}}, dim_labels={label}")
        add(f"z{n}", f"{shape} broadcast(zero), dimensions={{}}")
        add(f"m{n}", f"{shape} maximum(conv{n}, z{n})")
        add(f"r{n}", f"{flat} reshape(m{n})")
        add(f"d{n}", f"{flat} dot(r{n}, w{n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        add(f"g{n}", f"{shape} reshape(d{n})")
        add(f"v{n}", f"f32[32] reduce(g{n}, zero), dimensions={{0,1,2}}, to_apply=sum")
        add(f"b{n}", f"{shape} broadcast(v{n}), dimensions={{3}}")
        add(f"e{n}_0", f"{shape} subtract(g{n}, b{n})")
        for i in range(24):
            kind = ("exponential", "tanh", "negate", "multiply", "add", "log")[i % 6]
            operands = f"e{n}_{i}" + (f", m{n}" if kind in ("multiply", "add") else "")
            add(f"e{n}_{i + 1}", f"{shape} {kind}({operands})")
        last, layer = f"e{n}_24", layer + 1
    while len(entry) + 3 < nodes:
        add(f"f{len(entry)}", f"{shape} negate({last})")
        last = f"f{len(entry) - 1}"
    entry[-1] = entry[-1].replace("  ", "  ROOT ", 1)
    return "\n".join([*lines, *entry, "}"]) + "\n"


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def write_constant(path, size):
    """HloModuleProto: reshape(constant), whose literal has `size` bytes (f32s, field 8 of LiteralProto)."""
    def shape(*dimensions):
        return field(3, field(2, 11) + b"".join(field(3, d) for d in dimensions))
    count = size // 4
    literal_head = varint(8 << 3 | 2) + varint(4 * count)
    literal_size = len(literal_head) + 4 * count
    head = field(1, b"big") + field(2, b"constant") + shape(count) + field(35, 1) + varint(8 << 3 | 2) + varint(literal_size) + literal_head
    constant_size = len(head) + 4 * count
    reshape = field(2, field(1, b"r") + field(2, b"reshape") + shape(1, count) + field(35, 2) + field(36, 1))
    begin = field(1, b"main") + varint(2 << 3 | 2) + varint(constant_size) + head
    end = reshape + field(5, 1) + field(6, 2)
    with open(path, "wb") as file:
        file.write(field(1, b"constant") + varint(3 << 3 | 2) + varint(len(begin) + 4 * count + len(end)) + begin)
        block = bytes(range(1, 251)) * 4000
        left = 4 * count
        while left:
            left -= file.write(block[:min(left, len(block))])
        file.write(end + field(6, 1))


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("layers", "constant"):
        sys.exit(__doc__)
    if sys.argv[1] == "layers":
        with open(sys.argv[2], "w") as file:
            file.write(layers(int(sys.argv[3])))
    else:
        write_constant(sys.argv[2], int(sys.argv[3]))
