"""Volumes read at the places of a grid, or pooled by windows that samples choose; images made smaller without aliasing.
"""

import numpy as np

from elements import Array, FLOATS
from moments import loosely
from pointwise import draw
from resampling import apply, bounded
from windows import spread


def element(volume, place):
    inside = all(0 <= p < n for p, n in zip(place, volume.shape))
    return volume[tuple(int(p) for p in place)] if inside else 0


def sampled(volume, place, mode, outside, corners):
    place = [bounded(p, n, outside, corners) for p, n in zip(place, volume.shape)]
    if mode == 1:
        return element(volume, np.round(place))
    first, total = np.floor(place), 0
    for step in np.ndindex(2, 2, 2):
        at = first + step
        total += element(volume, at) * np.prod([max(0, 1 - abs(p - q)) for p, q in zip(place, at)])
    return total


def grids(table):
    for dtype in ("float32", "float64", "bfloat16"):
        for mode in range(2):
            for outside in range(3):
                for corners in (False, True):
                    if mode == 1 and dtype == "bfloat16":
                        continue  # a tie may be rounded away before it is one
                    x = draw("volume", dtype, (2, 1, 3, 2, 4))
                    grid = Array(dtype, draw("volume grid", dtype, (2, 2, 2, 2, 3), -1, 1).wide() * 1.5)
                    v, places = x.wide().astype(np.float64), grid.wide().astype(np.float64)
                    expected = np.zeros((2, 1, 2, 2, 2))
                    for n, c, i, j, k in np.ndindex(expected.shape):
                        place = [(p + 1) / 2 * (size - 1) if corners else ((p + 1) * size - 1) / 2
                                 for p, size in zip(places[n, i, j, k][::-1], v.shape[2:])]
                        expected[n, c, i, j, k] = sampled(v[n, c], place, mode, outside, corners)
                    how = {"grid": grid, "interpolation_mode": mode, "padding_mode": outside, "align_corners": corners}
                    for name in ("grid_sampler_3d", "grid_sampler"):
                        table.add(name, Array(dtype, expected), loosely(expected, dtype, 64), input=x, **how)


def triangle(distance):
    return max(0, 1 - abs(distance))


def keys(distance):
    """Keys' cubic convolution with a = -0.5."""
    a, d = -0.5, abs(distance)
    if d < 1:
        return (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
    return a * d ** 3 - 5 * a * d ** 2 + 8 * a * d - 4 * a if d < 2 else 0


def weights(kernel, reach, size, count, corners, scale):
    step = (size - 1) / (count - 1) if corners and count > 1 else 0 if corners else 1 / scale if scale else size / count
    wide, made = max(step, 1), np.zeros((count, size))
    for at in range(count):
        middle = (at + 0.5) * step
        first, end = max(int(middle - reach * wide + 0.5), 0), min(int(middle + reach * wide + 0.5), size)
        for each in range(first, end):
            made[at, each] = kernel((each - middle + 0.5) / wide)
        if made[at].sum() != 0:
            made[at] /= made[at].sum()
    return made


def smoothed(table):
    for name, kernel, reach in (("_upsample_bilinear2d_aa", triangle, 1), ("_upsample_bicubic2d_aa", keys, 2)):
        for dtype in ("float32", "float64"):
            for sizes, counts in (((7, 9), (3, 4)), ((4, 5), (6, 5)), ((5, 6), (1, 9))):
                for corners in (False, True):
                    x = draw("smoothed", dtype, (1, 2) + sizes)
                    matrices = [weights(kernel, reach, n, count, corners, None) for n, count in zip(sizes, counts)]
                    expected = apply(x.values.astype(np.float64), matrices)
                    how = {"output_size": list(counts), "align_corners": corners}
                    table.add(name, Array(dtype, expected), loosely(expected, dtype, 64), self=x, **how)
                    table.add(name + ".vec", Array(dtype, expected), loosely(expected, dtype, 64), input=x, **how,
                              scale_factors=None)
                    grad = draw("smoothed grad", dtype, (1, 2) + counts)
                    back = apply(grad.values.astype(np.float64), [m.T for m in matrices])
                    table.add(name + "_backward", Array(dtype, back), loosely(back, dtype, 64), grad_output=grad,
                              input_size=[1, 2] + list(sizes), **how)
        x, scales = draw("smoothed by", "float32", (1, 2, 8, 6)), [0.4, 1.5]
        matrices = [weights(kernel, reach, n, int(n * s), False, s) for n, s in zip((8, 6), scales)]
        expected = apply(x.values.astype(np.float64), matrices)
        table.add(name + ".vec", Array("float32", expected), loosely(expected, "float32", 64), input=x,
                  output_size=None, align_corners=False, scale_factors=scales)


def fractions(table):
    for dtype in ("float32", "float64"):
        real = np.float32 if dtype == "float32" else np.float64
        for shape, kernel, size in (((2, 2, 5, 6, 4), [2, 1, 2], [3, 2, 2]), ((3, 4, 4, 4), [1, 1, 1], [4, 4, 4])):
            x = draw("fraction volumes", dtype, shape)
            lead = shape[:-3] if len(shape) == 5 else (1,) + shape[:1]
            samples = Array(dtype, np.abs(draw("volume samples", dtype, lead + (3,), -1, 1).values) * real(0.9))
            volumes, numbers = x.values.reshape((-1,) + shape[-3:]), samples.values.reshape((-1, 3))
            best, at = np.zeros((len(volumes),) + tuple(size)), np.zeros((len(volumes),) + tuple(size))
            for p, volume in enumerate(volumes):
                starts = []
                for d in range(3):
                    room, u = shape[d - 3] - kernel[d], numbers[p][d]
                    step = real(room) / real(size[d] - 1)
                    starts.append([int((real(i) + u) * step) - int(u * step) for i in range(size[d] - 1)] + [room])
                for place in np.ndindex(*size):
                    first = [starts[d][place[d]] for d in range(3)]
                    part = volume[tuple(slice(f, f + k) for f, k in zip(first, kernel))]
                    inside = np.unravel_index(np.argmax(part), part.shape)
                    best[(p, *place)] = part[inside]
                    at[(p, *place)] = np.ravel_multi_index([f + i for f, i in zip(first, inside)], shape[-3:])
            best, at = (each.reshape(shape[:-3] + tuple(size)) for each in (best, at))
            how = {"kernel_size": kernel, "output_size": size}
            table.add("fractional_max_pool3d", [Array(dtype, best), Array("int64", at)], self=x, **how,
                      random_samples=samples)
            grad = draw("fraction volumes grad", dtype, best.shape)
            total = spread(shape, grad.values.astype(np.float64), 3, at)
            table.add("fractional_max_pool3d_backward", Array(dtype, total), loosely(total, dtype, 8), grad_output=grad,
                      self=x, **how, indices=Array("int64", at))


def write(table):
    grids(table)
    smoothed(table)
    fractions(table)
