"""Elements picked and put at positions that tensors give, and results whose size depends on data."""

import numpy as np

from elements import Array, FLOATS, INTEGERS, ORDER, convert
from pointwise import draw


def ints(values, dtype="int64"):
    return Array(dtype, values)


def at(index):
    """The same index for NumPy."""
    return tuple(slice(None) if each is None else each.values if each.dtype == "bool"
                 else each.values.astype(np.int64) for each in index)


CASES = [
    ((5,), [ints([0, 4, -1, 2])]),
    ((3, 4), [ints([2, 0])]),
    ((3, 4), [None, ints([[3, 0], [1, -4]])]),
    ((3, 4), [ints([2, 0, 1]), ints([3, 3, -1])]),
    ((3, 4), [ints([[2], [0]]), ints([1, 3, 0])]),
    ((2, 3, 4), [None, ints([2, 0]), ints([1, 1])]),
    ((2, 3, 4), [ints([1, 0]), None, ints([3, 2])]),
    ((2, 3, 4), [ints(1), None, ints([3, 2], "int32")]),
    ((2, 3, 4), [None, None, ints([[0, 3]])]),
    ((2, 3), [ints(np.zeros((0,)))]),
    ((2, 3), [ints(-1)]),
    ((2, 3, 2, 2), [None, ints([2, 0, 1]), ints([[0], [1]])]),
]


def masks(shape):
    random = np.random.RandomState(11)
    yield [Array("bool", random.randint(0, 2, shape))]
    yield [Array("bool", random.randint(0, 2, shape[:1]))]
    yield [Array("bool", np.zeros(shape))]
    yield [Array("bool", np.ones(shape))]
    if len(shape) == 3:
        yield [None, Array("bool", random.randint(0, 2, shape[1:]))]
        # One position: broadcast with two.
        yield [ints([1, 0]), Array("bool", [0, 1, 0])]


def distinct(shape, index):
    """Whether no place is named twice."""
    marks = np.zeros(shape, np.int64)
    np.add.at(marks, at(index), 1)
    return marks.max(initial=0) <= 1


def picks(table):
    for shape, index in CASES:
        for dtype in ORDER if len(shape) == 2 and index[0] is not None else ("float32", "int64"):
            x = draw("index", dtype, shape)
            expected = x.values[at(index)]
            table.add("_index", Array(dtype, expected), self=x, indices=index)
            table.add("index.Tensor", Array(dtype, expected), self=x.strided(list(range(len(shape)))), indices=index)
    for shape in ((5,), (3, 4), (2, 3, 4)):
        for index in masks(shape):
            x = draw("index", "float32", shape)
            table.add("index.Tensor", Array("float32", x.values[at(index)]), self=x, indices=index)
    for dtype in ORDER:
        x, mask = draw("masked_select", dtype, (3, 4)), draw("masked_select mask", "bool", (3, 4))
        table.add("masked_select", Array(dtype, x.values[mask.values]), self=x.strided([0, 1]), mask=mask)
        row, column = draw("masked_select", dtype, (4,)), draw("masked_select", "bool", (3, 1))
        both = np.broadcast_arrays(row.values, column.values)
        table.add("masked_select", Array(dtype, both[0][both[1]]), self=row, mask=column)
    table.add("masked_select", Array("float32", [2.5]), self=Array("float32", 2.5), mask=Array("bool", True))


def puts(table):
    for shape, index in CASES:
        for dtype in ORDER if len(shape) == 2 and index[0] is not None else ("float32", "int64"):
            x = draw("index_put", dtype, shape)
            part = x.values[at(index)].shape
            for values in (draw("index_put values", dtype, part), draw("index_put values", dtype, part[-1:]),
                           draw("index_put values", dtype, ())):
                if values.values.ndim and values.shape[0] != part[-1]:
                    continue
                whole = x.values.astype(np.float32) if dtype in ("float16", "bfloat16") else x.values.copy()
                if distinct(shape, index) or values.values.ndim == 0:
                    put = whole.copy()
                    put[at(index)] = values.values
                    for operator in ("_index_put", "index_put"):
                        table.add(operator, Array(dtype, put), self=x, indices=index, values=values)
                if dtype == "bool":
                    continue
                np.add.at(whole, at(index), values.values.astype(whole.dtype))
                near = "ulp 2" if dtype in FLOATS else "exact"
                for operator in ("_index_put", "index_put"):
                    table.add(operator, Array(dtype, whole), near, self=x.strided(list(range(len(shape)))),
                              indices=index, values=values, accumulate=True)
    for shape in ((5,), (3, 4), (2, 3, 4)):
        for index in masks(shape):
            x = draw("index_put", "float32", shape)
            part = x.values[at(index)].shape
            for values in (draw("mask values", "float32", part), Array("float32", 7)):
                whole = x.values.copy()
                whole[at(index)] = values.values
                table.add("index_put", Array("float32", whole), self=x, indices=index, values=values)
    for dtype in ORDER:
        for shape, dim, index in (((3, 4), 0, [2, 0, 2]), ((3, 4), 1, [3, 1]), ((3, 4), -1, []), ((5,), 0, [0, 0, 4])):
            x, at_ = draw("index_select", dtype, shape), ints(index, "int32" if dtype == "float16" else "int64")
            table.add("index_select", Array(dtype, np.take(x.values, at_.values.astype(np.int64), axis=dim)),
                      self=x.strided(list(range(len(shape)))),
                      dim=dim, index=at_)
            if dtype == "bool":
                continue
            source = draw("index_add", dtype, tuple(len(index) if d == dim % len(shape) else n for d,
                                                    n in enumerate(shape)))
            for alpha in (1, 2):
                whole = x.wide().copy()
                where = [slice(None)] * len(shape)
                where[dim] = at_.values.astype(np.int64)
                np.add.at(whole, tuple(where), convert(source.wide() * whole.dtype.type(alpha),
                                                       dtype).astype(whole.dtype))
                more = {} if alpha == 1 else {"alpha": alpha}
                table.add("index_add", Array(dtype, whole), "ulp 2" if dtype in FLOATS else "exact", self=x, dim=dim,
                          index=at_, source=source, **more)
    table.add("index_select", Array("float32", 2.5), self=Array("float32", 2.5), dim=0, index=ints(0))
    for dtype in ORDER:
        x, src = draw("scatter", dtype, (3, 4)), draw("scatter src", dtype, (3, 4))
        for dim, index in ((0, [[2, 0, 1, 1]]), (1, [[3, 0], [1, 2], [2, 3]]), (-1, [[2, 1, 0, 3]] * 3)):
            places, whole = ints(index, "int32" if dtype == "int16" else "int64"), x.values.copy()
            part = src.values[: places.shape[0], : places.shape[1]]
            trimmed = whole[tuple(slice(0, n) if d != dim % 2 else slice(None) for d, n in enumerate(places.shape))]
            np.put_along_axis(trimmed, places.values.astype(np.int64), part, axis=dim)
            table.add("scatter.src", Array(dtype, whole), self=x, dim=dim, index=places, src=src)
            whole = x.values.copy()
            trimmed = whole[tuple(slice(0, n) if d != dim % 2 else slice(None) for d, n in enumerate(places.shape))]
            np.put_along_axis(trimmed, places.values.astype(np.int64), convert(1, dtype), axis=dim)
            table.add("scatter.value", Array(dtype, whole), self=x.strided([0, 1]), dim=dim, index=places, value=1)


def runs(values, axis):
    """The first of each run of equal slices, the run of each slice, and how long runs are."""
    slices = np.moveaxis(values, axis, 0)
    fresh = np.array([at == 0 or not np.array_equal(slices[at], slices[at - 1]) for at in range(len(slices))], bool)
    number = np.cumsum(fresh) - 1
    return np.moveaxis(slices[fresh], 0, axis), number, np.bincount(number)


def distinct_slices(table, dtype):
    y = Array(dtype, np.random.RandomState(5).randint(0, 2, (6, 2)))
    z = Array(dtype, np.random.RandomState(6).randint(0, 2, (2, 7, 2)))
    for x, dim in ((y, 0), (y, 1), (z, 1), (z, -1), (z.strided([2, 0, 1]), 1)):
        values, inverse, counts = np.unique(x.values, return_inverse=True, return_counts=True, axis=dim)
        expected = [Array(dtype, values), ints(inverse.reshape(-1)), ints(counts)]
        table.add("unique_dim", expected, self=x, dim=dim)
        table.add("unique", expected, self=x, dim=dim, return_inverse=True, return_counts=True)
        values, inverse, counts = runs(x.values, dim)
        expected = [Array(dtype, values), ints(inverse), ints(counts)]
        table.add("unique_dim_consecutive", expected, self=x, dim=dim)
        table.add("unique_consecutive", expected, self=x, dim=dim)
        values, inverse, counts = runs(x.values.reshape(-1), 0)
        none = ints(np.zeros(0))
        table.add("unique_consecutive", [Array(dtype, values), ints(inverse.reshape(x.shape)), ints(counts)], self=x,
                  return_inverse=True, return_counts=True)
        table.add("unique_consecutive", [Array(dtype, values), none, none], self=x)


def counted(table):
    """Results whose size depends on data."""
    for dtype in ORDER:
        for shape in ((7,), (3, 4), (2, 3, 2), (0, 3)) if dtype == "float32" else ((3, 4),):
            x = draw("nonzero", dtype, shape, -0.3, 0.3)
            if dtype in FLOATS:
                x = Array(dtype, np.round(x.values * 3))
            table.add("nonzero", ints(np.argwhere(x.values != 0)), self=x.strided(list(range(len(shape)))))
            table.add("where", [ints(each) for each in np.nonzero(x.values)], condition=x)
        y = Array(dtype, np.random.RandomState(3).randint(0, 2 if dtype == "bool" else 5, (3, 4)))
        for operator in ("_unique2", "unique"):
            values, inverse, counts = np.unique(y.values, return_inverse=True, return_counts=True)
            none = ints(np.zeros(0))
            table.add(operator, [Array(dtype, values), ints(inverse.reshape(3, 4)), ints(counts)], self=y,
                      return_inverse=True, return_counts=True)
            table.add(operator, [Array(dtype, values), none, ints(counts)], self=y.strided([0, 1]), return_counts=True)
            table.add(operator, [Array(dtype, values), none, none], self=y)
    table.add("nonzero", ints(np.zeros((1, 0))), self=Array("float32", 2.0))
    table.add("nonzero", ints(np.zeros((0, 0))), self=Array("float32", 0.0))
    table.add("nonzero", ints([[0], [2], [4]]), self=Array("float32", [np.nan, 0.0, -np.inf, -0.0, 1e-30]))
    table.add("where", [ints([0])], condition=Array("bool", True))
    special = Array("float64", [np.nan, 1.0, -np.inf, np.nan, 1.0, np.inf])
    values, counts = np.unique(special.values, return_counts=True, equal_nan=False)
    table.add("_unique2", [Array("float64", values), ints(np.zeros(0)), ints(counts)], self=special, return_counts=True)
    table.add("_unique2", [Array("float32", []), ints(np.zeros((0, 2))), ints([])],
              self=Array("float32", np.zeros((0, 2))), return_inverse=True,
              return_counts=True)
    for dtype in ORDER:
        y = Array(dtype, np.random.RandomState(3).randint(0, 2 if dtype == "bool" else 5, (3, 4)))
        values, inverse = np.unique(y.values, return_inverse=True)
        table.add("_unique", [Array(dtype, values), ints(inverse.reshape(3, 4))], self=y.strided([0, 1]),
                  return_inverse=True)
        table.add("_unique", [Array(dtype, values), ints(np.zeros(0))], self=y)
        if dtype not in ("int8", "int16", "int32", "float16"):
            distinct_slices(table, dtype)
    table.add("unique_dim", [Array("float32", np.zeros((0, 3))), ints([]), ints([])],
              self=Array("float32", np.zeros((0, 3))), dim=0)
    special = Array("float64", [np.nan, np.nan, 1.0, 1.0, 0.0, -0.0, 1.0])
    table.add("unique_consecutive",
              [Array("float64", [np.nan, np.nan, 1.0, 0.0, 1.0]), ints([0, 1, 2, 2, 3, 3, 4]), ints([1, 1, 2, 2, 1])],
              self=special, return_inverse=True, return_counts=True)
    for repeats in ([1, 0, 3], [0, 0, 0], [2, 2, 2]):
        for dtype in ("int64", "int32"):
            table.add("_repeated_positions", ints(np.repeat(np.arange(3), repeats)), repeats=ints(repeats, dtype))
        x = draw("repeat_interleave", "float32", (3, 2))
        table.add("repeat_interleave.self_Tensor", Array("float32", np.repeat(x.values, repeats, axis=0)), self=x,
                  repeats=ints(repeats), dim=0)
        table.add("repeat_interleave.self_Tensor", Array("float32", np.repeat(x.values.reshape(-1)[:3], repeats)),
                  self=Array("float32", x.values.reshape(-1)[:3]), repeats=ints(repeats))
    table.add("repeat_interleave.self_Tensor", Array("float32", np.repeat(x.values, 2, axis=1)), self=x,
              repeats=ints([2]), dim=-1)
    table.add("_repeated_positions", ints([0, 2, 2]), repeats=ints([1, 0, 2]), output_size=3)


def write(table):
    picks(table)
    puts(table)
    counted(table)
