"""Writes tests/data/io: small files as PyTorch and NumPy write them, and what is in them.

    $TENON_PEER_PYTHON tools/reference/peer_files.py
"""

import collections
import pathlib

import numpy as np
import safetensors.torch
import torch

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "io"


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) / 8 + number)
    torch.save(model.state_dict(), OUT / "state_dict.pt")
    # LibTorch's reader knows no OrderedDict with attributes, which is what a state dictionary is.
    torch.save({**model.state_dict(), "more": torch.ones(2)}, OUT / "plain_dict.pt")
    torch.save({"epoch": 3, "lr": 0.25, "done": False, "name": "größe", "nothing": None, "history": [1, (2.5, -7)],
                "model": model.state_dict(), "shared": base, "transposed": base.t(), "row": base[1],
                "parameter": torch.nn.Parameter(torch.ones(2)), "scalar": torch.tensor(5, dtype=torch.int64),
                "empty": torch.zeros(0, 3), "big": 1 << 40, "dtype": torch.float16, "size": torch.Size([2, 3]),
                **{f"as {name}": torch.tensor([1, 0, 2]).to(getattr(torch, name))
                   for name in ("float64", "float16", "bfloat16", "int32", "int16", "int8", "uint8", "bool")}},
               OUT / "checkpoint.pt")
    torch.save(model, OUT / "whole_module.pt")
    torch.save(collections.OrderedDict(a=base), OUT / "legacy.pt", _use_new_zipfile_serialization=False)
    arrays = {"a": np.arange(6, dtype=np.float64).reshape(2, 3), "f": np.asfortranarray(np.arange(6).reshape(2, 3)),
              "big_endian": np.arange(3, dtype=">i4"), "half": np.array([0.5, -2], np.float16),
              "flag": np.array([True, False]), "zero": np.array(7, np.int16), "none": np.zeros((0, 2), np.float32)}
    np.savez(OUT / "arrays.npz", **arrays)
    np.savez_compressed(OUT / "compressed.npz", long=np.arange(2000) % 17, **arrays)
    np.save(OUT / "complex.npy", np.array([1j]))
    np.save(OUT / "fortran.npy", arrays["f"])
    types = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
    safetensors.torch.save_file({"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3),
                                 **{f"t{number}": (torch.arange(6) % 2).to(getattr(torch, name)).reshape(2, 3)
                                    for number, name in enumerate(types)}},
                                OUT / "python.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
