#!/usr/bin/env python3
"""The programs of the data set: dumps each before and after layout assignment.

    examples/measured_layouts/programs.py FOLDER [NAME...]

writes FOLDER/NAME.before.pb and FOLDER/NAME.after.pb. Ten families, two networks each, each as inference and as a
training step with plain SGD. Needs jax alone; nothing is run. Sized for a few milliseconds on one core.
"""
import os
import pathlib
import re
import shutil
import sys
import tempfile

DUMPS = tempfile.mkdtemp(prefix="dump-") if __name__ == "__main__" else ""
if DUMPS:  # before jax is loaded
    os.environ["XLA_FLAGS"] = (
        f"--xla_dump_to={DUMPS} --xla_dump_hlo_as_proto --xla_dump_hlo_pass_re=.*layout-assignment.*")

import jax
import jax.numpy as jnp
from jax import lax, nn


def dense(p, name, x):
    return x @ p[name] + p[f"{name}_b"]


def dense_shapes(**layers):
    """{name: (inputs, outputs)} with biases."""
    return {**layers, **{f"{name}_b": shape[-1:] for name, shape in layers.items()}}


def conv(x, kernel, stride=1):
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def unconv(x, kernel):
    return lax.conv_transpose(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def norm(x, axes=-1):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.square(x - mean).mean(axes, keepdims=True) + 1e-3)


def spread(ids, rows):
    """Made inputs have ids of 0 to 3; these become rows all over a table."""
    place = lax.broadcasted_iota(jnp.int32, ids.shape, 0) * 7 + lax.broadcasted_iota(jnp.int32, ids.shape, 1)
    return (ids * 9973 + place * 131) % rows


def mlp_1():
    widths = (256, 512, 512, 512, 256, 10)
    shapes = dense_shapes(**{f"w{i}": pair for i, pair in enumerate(zip(widths, widths[1:]))})

    def f(p, x):
        for i in range(4):
            x = nn.relu(dense(p, f"w{i}", x))
        return dense(p, "w4", x)
    return f, shapes, [(64, 256)]


def mlp_2():
    shapes = dense_shapes(a0=(256, 512), b0=(512, 256), a1=(256, 512), b1=(512, 256), out=(256, 64))

    def f(p, x):
        for i in range(2):
            x = x + dense(p, f"b{i}", nn.gelu(dense(p, f"a{i}", norm(x))))
        return dense(p, "out", norm(x))
    return f, shapes, [(80, 256)]


def cnn_1():
    shapes = {"k0": (3, 3, 3, 16), "k1": (3, 3, 16, 32), "k2": (3, 3, 32, 32), **dense_shapes(out=(32, 10))}

    def f(p, x):
        for i, stride in enumerate((1, 2, 1)):
            x = nn.relu(conv(x, p[f"k{i}"], stride))
        return dense(p, "out", x.mean((1, 2)))
    return f, shapes, [(8, 32, 32, 3)]


def cnn_2():
    shapes = {"k0": (5, 5, 8, 24), "k1": (3, 3, 24, 48), **dense_shapes(hidden=(7 * 7 * 48, 96), out=(96, 10))}

    def f(p, x):
        x = pool(nn.relu(conv(x, p["k0"])))
        x = pool(nn.relu(conv(x, p["k1"])))
        return dense(p, "out", nn.relu(dense(p, "hidden", x.reshape(x.shape[0], -1))))
    return f, shapes, [(4, 28, 28, 8)]


def residual_cnn_1():
    shapes = {f"{name}{i}": (3, 3, 24, 24) for name in "ab" for i in range(2)}
    shapes |= {"stem": (3, 3, 3, 24), **dense_shapes(out=(24, 10))}

    def f(p, x):
        x = conv(x, p["stem"])
        for i in range(2):
            x = x + conv(nn.relu(norm(conv(nn.relu(norm(x, (0, 1, 2))), p[f"a{i}"]), (0, 1, 2))), p[f"b{i}"])
        return dense(p, "out", x.mean((1, 2)))
    return f, shapes, [(6, 16, 16, 3)]


def residual_cnn_2():
    shapes = {"stem": (4, 4, 3, 48), **dense_shapes(out=(48, 20))}
    for i in range(2):
        shapes |= {f"a{i}": (1, 1, 48, 16), f"b{i}": (3, 3, 16, 16), f"c{i}": (1, 1, 16, 48)}

    def f(p, x):
        x = conv(x, p["stem"], 2)
        for i in range(2):
            y = nn.relu(conv(x, p[f"a{i}"]))
            x = norm(x + conv(nn.relu(conv(y, p[f"b{i}"])), p[f"c{i}"]))
        return dense(p, "out", x.max((1, 2)))
    return f, shapes, [(8, 32, 32, 3)]


def unet_1():
    shapes = {"d0": (3, 3, 8, 16), "d1": (3, 3, 16, 32), "m": (3, 3, 32, 32), "u1": (3, 3, 64, 16), "u0": (3, 3, 32, 8)}

    def up(x):
        return jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)

    def f(p, x):
        a = nn.relu(conv(x, p["d0"]))
        b = nn.relu(conv(pool(a), p["d1"]))
        m = nn.relu(conv(pool(b), p["m"]))
        u = nn.relu(conv(jnp.concatenate([up(m), b], -1), p["u1"]))
        return conv(jnp.concatenate([up(u), a], -1), p["u0"])
    return f, shapes, [(2, 32, 32, 8)]


def unet_2():
    shapes = {"d0": (3, 3, 4, 12), "s0": (2, 2, 12, 24), "d1": (3, 3, 24, 24), "s1": (2, 2, 24, 48),
              "t1": (2, 2, 48, 24), "u1": (3, 3, 24, 24), "t0": (2, 2, 24, 12), "u0": (1, 1, 12, 4)}

    def f(p, x):
        a = nn.silu(conv(x, p["d0"]))
        b = nn.silu(conv(conv(a, p["s0"], 2), p["d1"]))
        m = nn.silu(conv(b, p["s1"], 2))
        u = nn.silu(conv(b + unconv(m, p["t1"]), p["u1"]))
        return conv(a + unconv(u, p["t0"]), p["u0"])
    return f, shapes, [(2, 48, 48, 4)]


def attention_1(heads=4):
    shapes = dense_shapes(qkv=(128, 384), proj=(128, 128), up=(128, 256), down=(256, 128))

    def f(p, x):
        batch, length, width = x.shape
        q, k, v = jnp.split(dense(p, "qkv", norm(x)).reshape(batch, length, 3 * heads, -1), 3, 2)
        weights = nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * (width / heads) ** -0.5)
        x = x + dense(p, "proj", jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape))
        return x + dense(p, "down", nn.gelu(dense(p, "up", norm(x))))
    return f, shapes, [(4, 64, 128)]


def attention_2(heads=6):
    shapes = {"q": (96, 96), "kv": (96, 32), "proj": (96, 96), "out": (96, 200)}

    def f(p, x, memory):
        batch, length, width = x.shape
        q = (norm(x) @ p["q"]).reshape(batch, length, heads, -1)
        k, v = jnp.split(memory @ p["kv"], 2, -1)  # of one head, for all
        scores = jnp.einsum("bqhd,bkd->bhqk", q, k)
        mask = jnp.tril(jnp.ones((length, memory.shape[1]), bool))
        weights = nn.softmax(jnp.where(mask, scores, -1e9))
        x = x + jnp.einsum("bhqk,bkd->bqhd", weights, v).reshape(x.shape) @ p["proj"]
        return x @ p["out"]
    return f, shapes, [(4, 48, 96), (4, 64, 96)]


def experts_1():
    shapes = {"gate": (96, 4), "a": (4, 96, 192), "b": (4, 192, 96), **dense_shapes(stem=(64, 96), out=(96, 32))}

    def f(p, x):
        x = dense(p, "stem", x)
        gates = nn.softmax(x @ p["gate"])
        y = nn.relu(jnp.einsum("td,edf->tef", x, p["a"]))
        x = x + jnp.einsum("tef,efd,te->td", y, p["b"], gates)
        return dense(p, "out", x)
    return f, shapes, [(128, 64)]


def experts_2(experts=8, places=32):
    shapes = {"mix": (64, 64), "a": (experts, 64, 128), "b": (experts, 128, 64)}

    def f(p, x, ids):
        tokens = x.shape[0]
        expert = nn.one_hot(spread(ids, experts)[:, 0], experts)
        place = nn.one_hot(jnp.arange(tokens) // experts % places, places)
        sent = jnp.einsum("te,tp->tep", expert, place)
        x = norm(x @ p["mix"])
        y = nn.gelu(jnp.einsum("epd,edf->epf", jnp.einsum("tep,td->epd", sent, x), p["a"]))
        return x + jnp.einsum("tep,epd->td", sent, jnp.einsum("epf,efd->epd", y, p["b"]))
    return f, shapes, [(256, 64), ("ids", 256, 1)]


def recurrent_1():
    shapes = {"x": (96, 384), "h": (128, 384), **dense_shapes(out=(128, 50))}

    def f(p, x):
        def step(h, row):
            a, b = row @ p["x"], h @ p["h"]
            reset, update = nn.sigmoid(a[:, :128] + b[:, :128]), nn.sigmoid(a[:, 128:256] + b[:, 128:256])
            h = update * h + (1 - update) * jnp.tanh(a[:, 256:] + reset * b[:, 256:])
            return h, h
        _, states = lax.scan(step, jnp.zeros((x.shape[1], 128)), x)
        return dense(p, "out", states)
    return f, shapes, [(12, 32, 96)]


def recurrent_2():
    shapes = {"stem": (64, 96), "w": (192, 384), **dense_shapes(hidden=(96, 128), out=(128, 64))}

    def f(p, x):
        def step(state, row):
            h, c = state
            i, o, g, keep = jnp.split(jnp.concatenate([row, h], -1) @ p["w"], 4, -1)
            c = nn.sigmoid(keep) * c + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zero = jnp.zeros((x.shape[0], 96))
        _, found = lax.scan(step, (zero, zero), jnp.einsum("btd,de->tbe", x, p["stem"]))
        return dense(p, "out", nn.relu(dense(p, "hidden", found.transpose(1, 0, 2))))
    return f, shapes, [(32, 16, 64)]


def mixer(p, x):
    x = x + dense(p, "tb", nn.gelu(dense(p, "ta", norm(x).swapaxes(1, 2)))).swapaxes(1, 2)
    return x + dense(p, "cb", nn.gelu(dense(p, "ca", norm(x))))


def mixer_1():
    shapes = dense_shapes(ta=(64, 96), tb=(96, 64), ca=(96, 192), cb=(192, 96), head=(96, 10))
    return lambda p, x: dense(p, "head", mixer(p, x).mean(1)), shapes, [(8, 64, 96)]


def mixer_2():
    shapes = dense_shapes(ta=(49, 64), tb=(64, 49), ca=(64, 128), cb=(128, 64), head=(49 * 64, 10))
    shapes |= {"stem": (4, 4, 3, 64)}

    def f(p, x):
        x = lax.conv_general_dilated(x, p["stem"], (4, 4), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = mixer(p, x.reshape(x.shape[0], 49, 64))
        return dense(p, "head", x.reshape(x.shape[0], -1))
    return f, shapes, [(12, 28, 28, 3)]


def embeddings_1():
    shapes = dense_shapes(low0=(13, 256), low1=(256, 32), top0=(32 + 25, 256), top1=(256, 64), top2=(64, 1))
    shapes |= {f"table{i}": (3000, 32) for i in range(4)}

    def f(p, x, ids):
        low = nn.relu(dense(p, "low1", nn.relu(dense(p, "low0", x))))
        rows = [low, *(p[f"table{i}"][spread(ids, 3000)[:, i]] for i in range(4))]
        rows = jnp.stack(rows, 1)
        pairs = jnp.einsum("bid,bjd->bij", rows, rows).reshape(x.shape[0], -1)
        y = nn.relu(dense(p, "top0", jnp.concatenate([low, pairs], 1)))
        return dense(p, "top2", nn.relu(dense(p, "top1", y)))
    return f, shapes, [(384, 13), ("ids", 384, 4)]


def embeddings_2():
    shapes = {"users": (4000, 48), "items": (6000, 48)}
    shapes |= dense_shapes(u0=(48, 192), u1=(192, 64), i0=(48, 192), i1=(192, 64))

    def f(p, users, items):
        def tower(name, table, ids):
            bag = table[spread(ids, table.shape[0])].mean(1)
            return norm(dense(p, f"{name}1", nn.relu(dense(p, f"{name}0", bag))))
        return tower("u", p["users"], users) @ tower("i", p["items"], items).T
    return f, shapes, [("ids", 256, 8), ("ids", 256, 8)]


def autoencoder_1():
    shapes = dense_shapes(a=(512, 256), b=(256, 64), c=(64, 256), d=(256, 512))

    def f(p, x):
        code = jnp.tanh(dense(p, "b", nn.relu(dense(p, "a", x))))
        return dense(p, "d", nn.relu(dense(p, "c", code))) - x
    return f, shapes, [(96, 512)]


def autoencoder_2():
    shapes = {"k0": (3, 3, 3, 24), "k1": (3, 3, 24, 32), "t1": (3, 3, 32, 24), "t0": (3, 3, 24, 3)}
    shapes |= dense_shapes(code=(8 * 8 * 32, 48), back=(48, 8 * 8 * 32))

    def f(p, x):
        y = nn.relu(conv(nn.relu(conv(x, p["k0"], 2)), p["k1"], 2))
        code = dense(p, "code", y.reshape(x.shape[0], -1))
        y = nn.relu(dense(p, "back", code)).reshape(y.shape)
        return unconv(nn.relu(unconv(y, p["t1"])), p["t0"]) - x
    return f, shapes, [(4, 32, 32, 3)]


NETWORKS = (
    mlp_1, mlp_2, cnn_1, cnn_2, residual_cnn_1, residual_cnn_2, unet_1, unet_2, attention_1, attention_2, experts_1,
    experts_2, recurrent_1, recurrent_2, mixer_1, mixer_2, embeddings_1, embeddings_2, autoencoder_1, autoencoder_2)


def programs():
    """{name: (function, shapes of its arguments)}; the words of a name before the number are the family."""
    found = {}
    for network in NETWORKS:
        forward, shapes, inputs = network()
        arguments = [
            jax.ShapeDtypeStruct(one[1:], jnp.int32) if one[0] == "ids" else jax.ShapeDtypeStruct(one, jnp.float32)
            for one in inputs]
        weights = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}

        def step(p, *x, forward=forward):
            gradient = jax.grad(lambda p: jnp.square(forward(p, *x) - 0.5).mean())(p)
            return jax.tree.map(lambda own, slope: own - 0.1 * slope, p, gradient)

        found[f"{network.__name__}_inference"] = forward, [weights, *arguments]
        found[f"{network.__name__}_train"] = step, [weights, *arguments]
    return found


def dump(name, folder):
    """Compiles one program, and keeps its two dumps."""
    function, shapes = programs()[name]
    function.__name__ = name
    jax.jit(function).lower(*shapes).compile()
    for when in ("before", "after"):
        found = [path for path in pathlib.Path(DUMPS).iterdir()
                 if re.search(rf"\.jit_{name}\..*\.{when}_layout-assignment\..*hlo\.pb$", path.name)]
        shutil.copyfile(max(found, key=lambda path: path.stat().st_mtime_ns), folder / f"{name}.{when}.pb")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for name in sys.argv[2:] or programs():
            dump(name, folder)
    finally:
        shutil.rmtree(DUMPS)


if __name__ == "__main__":
    main()
