"""Writes the files of tests/core/safetensors with the safetensors package (pip install torch safetensors):

    python3 tests/golden/safetensors_files.py tests/core/safetensors/files

and, the other way round, prints what that package reads from a file:

    python3 tests/golden/safetensors_files.py --show FILE.safetensors
"""
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

FLOATS = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
INTEGERS = {"i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8,
            "u64": torch.uint64, "u32": torch.uint32, "u16": torch.uint16, "u8": torch.uint8}


def all_types():
    """One tensor of each type: floats (i - 3) * 0.375 and the largest, integers 0, 1, 2, ..."""
    tensors = {}
    for name, dtype in FLOATS.items():
        values = [(i - 3) * 0.375 for i in range(11)] + [torch.finfo(dtype).max]
        tensors[name] = torch.tensor(values, dtype=torch.float64).to(dtype).reshape(3, 4)
    tensors["f16.small"] = torch.tensor([0.0, -0.0, 2.0**-24, -3 * 2.0**-24, 2.0**-14,
                                         float("inf"), float("-inf"), float("nan")],
                                        dtype=torch.float64).to(torch.float16)
    for name, dtype in INTEGERS.items():
        tensors[name] = torch.arange(6, dtype=torch.int64).to(dtype).reshape(2, 3)
    tensors["i64.ends"] = torch.tensor([-2**63, 2**63 - 1])
    tensors["u64.large"] = torch.tensor([2**63], dtype=torch.uint64)
    tensors["boolean"] = torch.tensor([True, False, True])
    return tensors


def written_here():
    """What tests/core/safetensors/safetensors_test.cpp writes too: its bytes must be the same."""
    return {"blocks.0.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3) / 8 - 0.25,
            "blocks.0.bias": torch.tensor([1.5, -2.0, 1e-40], dtype=torch.float32),
            "scalar": torch.tensor(0.1, dtype=torch.float32),
            "empty": torch.zeros(0, 4),
            "counts": torch.tensor([3, -1, 2**40]),
            "mean": torch.tensor([0.1, 1e300], dtype=torch.float64),
            'a "quoted" näme': torch.tensor([7.0])}


if __name__ == "__main__":
    if sys.argv[1] == "--show":
        with safe_open(sys.argv[2], "pt") as file:
            print(file.metadata())
            for key in sorted(file.keys()):
                tensor = file.get_tensor(key)
                print(key, tensor.dtype, list(tensor.shape), tensor.flatten()[:3].tolist())
    else:
        folder = Path(sys.argv[1])
        save_file(all_types(), folder / "all_types.safetensors")
        save_file(written_here(), folder / "written_here.safetensors", {"format": "pt"})
