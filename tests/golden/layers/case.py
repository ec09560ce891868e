"""What all golden cases share: graphs, a fixed encoder, and the file format (see README.md)."""
import copy
import json

import torch
from safetensors.torch import save_file

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

NODES, CONFIGS, WIDTH = 12, 3, 8

# (consumer, producer), as in TpuGraphs. Node 5 consumes node 4 twice; node 11 stands alone. Nodes 4 to
# 7 repeat 0 to 3 but for the parallel edge.
EDGES = torch.tensor([(1, 0), (2, 1), (3, 2), (3, 1), (5, 4), (5, 4), (6, 5), (7, 6), (7, 5),
                      (8, 3), (8, 7), (9, 8), (10, 8), (10, 9)])
NODE_CLASS = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 5, 0])  # equal numbers: equal inputs
CONFIG_NODES = torch.tensor([1, 3, 5, 7])
CODES = torch.tensor([[0, 1, 0, 1], [0, 2, 0, 1], [2, 1, 0, 1]])  # [configs, configurable nodes]
U_TO_V = EDGES.T  # from the consumer to its producer
V_TO_U = EDGES.T.flip(0)


def config_edges():
    """[2, edges] (consumer, producer) between configurable nodes with a path between them that meets no
    other configurable node."""
    configurable, found, operands = set(CONFIG_NODES.tolist()), set(), {}
    for consumer, producer in EDGES.tolist():
        operands.setdefault(consumer, set()).add(producer)
    for start in configurable:
        open_nodes, seen = [start], set()
        while open_nodes:
            for producer in operands.get(open_nodes.pop(), ()):
                if producer in configurable:
                    found.add((start, producer))
                elif producer not in seen:
                    seen.add(producer)
                    open_nodes.append(producer)
    return torch.tensor(sorted(found)).T


CONFIG_EDGES = config_edges()


def rounded(tensor):
    """The nearest float32 values, so that programs in both precisions start from the same numbers."""
    return tensor.float().double()


def random(generator, *shape, scale=1.0):
    return rounded(scale * torch.randn(*shape, generator=generator))


def generator_of(name):
    """Random numbers of a case are a function of its name."""
    seed = sum((i + 1) * byte for i, byte in enumerate(name.encode()))
    return torch.Generator().manual_seed(seed)


def encode(nodes, states):
    """The states before the layer, x [configs, nodes, C]: a node's own row of `nodes`, and where it is
    configurable the row of `states` that its code chooses on top."""
    x = nodes.expand(CONFIGS, *nodes.shape).clone()
    x[:, CONFIG_NODES] = x[:, CONFIG_NODES] + states[CODES]
    return x


def save(folder, name, tensors, **facts):
    """Writes one case; `facts` go to the metadata as JSON. One key, so that the bytes are the same in
    every run."""
    metadata = {"case": json.dumps({"name": name, **facts})}
    save_file({key: value.detach().contiguous() for key, value in tensors.items()},
              folder / f"{name}.safetensors", metadata)


def randomise(module, generator, scale=1.0):
    """Gives every parameter new numbers: uniform in +-scale / sqrt(fan_in) for matrices, in +-0.3 for
    biases, and around their first value for others (norms, temperatures), which is a constant."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = 2 * torch.rand(parameter.shape, generator=generator) - 1
            if parameter.dim() >= 2:
                parameter.copy_(rounded(noise * scale * parameter.shape[-1] ** -0.5))
            elif name.split(".")[-1] == "bias":
                parameter.copy_(rounded(0.3 * noise))
            else:
                parameter.copy_(rounded(parameter.double() + 0.3 * noise))


def gradients(module, output, coefficients, inputs):
    """d sum(output * coefficients) / d parameter and input, by name."""
    named = dict(module.named_parameters())
    names, tensors = list(named) + list(inputs), list(named.values()) + list(inputs.values())
    loss = (output * coefficients).sum()
    return {f"gradients.{name}": gradient
            for name, gradient in zip(names, torch.autograd.grad(loss, tensors))}


def float32_errors(exact, single):
    """The largest difference of each result in float32 from that in float64, [1]."""
    return {f"float32_error.{name}": (single[name].double() - value).abs().max().reshape(1)
            for name, value in exact.items()}


def save_layer(folder, name, module, layer, options, width=WIDTH):
    """Runs module(x) on the graph above and writes everything."""
    generator = generator_of(name)
    randomise(module, generator)
    nodes = random(generator, 6, width)[NODE_CLASS].requires_grad_()
    states = random(generator, 3, width).requires_grad_()
    coefficients = random(generator, *module(encode(nodes, states)).shape)

    def results(module, nodes, states, coefficients):
        x = encode(nodes, states)
        output = module(x)
        inputs = {"x": x, "nodes": nodes, "states": states}
        return {"inputs.x": x}, {"output": output,
                                 **gradients(module, output, coefficients, inputs)}

    x, exact = results(module, nodes, states, coefficients)
    _, single = results(copy.deepcopy(module).float(),
                        *[t.detach().float().requires_grad_() for t in (nodes, states)],
                        coefficients.float())
    save(folder, name, {
        "graph.edges": EDGES, "graph.config_nodes": CONFIG_NODES, "graph.node_class": NODE_CLASS,
        "inputs.nodes": nodes, "inputs.states": states, "inputs.codes": CODES, **x,
        **{f"weights.{key}": value for key, value in module.named_parameters()},
        "coefficients": coefficients, **exact, **float32_errors(exact, single)},
        layer=layer, options=options)
    output = exact["output"]
    return list(dict(module.named_parameters())), list(output.shape)
