"""Tensors of other sizes: each dimension is a matrix of weights, and backward is the transposed one."""

import numpy as np

from elements import Array, FLOATS
from moments import loosely
from pointwise import draw


def keys(distance):
    """Keys' cubic convolution with a = -0.75, by its two pieces."""
    a, d = -0.75, np.abs(distance)
    near = (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
    far = a * d ** 3 - 5 * a * d ** 2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def matrix(kind, size, count, corners, scale):
    weights = np.zeros((count, size))
    for at in range(count):
        if kind in ("nearest", "exact"):
            middle = 0.5 if kind == "exact" else 0
            place = (at + middle) / scale if scale else (at + middle) * size / count
            weights[at, min(int(np.floor(place)), size - 1)] = 1
            continue
        place = at * (size - 1) / max(1, count - 1) if corners else (at + 0.5) / (scale or count / size) - 0.5
        if kind == "linear":
            place = min(max(place, 0), size - 1)
            for element in range(size):
                weights[at, element] = max(0, 1 - abs(place - element))
            continue
        for element in range(int(np.floor(place)) - 1, int(np.floor(place)) + 3):
            weights[at, min(max(element, 0), size - 1)] += keys(place - element)
    return weights


def apply(values, matrices):
    for axis, weights in enumerate(matrices):
        values = np.moveaxis(np.tensordot(weights, values, (1, 2 + axis)), 0, 2 + axis)
    return values


# Name, kind, dimensions.
FORMS = [("upsample_nearest1d", "nearest", 1), ("upsample_nearest2d", "nearest", 2),
         ("upsample_nearest3d", "nearest", 3), ("_upsample_nearest_exact1d", "exact", 1),
         ("_upsample_nearest_exact2d", "exact", 2), ("_upsample_nearest_exact3d", "exact", 3),
         ("upsample_linear1d", "linear", 1), ("upsample_bilinear2d", "linear", 2),
         ("upsample_trilinear3d", "linear", 3), ("upsample_bicubic2d", "cubic", 2)]
SIZES = [((4, 5, 3), (8, 10, 7)), ((5, 3, 4), (3, 2, 4)), ((1, 6, 2), (3, 1, 5))]
SCALES = {1: ["scales"], 2: ["scales_h", "scales_w"], 3: ["scales_d", "scales_h", "scales_w"]}


def resampled(table):
    for operator, kind, dims in FORMS:
        smooth = kind in ("linear", "cubic")
        for dtype in FLOATS if smooth else FLOATS + ["uint8"]:
            for sizes, counts in SIZES if dtype == "float32" else SIZES[:1]:
                sizes, counts = sizes[:dims], counts[:dims]
                shape, result = (2, 2) + sizes, (2, 2) + counts
                for corners in (False, True) if smooth else (False,):
                    aligned = {"align_corners": corners} if smooth else {}
                    matrices = [matrix(kind, n, count, corners, None) for n, count in zip(sizes, counts)]
                    x, grad = draw("resampled", dtype, shape), draw("resampled grad", dtype, result)
                    expected = apply(x.wide().astype(np.float64), matrices)
                    near = loosely(expected, dtype, 24) if smooth else "exact"
                    if operator not in ("upsample_nearest2d", "upsample_bilinear2d"):
                        table.add(operator, Array(dtype, expected), near, self=x, output_size=list(counts), **aligned)
                        table.add(operator + ".vec", Array(dtype, expected), near,
                                  input=x.strided(list(range(dims + 2))[::-1]), output_size=list(counts), **aligned,
                                  scale_factors=None)
                    if dtype not in FLOATS:
                        continue
                    back = apply(grad.wide().astype(np.float64), [m.T for m in matrices])
                    table.add(operator + "_backward", Array(dtype, back), loosely(back, dtype, 64), grad_output=grad,
                              output_size=list(counts), input_size=list(shape), **aligned)
        sizes, scales = (4, 3, 5)[:dims], [2.0, 1.5, 0.6][:dims]
        counts = [int(np.floor(n * s)) for n, s in zip(sizes, scales)]
        matrices = [matrix(kind, n, count, False, s) for n, count, s in zip(sizes, counts, scales)]
        x = draw("by factors", "float32", (1, 2) + sizes)
        expected = apply(x.values.astype(np.float64), matrices)
        near, aligned = loosely(expected, "float32", 24), {"align_corners": False} if smooth else {}
        if operator not in ("upsample_nearest2d", "upsample_bilinear2d"):
            table.add(operator + ".vec", Array("float32", expected), near, input=x, output_size=None, **aligned,
                      scale_factors=scales)
        grad = draw("by factors grad", "float32", (1, 2) + tuple(counts))
        back = apply(grad.values.astype(np.float64), [m.T for m in matrices])
        table.add(operator + "_backward", Array("float32", back), loosely(back, "float32", 64), grad_output=grad,
                  output_size=list(counts), input_size=[1, 2] + list(sizes), **aligned,
                  **dict(zip(SCALES[dims], scales)))


def reflect(place, size, corners):
    low, high = (0, size - 1) if corners else (-0.5, size - 0.5)
    if high <= low:
        return 0
    while place < low or place > high:
        place = 2 * low - place if place < low else 2 * high - place
    return place


def bounded(place, size, outside, corners):
    if outside == 0:
        return place
    if outside == 2:
        place = reflect(place, size, corners)
    return min(max(place, 0), size - 1)


def element(plane, row, column):
    inside = 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]
    return plane[int(row), int(column)] if inside else 0


def sampled(plane, row, column, mode, outside, corners):
    height, width = plane.shape
    if mode == 2:
        top, left, total = np.floor(row), np.floor(column), 0
        for i in range(-1, 3):
            for j in range(-1, 3):
                y, x = bounded(top + i, height, outside, corners), bounded(left + j, width, outside, corners)
                total += element(plane, y, x) * keys(row - top - i) * keys(column - left - j)
        return total
    row, column = bounded(row, height, outside, corners), bounded(column, width, outside, corners)
    if mode == 1:
        return element(plane, np.round(row), np.round(column))
    top, left = np.floor(row), np.floor(column)
    return sum(element(plane, y, x) * max(0, 1 - abs(row - y)) * max(0, 1 - abs(column - x))
               for y in (top, top + 1) for x in (left, left + 1))


def grids(table):
    for dtype in FLOATS:
        for mode in range(3):
            for outside in range(3):
                for corners in (False, True):
                    x = draw("image", dtype, (2, 2, 4, 5))
                    grid = Array(dtype, draw("grid", dtype, (2, 3, 3, 2), -1, 1).wide() * 1.5)
                    v, places = x.wide().astype(np.float64), grid.wide().astype(np.float64)
                    expected = np.zeros((2, 2, 3, 3))
                    for n, c, i, j in np.ndindex(expected.shape):
                        column, row = [(p + 1) / 2 * (size - 1) if corners else ((p + 1) * size - 1) / 2
                                       for p, size in zip(places[n, i, j], (5, 4))]
                        expected[n, c, i, j] = sampled(v[n, c], row, column, mode, outside, corners)
                    if mode == 1 and dtype in ("float16", "bfloat16"):
                        continue  # a tie may be rounded away before it is one
                    table.add("grid_sampler_2d", Array(dtype, expected), loosely(expected, dtype, 64), input=x,
                              grid=grid, interpolation_mode=mode, padding_mode=outside, align_corners=corners)


def write(table):
    resampled(table)
    grids(table)
