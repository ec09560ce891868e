"""Writes tests/data/loading/golden_drawn_nodes.json: the nodes that data.reduce.max_nodes draws, by a second writing of the
random numbers (Philox4x32-10, Lemire's integers) and of both ways to draw. Needs nothing but Python.

    python tests/golden/drawn_nodes.py > tests/data/loading/golden_drawn_nodes.json
"""
from json import dumps
from math import log

WORD = (1 << 32) - 1


def philox(counter, key):
    """Salmon et al. 2011, with the constants of their table 2."""
    for r in range(10):
        k = [(key[0] + r * 0x9E3779B9) & WORD, (key[1] + r * 0xBB67AE85) & WORD]
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ k[0], b & WORD, a >> 32 ^ counter[3] ^ k[1], a & WORD]
    return counter


def words(key):
    """64 bits at a time: the key's stream of numbers."""
    block = 0
    while True:
        four = philox([block & WORD, block >> 32, 0, 0], [key & WORD, key >> 32])
        yield four[0] | four[1] << 32
        yield four[2] | four[3] << 32
        block += 1


def below(stream, n):
    while True:
        product = next(stream) * n
        if product % (1 << 64) >= (1 << 64) % n:
            return product >> 64


def window(nodes, config, most, key):
    starts = [s for s in range(nodes - most + 1) if any(s <= c < s + most for c in config)]
    first = starts[below(words(key), len(starts))]
    return list(range(first, first + most))


def weighted(nodes, config, most, key, weight):
    stream = words(key)
    rank = {}
    for node in range(nodes):
        u = (next(stream) >> 11) / 2**53
        rank[node] = -log(1 - u) / (weight if node in config else 1)
    order = sorted(rank, key=lambda node: (rank[node], node))
    kept = order[:most]
    if not set(kept) & set(config):
        kept = order[: most - 1] + [next(node for node in order if node in config)]
    return sorted(kept)


def draws():
    graphs = [(40, [3, 17, 31]), (25, [24]), (30, list(range(0, 30, 2))), (100, [50])]
    for nodes, config in graphs:
        for most in (1, 7, nodes - 1):
            for key in (0, 1, 0xFEDCBA9876543210):
                head = {"nodes": nodes, "config_nodes": config, "max_nodes": most, "key": key}
                yield {**head, "sample": "window", "config_weight": 1, "drawn": window(nodes, config, most, key)}
                for weight in (1, 8):
                    drawn = weighted(nodes, config, most, key, weight)
                    yield {**head, "sample": "random", "config_weight": weight, "drawn": drawn}


def main():
    print("[" + ",\n ".join(map(dumps, draws())) + "]")


if __name__ == "__main__":
    main()
