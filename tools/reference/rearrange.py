"""Pieces, repetitions and orders."""

import numpy as np

from elements import Array, ORDER, promote
from pointwise import draw


def parts(dtype, arrays):
    return [Array(dtype, each) for each in arrays]


def both(table, operator, result, x, /, **arguments):
    """Also from an input with gaps and another order of its dimensions."""
    table.add(operator, result, self=x, **arguments)
    if len(x.shape) > 1:
        table.add(operator, result, self=x.strided(list(range(len(x.shape)))), **arguments)


def views_in_place(table):
    """The tensor itself gets the shape."""
    x = draw("in place", "float32", (3, 1, 4))
    for a, b in ((0, 2), (-1, 1), (1, 1)):
        swapped = Array("float32", np.swapaxes(x.values, a, b))
        for operator in ("transpose_", "swapdims_", "swapdims"):
            both(table, operator, swapped, x, dim0=a, dim1=b)
        for operator in ("swapaxes_", "swapaxes"):
            both(table, operator, swapped, x, axis0=a, axis1=b)
    both(table, "squeeze_", Array("float32", np.squeeze(x.values)), x)
    both(table, "squeeze_.dim", Array("float32", np.squeeze(x.values, 1)), x, dim=1)
    both(table, "squeeze_.dim", x, x, dim=0)
    for dim in (0, 2, -1):
        both(table, "unsqueeze_", Array("float32", np.expand_dims(x.values, dim)), x, dim=dim)
    matrix, row = draw("t_", "float32", (3, 4)), draw("t_ of a row", "float32", (3,))
    both(table, "t_", Array("float32", matrix.values.T), matrix)
    both(table, "t_", row, row)
    table.add("as_strided_", Array("float32", [[matrix.values[0, 1], matrix.values[0, 3]], [matrix.values[0, 2],
              matrix.values[1, 0]]]), self=matrix, size=[2, 2], stride=[1, 2], storage_offset=1)
    for size in ((3, 2), (2, 6), (12,), (3, 4), (0, 3), ()):
        kept = matrix.values.reshape(-1)[:int(np.prod(size))].reshape(size)
        table.add("resize_", Array("float32", kept), self=matrix, size=list(size))


def pieces(table):
    x = draw("split", "float32", (5, 4))
    for size, dim in ((2, 0), (5, 0), (7, 0), (1, 1), (3, -1)):
        cuts = list(range(size, x.shape[dim], size))
        both(table, "split.Tensor", parts("float32", np.split(x.values, cuts, axis=dim)), x, split_size=size, dim=dim)
    for sizes, dim in (([2, 3], 0), ([1, 0, 3], 1), ([5], 0), ([4], -1)):
        result = parts("float32", np.split(x.values, np.cumsum(sizes)[:-1], axis=dim))
        both(table, "split_with_sizes", result, x, split_sizes=sizes, dim=dim)
        both(table, "split.sizes", result, x, split_size=sizes, dim=dim)
    for chunks, dim, cuts in ((2, 0, [3]), (3, 0, [2, 4]), (4, 0, [2, 4]), (2, 1, [2]), (9, -1, [1, 2, 3])):
        both(table, "chunk", parts("float32", np.split(x.values, cuts, axis=dim)), x, chunks=chunks, dim=dim)
    for dim in (0, 1, -1):
        both(table, "unbind.int", parts("float32", [np.take(x.values, i, axis=dim) for i in range(x.shape[dim])]), x,
             dim=dim)
        for start, length in ((1, 2), (0, 4), (-2, 1), (4, 0)):
            if dim == 0 or start + length <= 4:
                cut = [slice(None)] * 2
                first = start % x.shape[dim] if start < 0 else start
                cut[dim] = slice(first, first + length)
                both(table, "narrow", Array("float32", x.values[tuple(cut)]), x, dim=dim, start=start, length=length)
    y = draw("view_as", "float32", (2, 6))
    other = draw("other", "int32", (3, 4))
    table.add("view_as", Array("float32", y.values.reshape(3, 4)), self=y, other=other)
    both(table, "reshape_as", Array("float32", y.values.reshape(3, 4)), y, other=other)
    row = draw("expand_as", "float32", (1, 4))
    both(table, "expand_as", Array("float32", np.broadcast_to(row.values, (3, 4))), row, other=other)
    for dim, sizes, shape in ((1, [2, 3], (2, 2, 3)), (-1, [-1, 2], (2, 3, 2)), (0, [1, 2], (1, 2, 6))):
        both(table, "unflatten.int", Array("float32", y.values.reshape(shape)), y, dim=dim, sizes=sizes)
    z = draw("movedim", "float32", (2, 3, 4))
    for source, destination in ((0, 2), (-1, 0), (1, 1)):
        both(table, "movedim.int", Array("float32", np.moveaxis(z.values, source, destination)), z, source=source,
             destination=destination)
    for source, destination in (([0, 1], [2, 0]), ([2], [0]), ([0, 1, 2], [2, 1, 0])):
        both(table, "movedim.intlist", Array("float32", np.moveaxis(z.values, source, destination)), z, source=source,
             destination=destination)
    for offset, a, b in ((0, 0, 1), (1, 0, 1), (-1, 0, 2), (2, 2, 1), (0, -1, -2), (3, 1, 2), (5, 0, 1), (-7, 0, 1)):
        cut = np.diagonal(z.values, offset, a, b)
        both(table, "diagonal", Array("float32", cut), z, offset=offset, dim1=a, dim2=b)
        src = draw("diagonal", "float32", cut.shape)
        whole = z.values.copy()
        moved = np.moveaxis(whole, (a, b), (-2, -1))
        for i in range(cut.shape[-1]):
            moved[..., i + max(0, -offset), i + max(0, offset)] = src.values[..., i]
        table.add("diagonal_scatter", Array("float32", whole), self=z, src=src, offset=offset, dim1=a, dim2=b)
    for dtype in ORDER:
        m = draw("diagonal", dtype, (3, 3))
        table.add("diagonal", Array(dtype, np.diagonal(m.values)), self=m)
        table.add("diagonal_scatter", Array(dtype, np.where(np.eye(3, dtype=bool), convert_one(dtype), m.values)),
                  self=m,
                  src=Array(dtype, np.ones(3)))


def convert_one(dtype):
    return Array(dtype, 1).values


def orders(table):
    for dtypes in [("float32",) * 3] + [(dtype, dtype) for dtype in ORDER] + [("int32", "float16"),
                                                                              ("float32", "float64")]:
        tensors = [draw(f"stack {position}", dtype, (2, 3)) for position, dtype in enumerate(dtypes)]
        result = dtypes[0]
        for dtype in dtypes[1:]:
            result = promote(result, dtype)
        for dim in (0, 1, -1):
            table.add("stack", Array(result, np.stack([each.values for each in tensors], axis=dim)), tensors=tensors,
                      dim=dim)
    table.add("stack", Array("float32", [1, 2]), tensors=[Array("float32", 1), Array("float32", 2)])
    for dtype in ORDER:
        x = draw("repeat", dtype, (2, 3))
        for repeats in ([2, 2], [1, 3], [2, 1, 2], [0, 2], [1, 1]):
            both(table, "repeat", Array(dtype, np.tile(x.values, repeats)), x, repeats=repeats)
        both(table, "tile", Array(dtype, np.tile(x.values, [2])), x, dims=[2])
        both(table, "tile", Array(dtype, np.tile(x.values, [2, 1, 2])), x, dims=[2, 1, 2])
        both(table, "flip", Array(dtype, np.flip(x.values, (0, 1))), x, dims=[0, 1])
        both(table, "flip", Array(dtype, np.flip(x.values, 1)), x, dims=[-1])
        both(table, "_roll", Array(dtype, np.roll(x.values, 2, 1)), x, shift=2, dim=1)
        square = draw("triangle", dtype, (3, 4))
        for diagonal in (0, 1, -1, 5, -5):
            both(table, "tril", Array(dtype, np.tril(square.values, diagonal)), square, diagonal=diagonal)
            both(table, "triu", Array(dtype, np.triu(square.values, diagonal)), square, diagonal=diagonal)
    x = draw("repeat", "float32", (3,))
    table.add("repeat", Array("float32", np.tile(np.asarray(2.5), (2, 3))), self=Array("float32", 2.5), repeats=[2, 3])
    table.add("repeat", Array("float32", 2.5), self=Array("float32", 2.5), repeats=[])
    table.add("repeat", Array("float32", np.zeros((0, 4))), self=Array("float32", np.zeros((0, 2))), repeats=[3, 2])
    z = draw("roll", "float32", (2, 3, 4))
    for shifts, dims in (([1], [0]), ([-1], [2]), ([7], [-1]), ([1, 2], [1, 2]), ([0], [1])):
        both(table, "roll", Array("float32", np.roll(z.values, shifts, dims)), z, shifts=shifts, dims=dims)
        if len(dims) == 1:
            both(table, "_roll", Array("float32", np.roll(z.values, shifts[0], dims[0])), z, shift=shifts[0],
                 dim=dims[0])
    both(table, "roll", Array("float32", np.roll(z.values, 5)), z, shifts=[5])
    table.add("roll", Array("float32", np.zeros((0, 2))), self=Array("float32", np.zeros((0, 2))), shifts=[1], dims=[0])
    both(table, "flip", z, z, dims=[])
    table.add("flip", Array("float32", 2.5), self=Array("float32", 2.5), dims=[])
    both(table, "tril", Array("float32", np.tril(z.values)), z)
    both(table, "triu", Array("float32", np.triu(z.values)), z)
    for repeats in (0, 1, 3):
        both(table, "repeat_interleave.self_int", Array("float32", np.repeat(z.values, repeats, axis=1)), z,
             repeats=repeats, dim=1)
        both(table, "repeat_interleave.self_int", Array("float32", np.repeat(z.values, repeats)), z, repeats=repeats)


def write(table):
    pieces(table)
    views_in_place(table)
    orders(table)
