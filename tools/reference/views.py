"""The same elements under another geometry, and copies that rearrange."""

import numpy as np

from elements import Array, ORDER, convert, promote
from pointwise import draw


def each(table, operator, result, x, /, **arguments):
    """Also from an input with gaps and another order of its dimensions."""
    table.add(operator, Array(x.dtype, result), self=x, **arguments)
    if len(x.shape) > 1 and operator != "view":
        table.add(operator, Array(x.dtype, result), self=x.strided(list(range(len(x.shape)))), **arguments)


def geometry(table):
    x = draw("view", "float32", (2, 3, 4))
    v = x.values
    for size in ([24], [6, 4], [-1, 12], [2, 3, 2, 2], [1, 24, 1]):
        each(table, "view", v.reshape(size), x, size=size)
        each(table, "reshape", v.reshape(size), x, shape=size)
    empty = Array("float32", np.zeros((0, 3)))
    each(table, "view", empty.values.reshape(3, 0), empty, size=[3, 0])
    each(table, "reshape", empty.values.reshape(0), empty, shape=[0])
    number = draw("view", "float32", ())
    each(table, "view", number.values.reshape(1, 1), number, size=[1, 1])
    each(table, "reshape", v[:1, :1, :1].reshape(()), Array("float32", v[:1, :1, :1]), shape=[])
    for start, end, shape in ((0, -1, (24,)), (1, 2, (2, 12)), (0, 1, (6, 4)), (1, 1, (2, 3, 4))):
        each(table, "flatten.using_ints", v.reshape(shape), x, start_dim=start, end_dim=end)
    each(table, "flatten.using_ints", number.values.reshape(1), number)
    row, column = draw("expand", "float32", (1, 3)), draw("expand", "float32", (2, 1))
    each(table, "expand", np.broadcast_to(row.values, (4, 3)), row, size=[4, 3])
    each(table, "expand", np.broadcast_to(row.values, (4, 3)), row, size=[4, -1])
    each(table, "expand", np.broadcast_to(row.values, (2, 5, 3)), row, size=[2, 5, 3])
    each(table, "expand", np.broadcast_to(column.values, (3, 2, 2)), column, size=[3, 2, 2])
    each(table, "expand", np.broadcast_to(number.values, (2, 2)), number, size=[2, 2])
    each(table, "expand", np.zeros((0, 3)), row, size=[0, 3])
    for dims in ([0, 1, 2], [2, 0, 1], [1, -1, 0]):
        each(table, "permute", v.transpose(dims), x, dims=dims)
    for a, b in ((0, 1), (-1, 0), (1, 1)):
        each(table, "transpose.int", np.swapaxes(v, a, b), x, dim0=a, dim1=b)
    for shape in ((3, 5), (4,), ()):
        y = draw("t", "int32", shape)
        each(table, "t", y.values.T, y)
    one = draw("squeeze", "float32", (1, 3, 1, 2))
    each(table, "squeeze", one.values.squeeze(), one)
    each(table, "squeeze", number.values, number)
    for dim, shape in ((0, (3, 1, 2)), (2, (1, 3, 2)), (-2, (1, 3, 2)), (1, (1, 3, 1, 2))):
        each(table, "squeeze.dim", one.values.reshape(shape), one, dim=dim)
    for dim in (0, 1, 3, -1, -4):
        each(table, "unsqueeze", np.expand_dims(v, dim), x, dim=dim)
    each(table, "unsqueeze", number.values.reshape(1), number, dim=0)
    for operator in ("alias", "detach"):
        for dtype in ORDER:
            y = draw(operator, dtype, (2, 3))
            each(table, operator, y.values, y)


SLICES = [{}, {"start": 1}, {"end": -1}, {"start": -3, "end": 100}, {"start": 1, "end": 4, "step": 2},
          {"start": 4, "end": 2},
          {"step": 3}, {"start": 9}]


def pieces(table):
    x = draw("slice", "float32", (5, 4))
    for arguments in SLICES:
        for dim in (0, -1):
            cut = [slice(None)] * 2
            cut[dim] = slice(arguments.get("start"), arguments.get("end"), arguments.get("step"))
            part = x.values[tuple(cut)]
            each(table, "slice.Tensor", part, x, dim=dim, **arguments)
            src = draw("slice src", "float32", part.shape)
            whole = x.values.copy()
            whole[tuple(cut)] = src.values
            table.add("slice_scatter", Array("float32", whole), self=x, src=src, dim=dim, **arguments)
    for dtype in ORDER:
        y, src = draw("slice", dtype, (3, 3)), draw("src", dtype, (3, 1))
        whole = y.values.copy()
        whole[:, 1:2] = src.values
        table.add("slice_scatter", Array(dtype, whole), self=y, src=src, dim=1, start=1, end=2)
    for dim, index in ((0, 0), (0, -1), (1, 2), (-1, -4)):
        part = np.take(x.values, index, axis=dim)
        each(table, "select.int", part, x, dim=dim, index=index)
        src, whole = draw("select", "float32", part.shape), x.values.copy()
        whole[(slice(None),) * (dim % 2) + (index,)] = src.values
        table.add("select_scatter", Array("float32", whole), self=x, src=src, dim=dim, index=index)


def joined(table):
    for dtypes in [("float32",) * 3] + [(dtype, dtype) for dtype in ORDER] + [("int32", "float16"), ("bool", "int64"),
                                                                              ("float32", "float64")]:
        tensors = [draw(f"cat {position}", dtype, (2, 3)) for position, dtype in enumerate(dtypes)]
        result = dtypes[0]
        for dtype in dtypes[1:]:
            result = promote(result, dtype)
        for dim in (0, 1, -1):
            expected = np.concatenate([convert(each_.values, result) for each_ in tensors], axis=dim)
            table.add("cat", Array(result, expected), tensors=tensors, dim=dim)
    a, b, c = draw("cat", "float32", (2, 3)), Array("float32", np.zeros((2, 0))), draw("cat", "float32",
                                                                                       (2, 5)).strided([0, 1])
    table.add("cat", Array("float32", np.concatenate([a.values, b.values, c.values], axis=1)), tensors=[a, b, c], dim=1)
    table.add("cat", a, tensors=[a])
    table.add("cat", a, tensors=[Array("float32", []), a])
    table.add("cat", Array("float32", np.zeros((0, 3))), tensors=[Array("float32", np.zeros((0, 3)))] * 2)


def picked(table):
    for dtype in ORDER:
        x = draw("gather", dtype, (3, 4))
        for dim, index in ((0, [[0, 2, 1, 1]]), (1, [[3, 0], [1, 1], [2, 3]]), (-1, [[0] * 6] * 3)):
            at = Array("int64" if dtype != "float16" else "int32", index)
            trimmed = x.values[tuple(slice(0, n) if d != dim % 2 else slice(None) for d, n in enumerate(at.shape))]
            table.add("gather", Array(dtype, np.take_along_axis(trimmed, at.values.astype(np.int64), axis=dim)),
                      self=x, dim=dim, index=at)
    x = draw("gather", "float32", (2, 3, 4))
    index = np.random.RandomState(5).randint(0, 3, (2, 5, 4))
    expected = np.take_along_axis(x.values, index, axis=1)
    table.add("gather", Array("float32", expected), self=x.strided([1, 2, 0]), dim=1,
              index=Array("int64", index).strided([2, 0, 1]))
    table.add("gather", Array("float32", np.zeros((2, 0, 4))), self=x, dim=1, index=Array("int64", np.zeros((2, 0, 4))))
    table.add("gather", Array("float32", 2.5), self=Array("float32", 2.5), dim=0, index=Array("int64", 0))


def summed(table):
    x = draw("sum_to_size", "float32", (2, 3, 4))
    v = x.values.astype(np.float64)
    for size, axis in (([2, 3, 4], ()), ([3, 4], (0,)), ([1, 4], (0, 1)), ([2, 1, 4], (1,)), ([], (0, 1, 2)),
                       ([4], (0, 1))):
        count = int(np.prod([x.shape[a] for a in axis], dtype=int))
        total, magnitude = v.sum(axis=axis).reshape(size), np.abs(v).sum(axis=axis).reshape(size)
        table.add_sum("sum_to_size", total, magnitude, count, "float32", self=x, size=size)


def strided(table):
    """Views of a storage by strides of their own; elements of a view that lie at one place are one element."""
    from numpy.lib.stride_tricks import as_strided
    for dtype in ORDER:
        x = draw("as_strided", dtype, (3, 4))
        flat = np.ascontiguousarray(x.values).reshape(-1)
        places = np.arange(12)
        for size, stride, offset in (((2, 2), (1, 2), 1), ((3, 2), (1, 1), 0), ((5,), (2,), 3), ((), (), 7),
                                     ((2, 3), (0, 4), 2), ((0, 2), (1, 1), 0)):
            at = as_strided(places[offset:], size, [8 * step for step in stride])
            size, stride = list(size), list(stride)
            table.add("as_strided", Array(dtype, flat[at]), self=x, size=size, stride=stride, storage_offset=offset)
            table.add("_strided_view", Array(dtype, flat[at]), self=x, size=size, stride=stride, offset=offset)
            if size == [5]:
                table.add("slice_inverse", x, self=x, src=draw("slice_inverse", dtype, x.shape), dim=1, start=0, end=4)
            table.add("_strided_gather", Array(dtype, flat[at]), self=x.strided([1, 0]), self_stride=[4, 1],
                      size=size, stride=stride, offset=offset, order=[0, 1])
            src = draw("as_strided src", dtype, at.shape)
            if len(np.unique(at)) == at.size:
                whole = flat.copy()
                whole[at] = src.values
                whole = Array(dtype, whole.reshape(3, 4))
                table.add("as_strided_scatter", whole, self=x, src=src, size=size, stride=stride, storage_offset=offset)
                order = sorted(range(len(size)), key=lambda dim: -stride[dim])
                table.add("_strided_scatter", whole, self=x.strided([1, 0]), src=src, self_stride=[4, 1],
                          stride=stride, offset=offset, order=order)
            if dtype in ("float32", "float64"):
                total, magnitude = np.zeros(12), np.zeros(12)
                np.add.at(total, at, src.values.astype(np.float64))
                np.add.at(magnitude, at, np.abs(src.values.astype(np.float64)))
                table.add_sum("_strided_fold", total.reshape(3, 4), magnitude.reshape(3, 4), 2, dtype, grad=src,
                              self_size=[3, 4], self_stride=[4, 1], stride=stride, offset=offset)
    # As if what lies between the columns of a wider matrix were not there.
    x = draw("gather places", "float32", (2, 3))
    table.add("_strided_gather", Array("float32", [x.values[0, 1], x.values[0, 2], 0, x.values[1, 0]]), self=x,
              self_stride=[4, 1], size=[4], stride=[1], offset=1, order=[0, 1])


def write(table):
    geometry(table)
    pieces(table)
    joined(table)
    picked(table)
    summed(table)
    strided(table)
