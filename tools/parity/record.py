#!/usr/bin/env python3
"""Writes down what PyTorch's operators give for PyTorch's own samples, as calls of ATen.

  record.py --out FOLDER [--seed N] [--most N] [--only WORD]...

Run it with a Python that has PyTorch 2.13 and expecttest. Every operator of the sample database runs on its samples, in
each dtype that Tenon has; what reaches the dispatcher below autograd is a call. FOLDER gets `calls.jsonl` (a call a
line: operator, arguments, what came of it) and `data.bin` (the elements of tensors, as they lie in memory). Of one
operator, dtype and sample-database entry at most N calls (60) are kept. Calls with tensors that Tenon has no kind of
(complex, sparse, quantized, of more than 64 KiB) are left out, and counted.

A call that PyTorch differentiates, on float32 or float64, is written down once more with the gradients that come of
random cotangents (`cotangents`, one for each result that has a history; `gradients`, one for each floating point
argument). So is the operator by which a sample enters, if it is none of the calls: `linear`, which is an `addmm` below.
"""
import argparse
import collections
import json
import os
import sys
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.bfloat16: "bfloat16", torch.float16: "float16",
          torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8",
          torch.bool: "bool"}
LARGEST = 64 << 10
PLAIN = (bool, int, str, type(None))
# Operators that give vectors of which the sign means nothing.
ANY_SIGN = {"aten::_linalg_svd", "aten::_linalg_eigh"}
# Operators that name one of several elements that tie: which, nobody promises. Their second result names them.
TIES = {"aten::topk", "aten::kthvalue", "aten::median.dim", "aten::nanmedian.dim", "aten::mode", "aten::sort"}
HALVES = {torch.float16, torch.bfloat16}
# Which of their results have a gradient that does not hang on those signs: the values.
WITHOUT_SIGN = {"aten::_linalg_svd": [1], "aten::_linalg_eigh": [0], "aten::linalg_svd": [1], "aten::linalg_eigh": [0]}


class Unsuitable(Exception):
    """A call that Tenon has no kinds for."""


class Writer:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.data = open(os.path.join(folder, "data.bin"), "wb")
        self.calls = open(os.path.join(folder, "calls.jsonl"), "w", encoding="utf-8")
        self.at = 0
        self.whole_storages = False

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
        if self.whole_storages:  # what the operator may look into
            offset, reach = tensor.storage_offset(), tensor.untyped_storage().nbytes() // tensor.element_size()
            span = torch.as_strided(tensor.detach(), (reach,), (1,), 0)
        else:
            offset, reach = 0, reach_of(tensor)
            span = torch.as_strided(tensor.detach(), (reach,), (1,), tensor.storage_offset())
        if reach * tensor.element_size() > LARGEST:
            raise Unsuitable("size")
        return {"dtype": DTYPES[tensor.dtype], "sizes": list(tensor.shape), "strides": list(tensor.stride()),
                "reach": reach, "offset": offset, "at": self.bytes_of(span)}

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


def reach_of(tensor):
    """How many elements there are from its first to its last, those between its own included."""
    return 0 if tensor.numel() == 0 else 1 + sum((size - 1) * stride
                                                 for size, stride in zip(tensor.shape, tensor.stride()))


def copied(values, change):
    """Arguments with tensors of their own, as they lie."""
    def copy(each):
        if not isinstance(each, torch.Tensor):
            return each
        if each.layout is not torch.strided:
            raise Unsuitable(str(each.layout))
        plain = each.detach()
        memory = torch.as_strided(plain, (reach_of(plain),), (1,), plain.storage_offset()).clone()
        return change(torch.as_strided(memory, plain.shape, plain.stride(), 0))

    return tree_map(copy, values)


def in_float32(func, args, kwargs):
    """What the call gives for halves as float32; nothing where it is told a dtype, or writes."""
    if func._schema.is_mutable or any(isinstance(each, torch.dtype) for each in tree_leaves((args, kwargs))):
        return None
    args, kwargs = tree_map(lambda each: each.float() if isinstance(each, torch.Tensor) and each.dtype in HALVES
                            else each, (args, kwargs))
    try:
        result = func(*args, **kwargs)
    except Exception:
        return None
    return list(result) if isinstance(result, (list, tuple)) else [result]


def rounds_on_the_way(results, wide):
    """Whether PyTorch's halves are off what comes of float32, by more than a rounding at the end: then that counts."""
    for got, exact in zip(results, wide):
        if isinstance(got, torch.Tensor) and got.dtype in HALVES and got.shape == exact.shape:
            allowed = {"rtol": 8e-3, "atol": 1e-3} if got.dtype == torch.bfloat16 else {"rtol": 1e-3, "atol": 1e-4}
            if not torch.allclose(got.float(), exact, equal_nan=True, **allowed):
                return True
    return False


def dtypes_of(args, kwargs):
    return tuple(each.dtype for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor))


def takes_tensors_as_such(func, args, kwargs):
    arguments = {argument.name: argument for argument in func._schema.arguments}
    pairs = [*zip(func._schema.arguments, args), *((arguments[word], each) for word, each in kwargs.items())]
    return all("Tensor" in str(argument.type) for argument, each in pairs if isinstance(each, torch.Tensor))


def written_at(func, args):
    return {at for at, argument in enumerate(func._schema.arguments[:len(args)])
            if argument.alias_info is not None and argument.alias_info.is_write}


def may_have_gradients(dtypes):
    """In float32 or float64 alone: gradients of halves say more of rounding than of formulas."""
    floats = {each for each in dtypes if each.is_floating_point}
    return bool(floats) and floats <= {torch.float32, torch.float64}


class Recorder(TorchDispatchMode):
    """While it is on, calls below autograd are written down."""

    def __init__(self, writer, most):
        super().__init__()
        self.writer, self.most = writer, most
        self.entry = ""  # of the sample database
        self.kept, self.left_out = collections.Counter(), collections.Counter()
        self.gradients = 0  # how many calls with gradients were written down
        self.to_differentiate, self.seen = [], set()  # of a sample: (operator, arguments, words), and every operator
        self.enters = None  # the same of the operator by which the sample enters

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        dtypes = dtypes_of(args, kwargs)
        key = (self.entry, func, dtypes[:2])
        self.seen.add(func)
        if not isinstance(func, torch._ops.OpOverload) or self.kept[key] >= self.most:
            return func(*args, **kwargs)
        line, wide = None, None
        self.writer.whole_storages = func._schema.name.startswith("aten::as_strided")
        try:
            line = self.before(func, args, kwargs)
            wide = in_float32(func, args, kwargs) if line["values"] and HALVES & set(dtypes) else None
            of_gradients = (*key, "gradients")
            if may_have_gradients(dtypes) and self.kept[of_gradients] < self.most:
                self.kept[of_gradients] += 1
                self.to_differentiate.append((func, *copied((args, kwargs), lambda each: each)))
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
                results = result if isinstance(result, (list, tuple)) else [result]
                line["results"] = self.writer.value(results)
                if wide is not None and rounds_on_the_way(results, wide):
                    line["wide"] = self.writer.value(wide)
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
                "values": not random and not unset, "any_sign": name in ANY_SIGN, "ties": name in TIES}

    def differentiate(self, func, args, kwargs):
        """The call once more, above autograd, and what its gradients are. Nothing is written where there are none."""
        leaves = []

        def leaf(tensor):
            if tensor.is_floating_point():
                leaves.append(tensor.requires_grad_())
            return tensor

        args, kwargs = copied((args, dict(sorted(kwargs.items()))), leaf)
        try:
            line = self.before(func, args, kwargs)
            if not line["values"]:
                return
            # What an operator writes to is no leaf.
            given = [each.clone() if at in written_at(func, args) else each for at, each in enumerate(args)]
            made = func(*given, **kwargs)
            made = made if isinstance(made, (list, tuple)) else [made]
            made = [each for each in made if isinstance(each, torch.Tensor)]
            of = [each for at, each in enumerate(made)
                  if each.requires_grad and at in WITHOUT_SIGN.get(line["op"], range(len(made)))]
            if not of:
                return
            cotangents = [torch.randn_like(each, memory_format=torch.contiguous_format) for each in of]
            gradients = torch.autograd.grad(of, leaves, cotangents, allow_unused=True)
            gradients = [torch.zeros(each.shape, dtype=each.dtype) if each is not None and each._is_zerotensor()
                         else each for each in gradients]
        except Unsuitable as why:
            self.left_out[str(why)] += 1
            return
        except Exception:  # it has no gradient
            return
        try:
            line["of"] = [at for at, each in enumerate(made) if any(each is other for other in of)]
            line["cotangents"] = [self.writer.value(each) for each in cotangents]
            line["gradients"] = [self.writer.value(each) for each in gradients]
        except Unsuitable as why:
            self.left_out[str(why)] += 1
            return
        self.gradients += 1
        self.writer.calls.write(json.dumps(line, separators=(",", ":")) + "\n")

    def begin(self, entry, sample):
        """Notes the operator by which a sample enters, before the sample is changed."""
        self.seen.clear()
        self.to_differentiate.clear()
        self.enters = None
        given, words = (sample.input, *sample.args), sample.kwargs
        packet = getattr(torch.ops.aten, entry.aten_name or entry.name, None)
        if isinstance(packet, torch._ops.OpOverloadPacket) and may_have_gradients(dtypes_of(given, words)):
            try:
                overload = torch._C._jit_resolve_packet(packet._qualified_op_name, *given, **words)
                func = getattr(packet, overload or "default")
                # (PyTorch takes a tensor for a number, too.)
                if takes_tensors_as_such(func, given, words):
                    self.enters = (func, *copied((given, words), lambda each: each))
            except Exception:  # PyTorch's function of the name takes other arguments than its operator
                pass

    def differentiate_sample(self):
        """All that the sample called, and the operator by which it entered."""
        calls = list(self.to_differentiate)
        if self.enters and self.enters[0] not in self.seen:
            key = (self.entry, self.enters[0], dtypes_of(*self.enters[1:])[:2], "gradients")
            self.kept[key] += 1
            if self.kept[key] <= self.most:
                calls.append(self.enters)
        for call in calls:
            if not any(argument.is_out for argument in call[0]._schema.arguments):
                self.differentiate(*call)

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
            recorder.begin(entry, sample)
            try:
                with recorder:
                    entry(sample.input, *sample.args, **sample.kwargs)
            except Exception:
                refused += 1
            recorder.differentiate_sample()
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
            print(f"{number + 1} of {len(op_db)} operators", flush=True)
    writer.calls.close()
    writer.data.close()
    left_out = ", ".join(f"{count} {why}" for why, count in recorder.left_out.most_common(8))
    calls = sum(count for key, count in recorder.kept.items() if key[-1] != "gradients")
    print(f"{calls} calls, {recorder.gradients} of them with gradients, {refused} samples that PyTorch refused; "
          f"left out: {left_out}")


if __name__ == "__main__":
    main()
