"""Rows of below/view_dtype.cpp, below/conversions.cpp and below/convolution.cpp."""

import itertools

import numpy as np

from elements import Array, convert
from pointwise import draw


def bits(table):
    x = np.array([[1.0, -2.5, 0.0, 3e-40], [np.inf, -0.0, 7.25, 1e30]], np.float32)
    for operator in ("view.dtype", "_bits_as"):
        for dtype in ("int32", "int16", "uint8", "float64", "int64"):
            table.add(operator, Array(dtype, x.view(dtype)), self=Array("float32", x), dtype=dtype)
        y = np.array([[1, -1, 256, 3], [4, 5, -32768, 32767]], np.int16)
        for dtype in ("int8", "int32", "int64", "float16"):
            table.add(operator, Array(dtype, y.view(dtype)), self=Array("int16", y), dtype=dtype)


def conversions(table):
    x = draw("to.dtype_layout", "float32", (2, 3), -5, 5)
    table.add("to.dtype_layout", x, self=x)
    for dtype in ("float64", "int32"):
        table.add("to.dtype_layout", Array(dtype, convert(x.values, dtype)), self=x, dtype=dtype)


def gradients(x, w, grad, stride, padding, dilation, groups):
    """Of a convolution over planes, one product at a time: a result's element is the sum of those that its window sees."""
    edge = [(0, 0), (0, 0)] + [(padding[at],) * 2 for at in (0, 1)]
    padded = np.pad(x, edge)
    of_padded, of_w = np.zeros_like(padded), np.zeros_like(w)
    per_group = w.shape[0] // groups
    for image, out, row, column in itertools.product(*map(range, grad.shape)):
        first = out // per_group * w.shape[1]
        for channel, i, j in itertools.product(*map(range, w.shape[1:])):
            place = (image, first + channel, row * stride[0] + i * dilation[0], column * stride[1] + j * dilation[1])
            of_padded[place] += grad[image, out, row, column] * w[out, channel, i, j]
            of_w[out, channel, i, j] += grad[image, out, row, column] * padded[place]
    inner = tuple(slice(padding[at], padding[at] + x.shape[at + 2]) for at in (0, 1))
    return of_padded[(slice(None), slice(None)) + inner], of_w, grad.sum((0, 2, 3))


def convolutions(table):
    for groups, stride, padding, dilation in ((1, (1, 1), (0, 0), (1, 1)), (2, (2, 1), (1, 0), (1, 2))):
        x = draw("convolution_backward", "float64", (2, 4, 5, 6))
        w = draw("convolution_backward", "float64", (4, 4 // groups, 3, 2))
        sizes = [(x.shape[at + 2] + 2 * padding[at] - dilation[at] * (w.shape[at + 2] - 1) - 1) // stride[at] + 1
                 for at in (0, 1)]
        grad = draw("convolution_backward", "float64", (2, 4, *sizes))
        results = [Array("float64", each)
                   for each in gradients(x.values, w.values, grad.values, stride, padding, dilation, groups)]
        table.add("convolution_backward", results, [np.full(each.shape, 1e-10) for each in results], grad_output=grad,
                  input=x, weight=w, bias_sizes=[4], stride=list(stride), padding=list(padding), dilation=list(dilation),
                  transposed=False, output_padding=[0, 0], groups=groups, output_mask=[True, True, True])


def write(table):
    bits(table)
    conversions(table)
    convolutions(table)
