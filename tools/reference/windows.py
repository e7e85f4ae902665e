"""Gradients of pooling by themselves, averages over three dimensions, and windows at places chosen by numbers."""

import numpy as np

from elements import Array, FLOATS
from images import even, largest, pooled, sliding, windows_of
from moments import loosely
from pointwise import draw

POOLS = [((2, 3, 6, 5), [2, 2], [2, 2], [0, 0], [1, 1], False), ((2, 6, 8), [3, 3], [2, 1], [1, 1], [1, 1], True),
         ((1, 2, 7, 8), [2, 3], [2, 1], [1, 1], [1, 2], False), ((1, 1, 5, 5), [1, 1], [2, 2], [0, 0], [1, 1], False)]
CUBES = [((1, 2, 4, 5, 6), [2, 2, 2], [2, 2, 2], [0, 0, 0], True),
         ((2, 4, 3, 5), [3, 2, 3], [1, 1, 2], [1, 1, 0], False)]


def spread(shape, grads, dims, at):
    """`grads` added up where `at`, the number of the element in its plane, says."""
    total = np.zeros(shape)
    planes = total.reshape((-1, int(np.prod(shape[-dims:]))))
    for p, (values, places) in enumerate(zip(grads.reshape((len(planes), -1)), at.reshape((len(planes), -1)))):
        np.add.at(planes[p], places.astype(int), values)
    return total


def largest_backward(table):
    for dtype in FLOATS:
        for shape, kernel, stride, padding, dilation, ceil in POOLS:
            x = draw("pooled", dtype, shape)
            dims = [sliding(shape[-2 + d], kernel[d], stride[d], padding[d], dilation[d], ceil) for d in range(2)]
            best, at = pooled(x.values, dims, largest)
            grad = draw("pooled grad", dtype, best.shape)
            total = spread(shape, grad.wide().astype(np.float64), 2, at)
            table.add("max_pool2d_with_indices_backward", Array(dtype, total), loosely(total, dtype, 8),
                      grad_output=grad, self=x, kernel_size=kernel, stride=stride, padding=padding, dilation=dilation,
                      ceil_mode=ceil, indices=Array("int64", at))
        for operator, shape, size in (("adaptive_max_pool2d_backward", (2, 2, 5, 7), [3, 2]),
                                      ("adaptive_max_pool3d_backward", (2, 4, 5, 3), [2, 3, 3])):
            x = draw("pooled", dtype, shape)
            best, at = pooled(x.values, [even(shape[d - len(size)], size[d]) for d in range(len(size))], largest)
            grad = draw("pooled grad", dtype, best.shape)
            total = spread(shape, grad.wide().astype(np.float64), len(size), at)
            table.add(operator, Array(dtype, total), loosely(total, dtype, 8), grad_output=grad, self=x,
                      indices=Array("int64", at))


def averages(table, operators, cases, dtype):
    forward, backward, inner = operators
    for shape, kernel, stride, padding, ceil in cases:
        rank = len(kernel)
        dims = [sliding(shape[d - rank], kernel[d], stride[d], padding[d], 1, ceil) for d in range(rank)]
        for include, override in ((True, None), (False, None), (True, 3)):
            def average(part, flat, window, sizes):
                count = 1
                for w, n, p in zip(window, sizes, padding):
                    count *= len([i for i in w if (i < n + p if include else 0 <= i < n)])
                return part.astype(np.float64).sum() / (override or count), 0
            x = draw("average", dtype, shape)
            expected = pooled(x.values, dims, average)[0]
            how = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil,
                   "count_include_pad": include, "divisor_override": override}
            if forward:
                table.add(forward, Array(dtype, expected), loosely(expected, dtype, 4), self=x, **how)
            grad, total = draw("average grad", dtype, expected.shape), np.zeros(shape)
            planes = total.reshape((-1,) + shape[-rank:])
            grads = grad.wide().astype(np.float64).reshape((-1,) + expected.shape[-rank:])
            for p in range(len(planes)):
                for place, window in windows_of(dims):
                    inside = [[i for i in w if 0 <= i < n] for w, n in zip(window, shape[-rank:])]
                    planes[p][np.ix_(*inside)] += grads[p][place] * average(np.ones(1), None, window, shape[-rank:])[0]
            near = loosely(total, dtype, 8)
            table.add(backward, Array(dtype, total), near, grad_output=grad, self=x, **how)
            if inner:
                table.add(inner, Array(dtype, total), near, grad_output=grad, input_size=list(shape), **how)


def fractions(table):
    for dtype in ("float32", "float64"):
        real = np.float32 if dtype == "float32" else np.float64
        for shape, kernel, size in (((2, 2, 8, 7), [3, 2], [2, 3]), ((3, 6, 6), [1, 1], [6, 6]),
                                    ((1, 1, 5, 5), [2, 2], [1, 4])):
            x = draw("fraction", dtype, shape)
            lead = shape[:-2] if len(shape) == 4 else (1,) + shape[:1]
            samples = Array(dtype, np.abs(draw("samples", dtype, lead + (2,), -1, 1).values) * real(0.9))
            planes, numbers = x.values.reshape((-1,) + shape[-2:]), samples.values.reshape((-1, 2))
            best, at = np.zeros((len(planes),) + tuple(size)), np.zeros((len(planes),) + tuple(size))
            for p, plane in enumerate(planes):
                starts = []
                for d in range(2):
                    room, u = shape[d - 2] - kernel[d], numbers[p][1 - d]
                    step = real(room) / real(size[d] - 1) if size[d] > 1 else real(0)
                    starts.append([int((real(i) + u) * step) - int(u * step) for i in range(size[d] - 1)] + [room])
                for i, row in enumerate(starts[0]):
                    for j, column in enumerate(starts[1]):
                        part = plane[row: row + kernel[0], column: column + kernel[1]]
                        y, z = np.unravel_index(np.argmax(part), part.shape)
                        best[p, i, j], at[p, i, j] = part[y, z], (row + y) * shape[-1] + column + z
            best, at = (each.reshape(shape[:-2] + tuple(size)) for each in (best, at))
            table.add("fractional_max_pool2d", [Array(dtype, best), Array("int64", at)], self=x, kernel_size=kernel,
                      output_size=size, random_samples=samples)
            grad = draw("fraction grad", dtype, best.shape)
            total = spread(shape, grad.values.astype(np.float64), 2, at)
            table.add("fractional_max_pool2d_backward", Array(dtype, total), loosely(total, dtype, 8), grad_output=grad,
                      self=x, kernel_size=kernel, output_size=size, indices=Array("int64", at))


def reflected(table):
    for dtype in FLOATS:
        shape = (2, 3, 4, 5)
        for pad in ([0, 0, 0, 0], [1, 2, 3, 1], [2, -1, 0, 1], [-1, 2, -2, 0]):
            wanted = (2, 3, 4 + pad[2] + pad[3], 5 + pad[0] + pad[1])
            grad, total = draw("border grad", dtype, wanted), np.zeros(shape)
            for n, c, i, j in np.ndindex(wanted):
                row, column = abs(i - pad[2]), abs(j - pad[0])
                total[n, c, 3 - abs(3 - row), 4 - abs(4 - column)] += float(grad.wide()[n, c, i, j])
            table.add("reflection_pad2d_backward", Array(dtype, total), loosely(total, dtype, 16), grad_output=grad,
                      self=draw("border", dtype, shape), padding=pad)


def combined(table):
    """scatter_reduce, and the two older forms of it."""
    words = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
    for dtype in FLOATS + ["int64", "int32", "uint8"]:
        x, src = draw("combined", dtype, (3, 4), 1, 4), draw("combined src", dtype, (2, 4), 1, 4)
        index = np.array([[0, 2, 1, 1], [0, 1, 1, 0]])
        for dim in (0, 1):
            for reduce in ("sum", "prod", "mean", "amax", "amin"):
                for include in (True, False):
                    whole = x.wide().astype(np.float64)
                    lists = {}
                    for at in np.ndindex(index.shape):
                        place = (index[at], at[1]) if dim == 0 else (at[0], index[at])
                        lists.setdefault(place, []).append(float(src.wide()[at]))
                    for place, values in lists.items():
                        values = ([whole[place]] if include else []) + values
                        whole[place] = np.floor(np.mean(values)) if reduce == "mean" and dtype not in FLOATS else \
                            np.mean(values) if reduce == "mean" else words[reduce].reduce(values)
                    near = loosely(whole, dtype, 8) if dtype in FLOATS else "exact"
                    how = {"self": x, "dim": dim, "index": Array("int64", index), "src": src}
                    table.add("scatter_reduce.two", Array(dtype, whole), near, **how, reduce=reduce,
                              **({} if include else {"include_self": False}))
                    if include and reduce in ("sum", "prod"):
                        old = "add" if reduce == "sum" else "multiply"
                        table.add("scatter.reduce", Array(dtype, whole), near, **how, reduce=old)
            for old in ("add", "multiply"):
                whole = x.wide().astype(np.float64)
                for at in np.ndindex(index.shape):
                    place = (index[at], at[1]) if dim == 0 else (at[0], index[at])
                    whole[place] = whole[place] + 2 if old == "add" else whole[place] * 2
                near = loosely(whole, dtype, 8) if dtype in FLOATS else "exact"
                table.add("scatter.value_reduce", Array(dtype, whole), near, self=x, dim=dim,
                          index=Array("int64", index), value=2, reduce=old)


def write(table):
    largest_backward(table)
    for dtype in FLOATS:
        averages(table, (None, "avg_pool2d_backward", None),
                 [(s, k, t, p, c) for s, k, t, p, d, c in POOLS if d == [1, 1]], dtype)
        averages(table, ("avg_pool3d", "avg_pool3d_backward", "_avg_pool3d_backward"), CUBES, dtype)
    fractions(table)
    reflected(table)
    combined(table)
