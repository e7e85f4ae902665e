"""Extrema with their places, products, moments, norms, running sums and orders."""

import numpy as np

from elements import Array, FLOATS, INTEGERS, ORDER, category, convert, spacing, wide
from pointwise import draw

NUMBERS = INTEGERS + FLOATS
SHAPES = [((7,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 3, 4), -2), ((1, 4), 0), ((2, 70), -1)]


def loosely(values, dtype, scale=1.0):
    """A few roundings of numbers of that scale, in what the dtype is computed in."""
    step = 2.0 ** (-48 if dtype == "float64" else -19)
    bound = (np.abs(np.nan_to_num(np.asarray(values, np.float64), posinf=0, neginf=0)) + scale) * step
    return bound + (1.05 * spacing(values, dtype) if dtype in ("float16", "bfloat16") else 0)


def places(table):
    for name, value, place in (("max", np.max, np.argmax), ("min", np.min, np.argmin)):
        for dtype in ORDER:
            for shape, dim in SHAPES if dtype in ("float32", "int64") else SHAPES[:3]:
                x = draw(name, dtype, shape)
                if dtype in INTEGERS:
                    x = Array(dtype, x.values % 5)  # ties: the first counts
                for keepdim in (False, True):
                    more = {"keepdim": True} if keepdim else {}
                    at = place(x.values, axis=dim)
                    best = value(x.values, axis=dim, keepdims=keepdim)
                    at = np.expand_dims(at, dim) if keepdim else at
                    source = x.strided(list(range(len(shape)))) if keepdim else x
                    table.add(name + ".dim", [Array(dtype, best), Array("int64", at)], self=source, dim=dim, **more)
                    table.add("arg" + name, Array("int64", at), self=x, dim=dim, **more)
                table.add(name, Array(dtype, value(x.values)), self=x)
                table.add("arg" + name, Array("int64", place(x.values)), self=x)
        for dtype in FLOATS:
            x = Array(dtype, [[1, np.nan, 3, np.nan], [np.inf, 0, np.inf, 1], [-np.inf, 2, -3, -np.inf]])
            table.add(name + ".dim", [Array(dtype, value(x.values, axis=1)), Array("int64", place(x.values, axis=1))],
                      self=x, dim=1)
        table.add(name + ".dim", [Array("float32", 2.5), Array("int64", 0)], self=Array("float32", 2.5), dim=0)
        table.add("arg" + name, Array("int64", np.full((1, 1), place(np.arange(6).reshape(2, 3)))),
                  self=Array("float32", np.arange(6).reshape(2, 3)),
                  keepdim=True)
        table.add(name, Array("float32", np.nan), self=Array("float32", [1.0, np.nan]))
        for dtype in ORDER:
            a, b = draw(name + " a", dtype, (2, 3)), draw(name + " b", dtype, (3,))
            table.add(name + ".other", Array(dtype, {"max": np.maximum, "min": np.minimum}[name](a.values, b.values)),
                      self=a, other=b)


def products(table):
    for dtype in ORDER:
        result = dtype if category(dtype) == 2 else "int64"
        for shape, dim in SHAPES[:5] + [((0, 3), 0), ((3, 0), 1)]:
            x = draw("prod", dtype, shape, 0.5, 1.5)
            if dtype in INTEGERS:
                x = Array(dtype, x.values % 4)
            values = x.values.astype(np.float64 if category(dtype) == 2 else np.int64)
            for keepdim in (False, True):
                expected = np.prod(values, axis=dim, keepdims=keepdim)
                distance = loosely(expected, dtype, 0) if dtype in FLOATS else "exact"
                more = {"keepdim": True} if keepdim else {}
                table.add("_prod", Array(result, expected), distance, self=x, dim=[dim], **more)
                table.add("prod.dim_int", Array(result, expected), distance, self=x, dim=dim, **more)
            expected = np.prod(values)
            table.add("prod", Array(result, expected), loosely(expected, dtype, 0) if dtype in FLOATS else "exact",
                      self=x)
    x = draw("prod", "int32", (2, 3))
    table.add("prod", Array("float64", np.prod(x.values.astype(np.float64))), self=x, dtype="float64")
    for values, total in (([1, np.nan, 0], np.nan), ([np.inf, 2, -1], -np.inf), ([np.inf, 0, 3], np.nan)):
        table.add("prod", Array("float32", total), self=Array("float32", values))
    table.add("_prod", Array("float32", np.prod(np.full((2, 3), 1.5))), loosely(11.4, "float32"),
              self=Array("float32", np.full((2, 3), 1.5)), dim=None)


def moments(table):
    for dtype in FLOATS:
        for shape, dim in [((7,), None), ((3, 5), [1]), ((3, 5), [0]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [-2]),
                           ((2, 70), [1]), ((3, 1), [1])]:
            x = draw("var", dtype, shape)
            v = x.values.astype(np.float64)
            axis = None if dim is None else tuple(dim)
            for correction, keepdim in ((None, False), (0, True), (1.5, False), (2, False)):
                freedom = 1 if correction is None else correction
                with np.errstate(all="ignore"):
                    count = v.size if axis is None else int(np.prod([shape[a] for a in axis]))
                    mean = v.mean(axis=axis, keepdims=keepdim)
                    total = ((v - v.mean(axis=axis, keepdims=True)) ** 2).sum(axis=axis, keepdims=keepdim)
                    variance = np.asarray(total) / max(0, count - freedom)
                more = {} if dim is None else {"dim": dim}
                more |= {} if correction is None else {"correction": correction}
                more |= {"keepdim": True} if keepdim else {}
                if count == 1 and freedom > 0:
                    variance = np.full_like(variance, np.nan)
                near, near_root = loosely(variance, dtype, 0.1), loosely(np.sqrt(variance), dtype, 0.1)
                middle = loosely(mean, dtype)
                table.add("var.correction", Array(dtype, variance), near, self=x, **more)
                table.add("std.correction", Array(dtype, np.sqrt(variance)), near_root,
                          self=x.strided(list(range(len(shape)))), **more)
                table.add("var_mean.correction", [Array(dtype, variance), Array(dtype, mean)], [near, middle], self=x,
                          **more)
                table.add("std_mean.correction", [Array(dtype, np.sqrt(variance)), Array(dtype, mean)],
                          [near_root, middle], self=x, **more)
    table.add("var.correction", Array("float32", 0), self=Array("float32", [3, 3, 3]))
    table.add("std.correction", Array("float32", np.nan), self=Array("float32", [1, np.inf]))
    table.add("var.correction", Array("float32", np.nan), self=Array("float32", []))


def norms(table):
    for dtype in FLOATS:
        for shape, dim in [((7,), [0]), ((3, 5), [1]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [])]:
            x = draw("norm", dtype, shape)
            v = np.abs(x.values.astype(np.float64))
            axis = tuple(dim) if dim else tuple(range(len(shape)))
            for p in (2, 1, 0, 3, 0.5, np.inf, -np.inf):
                if np.isinf(p):
                    expected = v.max(axis=axis) if p > 0 else v.min(axis=axis)
                elif p == 0:
                    expected = (v != 0).sum(axis=axis).astype(np.float64)
                else:
                    expected = np.power(np.power(v, p).sum(axis=axis), 1 / p)
                near = loosely(expected, dtype)
                number = p if np.isinf(p) else float(p)
                table.add("linalg_vector_norm", Array(dtype, expected), near, self=x, ord=number, dim=dim)
                table.add("norm.ScalarOpt_dim", Array(dtype, np.expand_dims(expected, axis)),
                          near.reshape(np.expand_dims(expected, axis).shape),
                          self=x.strided(list(range(len(shape)))), p=number, dim=dim, keepdim=True)
                if not dim:
                    table.add("norm.Scalar", Array(dtype, expected), near, self=x, p=number)
            for keepdim in (False, True):
                values = x.values.astype(np.float64)
                expected = np.log(np.exp(values).sum(axis=axis, keepdims=keepdim))
                more = {"keepdim": True} if keepdim else {}
                table.add("logsumexp", Array(dtype, expected), loosely(expected, dtype), self=x, dim=dim, **more)
        special = Array(dtype, [[np.inf, 1], [-np.inf, -np.inf], [np.nan, 1], [1000 if dtype != "float16" else 60, 0],
                                [-np.inf, 2]])
        top = special.values[3, 0]
        table.add("logsumexp", Array(dtype, [np.inf, -np.inf, np.nan, top, 2]), "ulp 1", self=special, dim=[1])
    x = draw("norm", "float32", (5,))
    table.add("norm.Scalar", Array("float32", np.linalg.norm(x.values.astype(np.float64))), "ulp 4", self=x)
    table.add("norm.ScalarOpt_dim", Array("float32", np.linalg.norm(x.values.astype(np.float64))), "ulp 4", self=x,
              p=None, dim=[0])
    table.add("linalg_vector_norm", Array("float64", np.linalg.norm(x.values.astype(np.float64))), "ulp 4", self=x,
              dtype="float64")
    table.add("linalg_vector_norm", Array("float32", 0), self=Array("float32", []))
    table.add("logsumexp", Array("float32", [-np.inf, -np.inf]), self=Array("float32", np.zeros((2, 0))), dim=[1])


def running(table):
    for dtype in ORDER:
        result = dtype if category(dtype) == 2 else "int64"
        for shape, dim in SHAPES[:5] + [((0, 3), 0), ((), 0)]:
            x = draw("cumsum", dtype, shape)
            values = x.values.astype(np.float64 if category(dtype) == 2 else np.int64)
            expected = np.cumsum(values, axis=dim) if shape else values
            size = np.cumsum(np.abs(values), axis=dim) if shape else np.abs(values)
            table.add_sum("cumsum", expected, size, 8, result, self=x.strided(list(range(len(shape)))), dim=dim)
    x = draw("cumsum", "int32", (5,))
    table.add("cumsum", Array("float64", np.cumsum(x.values)), self=x, dim=0, dtype="float64")
    table.add("cumsum", Array("int8", convert(np.cumsum(x.values), "int8")), self=x, dim=0, dtype="int8")
    table.add("cumsum", Array("float32", [1, np.nan, np.nan]), self=Array("float32", [1, np.nan, 2]), dim=0)


def descending_order(values, dim):
    """Stable, the largest (and NaNs) first."""
    wide_values = values.astype(np.float64) if values.dtype.kind == "f" else values.astype(np.int64)
    return np.argsort(np.where(np.isnan(wide_values), -np.inf, -wide_values) if values.dtype.kind == "f"
                      else -wide_values, axis=dim, kind="stable")


def orders(table):
    for dtype in ORDER:
        for shape, dim in SHAPES[:5] + [((3, 0), 1)] if dtype in ("float32", "int64") else SHAPES[:3]:
            x = draw("sort", dtype, shape)
            if dtype in INTEGERS:
                x = Array(dtype, x.values % 4)
            for descending in (False, True):
                order = descending_order(x.values, dim) if descending else np.argsort(x.values, axis=dim, kind="stable")
                values = np.take_along_axis(x.values, order, axis=dim)
                more = {"descending": True} if descending else {}
                source = x.strided(list(range(len(shape)))) if descending else x
                table.add("sort", [Array(dtype, values), Array("int64", order)], self=source, dim=dim, **more)
                table.add("argsort", Array("int64", order), self=x, dim=dim, **more)
                for k in (0, 1, min(3, x.shape[dim])):
                    if k > x.shape[dim]:
                        continue
                    cut = [slice(None)] * len(shape)
                    cut[dim] = slice(0, k)
                    table.add("topk", [Array(dtype, values[tuple(cut)]), Array("int64", order[tuple(cut)])], self=x,
                              k=k, dim=dim, largest=descending)
    for dtype in FLOATS:
        x = Array(dtype, [2, np.nan, -np.inf, np.inf, np.nan, 0])
        order = np.argsort(x.values, kind="stable")
        table.add("sort", [Array(dtype, x.values[order]), Array("int64", order)], self=x)
        order = np.array([1, 4, 3, 0, 5, 2])
        table.add("sort", [Array(dtype, x.values[order]), Array("int64", order)], self=x, descending=True)
        table.add("topk", [Array(dtype, x.values[order[:3]]), Array("int64", order[:3])], self=x, k=3)
    table.add("sort", [Array("float32", 2.5), Array("int64", 0)], self=Array("float32", 2.5))


def write(table):
    for family in (places, products, moments, norms, running, orders):
        family(table)
