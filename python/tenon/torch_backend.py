"""`torch.compile(model, backend="tenon")`: found by the entry point `torch_dynamo_backends`.

PyTorch captures and differentiates; what it leaves, graphs of ATen calls without mutation, is compiled here. Options
(`torch.compile(..., options={...})`):

    fullgraph   True: a call that would be PyTorch's is an error that lists all of them
    strict      True: an error of ours is an error; otherwise the part runs as PyTorch's operators
"""
from __future__ import annotations

import functools
import time

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from tenon._convert import convert
from tenon._decompositions import decompositions
from tenon._report import GraphRecord, add_graph
from tenon._runner import Runner, warn_about_version

_OPTIONS = {"fullgraph": False, "strict": False}


class FullGraphError(RuntimeError):
    """`fullgraph` was asked for, and some calls are PyTorch's."""


def _compile(module: torch.fx.GraphModule, inputs, *, kind: str, options: dict):
    began = time.perf_counter()
    record = GraphRecord(kind)
    try:
        conversion = convert(module.graph)
        conversion.tracer.finish()
        if options["fullgraph"] and conversion.foreign:
            refused = {f"{node.target}: {why}" for node, why in conversion.foreign.items()}
            raise FullGraphError("these calls would be PyTorch's:\n  " + "\n  ".join(sorted(refused)))
        run = Runner(module, conversion, record, options["strict"]).write()
    except Exception as failure:
        if options["strict"] or isinstance(failure, FullGraphError):
            raise
        record.failures.append(f"{type(failure).__name__}: {failure}")
        run = make_boxed_func(module.forward)
    record.milliseconds = 1000 * (time.perf_counter() - began)
    add_graph(record)
    return run


def _checked(options: dict | None) -> dict:
    unknown = set(options or {}) - set(_OPTIONS)
    if unknown:
        raise ValueError(f"[tenon] unknown options {sorted(unknown)}: expected some of {sorted(_OPTIONS)}")
    return {**_OPTIONS, **(options or {})}


def tenon(module: torch.fx.GraphModule, inputs, *, options: dict | None = None, mode: str | None = None):
    """The backend. `mode` says how hard inductor tries; there is one way here."""
    warn_about_version()
    chosen = _checked(options)
    backend = aot_autograd(
        fw_compiler=functools.partial(_compile, kind="forward", options=chosen),
        bw_compiler=functools.partial(_compile, kind="backward", options=chosen),
        inference_compiler=functools.partial(_compile, kind="inference", options=chosen),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    return backend(module, inputs)
