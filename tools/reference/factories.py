"""Tensors from nothing."""

import numpy as np

from elements import Array, ORDER, convert
from pointwise import draw


def write(table):
    for size in ([2, 3], [], [0, 4], [5]):
        table.add("zeros", Array("float32", np.zeros(size)), size=size)
        table.add("ones", Array("float32", np.ones(size)), size=size)
        table.add("full", Array("int64", np.full(size, 7)), size=size, fill_value=7)
        table.add("full", Array("float32", np.full(size, 0.1)), size=size, fill_value=0.1)
        table.add("full", Array("bool", np.full(size, True)), size=size, fill_value=True)
        table.add("empty.memory_format", Array("float32", np.zeros(size)), "shape", size=size)
        strides = [int(np.prod(size[:dim])) for dim in range(len(size))]
        table.add("empty_strided", Array("float32", np.zeros(size)), "shape", size=size, stride=strides)
    for dtype in ORDER:
        table.add("zeros", Array(dtype, np.zeros(3)), size=[3], dtype=dtype)
        table.add("ones", Array(dtype, np.ones(3)), size=[3], dtype=dtype)
        table.add("empty.memory_format", Array(dtype, np.zeros(3)), "shape", size=[3], dtype=dtype)
        for value in (1, 2.5):
            table.add("full", Array(dtype, np.full(3, convert(value, dtype))), size=[3], fill_value=value, dtype=dtype)
        x = draw("like", dtype, (2, 3))
        table.add("zeros_like", Array(dtype, np.zeros((2, 3))), self=x)
        table.add("ones_like", Array(dtype, np.ones((2, 3))), self=x)
        table.add("full_like", Array(dtype, np.full((2, 3), convert(2.5, dtype))), self=x, fill_value=2.5)
        table.add("empty_like", Array(dtype, np.zeros((2, 3))), "shape", self=x)
        table.add("zeros_like", Array("int16", np.zeros((2, 3))), self=x, dtype="int16")
        table.add("ones_like", Array("float64", np.ones((2, 3))), self=x.strided([0, 1]), dtype="float64")
        table.add("full_like", Array("float16", np.full((2, 3), 3)), self=x, fill_value=3, dtype="float16")
        table.add("empty_like", Array("int8", np.zeros((2, 3))), "shape", self=x, dtype="int8")
        if dtype != "bool":
            table.add("arange", Array(dtype, np.arange(6)), end=6, dtype=dtype)
            table.add("arange.start_step", Array(dtype, np.arange(2, 9, 3)), start=2, end=9, step=3, dtype=dtype)
    for end in (0, 1, 5):
        table.add("arange", Array("int64", np.arange(end)), end=end)
    table.add("arange", Array("float32", np.arange(3.5)), end=3.5)
    for start, end, step in ((2, 7, 1), (7, 2, -2), (-3, 3, 2), (5, 5, 1), (0, 10, 4)):
        table.add("arange.start_step", Array("int64", np.arange(start, end, step)), start=start, end=end, step=step)
    for start, end, step in ((0.0, 1.0, 0.25), (1.0, -1.0, -0.5), (0, 2, 0.5)):
        table.add("arange.start_step", Array("float32", np.arange(start, end, step)), start=start, end=end, step=step)
    for n in (0, 1, 3):
        table.add("eye", Array("float32", np.eye(n)), n=n)
        table.add("eye.m", Array("float32", np.eye(n, 4)), n=n, m=4)
    for dtype in ORDER:
        table.add("eye", Array(dtype, np.eye(2)), n=2, dtype=dtype)
        table.add("eye.m", Array(dtype, np.eye(3, 2)), n=3, m=2, dtype=dtype)
        table.add("scalar_tensor", Array(dtype, 2), s=2, dtype=dtype)
        x = draw("new", dtype, (2, 3))
        for size in ([2, 2], [], [0, 3]):
            table.add("new_zeros", Array(dtype, np.zeros(size)), self=x, size=size)
            table.add("new_ones", Array(dtype, np.ones(size)), self=x, size=size)
            table.add("new_full", Array(dtype, np.full(size, convert(2.5, dtype))), self=x, size=size, fill_value=2.5)
            table.add("new_empty", Array(dtype, np.zeros(size)), "shape", self=x, size=size)
        table.add("new_zeros", Array("int16", np.zeros(3)), self=x, size=[3], dtype="int16")
        table.add("new_ones", Array("float64", np.ones(3)), self=x, size=[3], dtype="float64")
        table.add("new_full", Array("int8", np.full(3, 7)), self=x, size=[3], fill_value=7, dtype="int8")
        table.add("new_empty", Array("bool", np.zeros(3)), "shape", self=x, size=[3], dtype="bool")
    table.add("scalar_tensor", Array("float32", 0.1), s=0.1)
    table.add("scalar_tensor", Array("float32", 3), s=3)
    for start, end, steps in ((0, 1, 5), (-3.0, 2.5, 8), (2, 2, 3), (1, 0, 11), (5, 9, 1), (0, 1, 0), (0, 1, 2)):
        values = np.linspace(float(start), float(end), steps)
        bound = np.abs(values) * 2.0**-22 + max(abs(start), abs(end)) * 2.0**-23 * 2
        table.add("linspace", Array("float32", values), bound, start=start, end=end, steps=steps)
        table.add("linspace", Array("float64", values), bound * 2.0**-29, start=start, end=end, steps=steps,
                  dtype="float64")
    table.add("linspace", Array("int64", [0, 2, 5, 7, 10]), start=0, end=10, steps=5, dtype="int64")
