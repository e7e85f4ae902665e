#!/usr/bin/env python3
"""Writes down what PyTorch's operators give for PyTorch's own samples, as calls of ATen.

  record.py --out FOLDER [--seed N] [--most N] [--only WORD]...

Run it with a Python that has PyTorch 2.13 and expecttest. Every operator of the sample database runs on its samples, in
each dtype that Tenon has; what reaches the dispatcher below autograd is a call. FOLDER gets `calls.jsonl` (a call a
line: operator, arguments, what came of it) and `data.bin` (the elements of tensors, as they lie in memory). Of one
operator, dtype and sample-database entry at most N calls (60) are kept. Calls with tensors that Tenon has no kind of
(complex, sparse, quantized, of more than 64 KiB) are left out, and counted.
"""
import argparse
import collections
import json
import os
import sys
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.bfloat16: "bfloat16", torch.float16: "float16",
          torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8",
          torch.bool: "bool"}
LARGEST = 64 << 10
PLAIN = (bool, int, str, type(None))
# Operators that give vectors of which the sign means nothing.
ANY_SIGN = {"aten::_linalg_svd", "aten::_linalg_eigh"}


class Unsuitable(Exception):
    """A call that Tenon has no kinds for."""


class Writer:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.data = open(os.path.join(folder, "data.bin"), "wb")
        self.calls = open(os.path.join(folder, "calls.jsonl"), "w", encoding="utf-8")
        self.at = 0

    def bytes_of(self, tensor):
        raw = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        where, self.at = self.at, self.at + len(raw)
        self.data.write(raw)
        return where

    def tensor(self, tensor):
        """Sizes, strides, and all elements from the first to the last, those between its own included."""
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
            raise Unsuitable(str(tensor.layout))
        if tensor.dtype not in DTYPES or tensor.is_conj() or tensor.is_neg() or tensor.device.type != "cpu":
            raise Unsuitable(str(tensor.dtype))
        reach = 0 if tensor.numel() == 0 else 1 + sum((size - 1) * stride
                                                      for size, stride in zip(tensor.shape, tensor.stride()))
        if reach * tensor.element_size() > LARGEST:
            raise Unsuitable("size")
        span = torch.as_strided(tensor.detach(), (reach,), (1,), tensor.storage_offset())
        return {"dtype": DTYPES[tensor.dtype], "sizes": list(tensor.shape), "strides": list(tensor.stride()),
                "reach": reach, "at": self.bytes_of(span)}

    def value(self, value):
        if isinstance(value, torch.Tensor):
            return {"tensor": self.tensor(value)}
        if isinstance(value, PLAIN):
            return value
        if isinstance(value, float):
            return {"real": value.hex() if value == value and abs(value) != float("inf") else str(value)}
        if isinstance(value, (list, tuple)):
            return [self.value(each) for each in value]
        if isinstance(value, torch.dtype):
            if value not in DTYPES:
                raise Unsuitable(str(value))
            return {"dtype": DTYPES[value]}
        if isinstance(value, torch.device):
            if value.type != "cpu":
                raise Unsuitable(str(value))
            return {"device": "cpu"}
        if isinstance(value, torch.layout):
            if value is not torch.strided:
                raise Unsuitable(str(value))
            return {"layout": "strided"}
        if isinstance(value, torch.memory_format):
            return {"memory_format": str(value).rsplit(".", maxsplit=1)[-1]}
        raise Unsuitable(type(value).__name__)


class Recorder(TorchDispatchMode):
    """While it is on, calls below autograd are written down."""

    def __init__(self, writer, most):
        super().__init__()
        self.writer, self.most = writer, most
        self.entry = ""  # of the sample database
        self.kept, self.left_out = collections.Counter(), collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        dtypes = tuple(each.dtype for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor))
        key = (self.entry, func, dtypes[:2])
        if not isinstance(func, torch._ops.OpOverload) or self.kept[key] >= self.most:
            return func(*args, **kwargs)
        line = None
        try:
            line = self.before(func, args, kwargs)
        except Unsuitable as why:
            self.left_out[str(why)] += 1
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            if line:
                line["raises"] = str(error)[:300]
                self.keep(key, line)
            raise
        if line:
            try:
                line["results"] = self.writer.value(result if isinstance(result, (list, tuple)) else [result])
                line["after"] = [self.writer.value(each) for each in self.written(func, args, kwargs)]
                self.keep(key, line)
            except Unsuitable as why:
                self.left_out[str(why)] += 1
        return result

    def before(self, func, args, kwargs):
        name = func._schema.name + ("." + func._schema.overload_name if func._schema.overload_name else "")
        random = torch.Tag.nondeterministic_seeded in func.tags
        unset = any(word in func._schema.name for word in ("empty", "resize"))
        return {"op": name, "entry": self.entry, "args": [self.writer.value(each) for each in args],
                "kwargs": {word: self.writer.value(each) for word, each in kwargs.items()},
                "values": not random and not unset, "any_sign": name in ANY_SIGN}

    @staticmethod
    def written(func, args, kwargs):
        """The tensors that the call may have changed, in the schema's order."""
        found = []
        for at, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = kwargs.get(argument.name, args[at] if at < len(args) else None)
                found += [each for each in tree_leaves(value) if isinstance(each, torch.Tensor)]
        return found

    def keep(self, key, line):
        self.kept[key] += 1
        self.writer.calls.write(json.dumps(line, separators=(",", ":")) + "\n")


def record(entry, recorder, seed):
    """All samples of an entry; how many of them PyTorch itself refused."""
    refused = 0
    for dtype in sorted(entry.supported_dtypes("cpu") & DTYPES.keys(), key=str):
        torch.manual_seed(seed)
        try:
            samples = list(entry.sample_inputs("cpu", dtype, requires_grad=False))
        except Exception:
            refused += 1
            continue
        for sample in samples:
            try:
                with recorder:
                    entry(sample.input, *sample.args, **sample.kwargs)
            except Exception:
                refused += 1
    return refused


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", required=True)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--most", type=int, default=60)
    words.add_argument("--only", action="append", default=[], metavar="WORD", help="operators whose name has it")
    given = words.parse_args()
    warnings.filterwarnings("ignore")
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as missing:
        sys.exit(f"record.py: PyTorch's samples need {missing.name}: pip install {missing.name}")
    writer = Writer(given.out)
    recorder = Recorder(writer, given.most)
    refused = 0
    for number, entry in enumerate(op_db):
        name = entry.name + ("." + entry.variant_test_name if entry.variant_test_name else "")
        if given.only and not any(word in name for word in given.only):
            continue
        recorder.entry = name
        refused += record(entry, recorder, given.seed)
        if number % 50 == 49:
            print(f"{number + 1} of {len(op_db)} operators, {sum(recorder.kept.values())} calls", flush=True)
    writer.calls.close()
    writer.data.close()
    left_out = ", ".join(f"{count} {why}" for why, count in recorder.left_out.most_common(8))
    print(f"{sum(recorder.kept.values())} calls, {refused} samples that PyTorch refused; left out: {left_out}")


if __name__ == "__main__":
    main()
