"""Operators that we have no row for, in words that we have.

PyTorch's own decompositions serve where there is one. Many of them end in its primitives (`prims`), which differ from
ATen's operators in names and in what they leave unsaid; those are said in ATen's words here.
"""
from __future__ import annotations

import functools

import torch
import torch._decomp

from tenon import _core

_aten = torch.ops.aten
_prims = torch.ops.prims

# Primitives of the same name and meaning.
_UNARY = """abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp exp2 expm1 floor isfinite log log10
log1p log2 neg reciprocal round rsqrt sign sin sinh sqrt tan tanh trunc""".split()
_BINARY = """add atan2 bitwise_and bitwise_or bitwise_xor eq fmod ge gt le lt maximum minimum mul ne pow remainder
sub""".split()


# Operators that PyTorch takes apart in ways that do not fit: constants that are no fakes yet, writes to views,
# questions about data.
_KEPT = {
    _aten.bucketize.Scalar,
    _aten.bucketize.Tensor,
    _aten.complex.default,
    _aten.item.default,
    _aten.lift.default,
    _aten.lift_fresh.default,
    _aten.lift_fresh_copy.default,
    _aten.polar.default,
    _aten.take.default,
}


def _tensors(function):
    """Primitives take numbers in place of tensors."""

    def parts(*args):
        dtypes = [each.dtype for each in args if isinstance(each, torch.Tensor)]
        dtype = next((each for each in dtypes if each != torch.bool), None)
        return function(*(each if isinstance(each, torch.Tensor) else torch.full((), each, dtype=dtype)
                          for each in args))

    return parts


def _broadcast_in_dim(a, shape, broadcast_dimensions):
    missing = [dim for dim in range(len(shape)) if dim not in broadcast_dimensions]
    for dim in missing:
        a = _aten.unsqueeze.default(a, dim)
    return _aten.expand.default(a, shape)


def _squeeze(a, dimensions):
    for dim in sorted((dim % a.dim() for dim in dimensions), reverse=True):
        a = _aten.squeeze.dim(a, dim)
    return a


def _divide(a, b):
    if not isinstance(a, torch.Tensor) or not a.is_floating_point():
        return NotImplemented  # of integers it rounds towards zero
    return torch.div(a, b)


def _reduction(op):
    def parts(inp, dims, output_dtype=None):
        if output_dtype is not None:
            return NotImplemented
        return op(inp, dims)

    return parts


def _sum(inp, dims, output_dtype=None):
    return _aten.sum.dim_IntList(inp, dims, dtype=output_dtype)


def _product(inp, dims, output_dtype=None):
    for dim in sorted((dim % max(inp.dim(), 1) for dim in dims), reverse=True):
        inp = _aten.prod.dim_int(inp, dim, dtype=output_dtype)
    return inp


def _variance(inp, dims, correction=1, output_dtype=None):
    if output_dtype is not None:
        return NotImplemented
    return _aten.var.correction(inp, dims, correction=correction)


def _layer_norm(input, normalized_shape, weight, bias, eps):
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    wide = torch.float32 if input.dtype in (torch.float16, torch.bfloat16) else input.dtype
    x = input.to(wide)
    variance, mean = _aten.var_mean.correction(x, dims, correction=0, keepdim=True)
    scale = _aten.rsqrt.default(variance + eps)
    result = (x - mean) * scale
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    # On the CPU the statistics have the dtype of the parameters where those are wide.
    kept = wide if weight is None or weight.dtype == wide else input.dtype
    return result.to(input.dtype), mean.to(kept), scale.to(kept)


def _ours() -> dict:
    table = {getattr(_prims, name).default: getattr(_aten, name).default for name in _UNARY}
    table |= {getattr(_prims, name).default: _tensors(getattr(torch, name)) for name in _BINARY}
    table |= {
        _prims.amax.default: _reduction(_aten.amax.default),
        _prims.amin.default: _reduction(_aten.amin.default),
        _prims.broadcast_in_dim.default: _broadcast_in_dim,
        _prims.convert_element_type.default: lambda a, dtype: _aten._to_copy.default(a, dtype=dtype),
        _prims.div.default: _divide,
        _prims.prod.default: _product,
        _prims.rev.default: _aten.flip.default,
        _prims.squeeze.default: _squeeze,
        _prims.sum.default: _sum,
        _prims.transpose.default: _aten.permute.default,
        _prims.var.default: _variance,
        _prims.where.default: _tensors(torch.where),
        _aten.native_layer_norm.default: _layer_norm,
        _aten.squeeze.dims: _squeeze,
    }
    return table


# Operators that we have, with results that lie otherwise: ours are copies, PyTorch's pieces of their input.
_COPIES_HERE = {"aten::unsafe_split.Tensor", "aten::unsafe_split_with_sizes", "aten::unsafe_chunk"}


def _serves(op: torch._ops.OpOverload) -> bool:
    """Whether our row stands for it in a graph, where nothing writes."""
    return _core.has_operator(op.name()) and not op._schema.is_mutable and op.name() not in _COPIES_HERE


@functools.cache
def decompositions() -> dict:
    table = {
        op: parts
        for op, parts in torch._decomp.decomposition_table.items()
        if isinstance(op, torch._ops.OpOverload)
        and op not in _KEPT
        and not _serves(op)
        and torch.Tag.nondeterministic_seeded not in op.tags
    }
    return table | _ours()
