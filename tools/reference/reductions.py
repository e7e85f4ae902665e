"""Reductions over dimensions."""

import numpy as np

from elements import Array, FLOATS, ORDER, category, convert, wide
from pointwise import draw

SHAPES = [((7,), None), ((3, 5), [1]), ((3, 5), [0]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [-2]), ((2, 3, 4), []),
          ((), None),
          ((0, 3), [0]), ((0, 3), [1]), ((2, 70), [1]), ((0,), None), ((1, 1), [0])]


def axes(dim, rank):
    return tuple(range(rank)) if not dim or rank == 0 else tuple(dim)


def sums(table):
    for dtype in ORDER:
        for shape, dim in SHAPES if dtype in ("float32", "int32") else SHAPES[:3]:
            for keepdim in (False, True) if dim else (False,):
                x = draw("sum", dtype, shape)
                axis, result = axes(dim, len(shape)), dtype if category(dtype) == 2 else "int64"
                values = x.values.astype(np.float64 if category(dtype) == 2 else np.int64)
                count = max(1, int(np.prod([shape[a] for a in axis], dtype=int)))
                total, size = values.sum(axis=axis, keepdims=keepdim), np.abs(values).sum(axis=axis, keepdims=keepdim)
                more = {"keepdim": True} if keepdim else {}
                table.add_sum("sum.dim_IntList", total, size, count, result, self=x, dim=dim, **more)
                if dim is None:
                    table.add_sum("sum", total, size, count, result, self=x)
                if category(dtype) == 2 and shape not in ((0,), (0, 3)):
                    table.add_sum("mean.dim", total / count, size / count, count, result, self=x, dim=dim, **more)
                    if dim is None:
                        table.add_sum("mean", total / count, size / count, count, result, self=x)
    x = draw("sum", "int32", (2, 3))
    table.add("mean", Array("float32", x.values.mean()), "ulp 4", self=x, dtype="float32")
    table.add("sum", Array("float64", x.values.sum()), self=x, dtype="float64")
    table.add("sum.dim_IntList", Array("int8", convert(x.values.sum(axis=1), "int8")), self=x, dim=[1], dtype="int8")
    x = draw("sum", "float32", (3, 4, 5))
    values = x.values.astype(np.float64)
    table.add_sum("sum.dim_IntList", values.sum(axis=1), np.abs(values).sum(axis=1), 4, "float32",
                  self=x.strided([1, 0, 2]), dim=[1])
    # More than a float16 could add up one by one.
    x = Array("float16", np.ones((4, 3000)))
    table.add("sum.dim_IntList", Array("float16", np.full(4, 3000)), self=x, dim=[1])
    for values, total in (([1, np.nan, 2], np.nan), ([np.inf, 1, 2], np.inf), ([np.inf, -np.inf, 0], np.nan)):
        table.add("sum", Array("float32", total), self=Array("float32", values))
    table.add("mean", Array("float32", np.nan), self=Array("float32", []))


def extrema(table):
    for operator, function in (("amax", np.max), ("amin", np.min)):
        for dtype in ORDER:
            for shape, dim in SHAPES if dtype == "float32" else SHAPES[:3]:
                axis = axes(dim, len(shape))
                if 0 in [shape[a] for a in axis]:
                    continue
                x = draw(operator, dtype, shape)
                dims = [] if dim is None else dim
                table.add(operator, Array(dtype, function(x.values, axis=axis)), self=x, dim=dims)
                if dim:
                    table.add(operator, Array(dtype, function(x.values, axis=axis, keepdims=True)), self=x, dim=dims,
                              keepdim=True)
        for dtype in FLOATS:
            x = Array(dtype, [[1, np.nan, 3], [np.inf, 0, 1], [-np.inf, 2, -3], [-np.inf, -np.inf, -np.inf]])
            table.add(operator, Array(dtype, function(x.values, axis=1)), self=x, dim=[1])


def truths(table):
    for operator, function in (("any.dims", np.any), ("all.dims", np.all)):
        for dtype in ORDER:
            for shape, dim in SHAPES:
                x = draw(operator, dtype, shape, -1, 1)
                if dtype == "float32" and x.values.size > 2:
                    values = x.values.copy()
                    values.reshape(-1)[: values.size // 2] = 0
                    x = Array(dtype, values)
                elif dtype not in ("float32", "bool", "int64"):
                    if shape not in ((3, 5), (7,)):
                        continue
                expected = function(x.values != 0, axis=axes(dim, len(shape)))
                table.add(operator, Array("bool", expected), self=x, dim=dim)


def write(table):
    sums(table)
    extrema(table)
    truths(table)
