"""Rows of below/view_dtype, conversions, convolution, factories, random_like, positions, bags and windows."""

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
    """Of a convolution over planes, one product at a time: an element is the sum of those that its window sees."""
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
                  input=x, weight=w, bias_sizes=[4], stride=list(stride), padding=list(padding),
                  dilation=list(dilation),
                  transposed=False, output_padding=[0, 0], groups=groups, output_mask=[True, True, True])


def factories(table):
    """What random rows give where there is nothing to choose; of memory that nobody wrote the shape."""
    x = Array("float32", np.zeros((2, 3)))
    table.add("new_empty_strided", Array("float32", np.zeros((2, 2)), (1, 2)), "shape", self=x, size=[2, 2],
              stride=[1, 2])
    table.add("randint_like", x, self=x, high=1)
    table.add("randint_like", Array("int64", np.zeros((2, 3))), self=x, high=1, dtype="int64")
    table.add("randint_like.low_dtype", Array("float32", np.full((2, 3), -4)), self=x, low=-4, high=-3)
    table.add("randn.generator", x, "shape", size=[2, 3], generator=None)
    for p in (0.0, 1.0):
        table.add("bernoulli.float", Array("float32", np.full((2, 3), p)), self=x, p=p)


def bags(table):
    weight = draw("_embedding_bag", "float32", (10, 4))
    indices, offsets = Array("int64", [1, 2, 4, 5, 4, 3, 2, 9]), Array("int64", [0, 2, 6])
    starts = [0, 2, 6, 8]
    sums = np.array([weight.values[indices.values[a:b]].astype(np.float64).sum(0) for a, b in zip(starts, starts[1:])])
    none, zeros = Array("int64", []), Array("int64", [0, 0, 0])
    sizes, of = Array("int64", [2, 4, 2]), Array("int64", [0, 0, 1, 1, 1, 1, 2, 2])
    for operator in ("_embedding_bag", "_embedding_bag_forward_only"):
        near = [np.full((3, 4), 1e-4), "exact", "exact", "exact"]
        table.add(operator, [Array("float32", sums), none, zeros, zeros], near, weight=weight, indices=indices,
                  offsets=offsets)
        table.add(operator, [Array("float32", sums / sizes.values[:, None]), of, sizes, sizes], near, weight=weight,
                  indices=indices, offsets=offsets, mode=1)
    table.add("repeat_interleave.Tensor", Array("int64", np.repeat(np.arange(3), [2, 4, 6])),
              repeats=Array("int64", [2, 4, 6]), output_size=12)
    table.add("repeat_interleave.Tensor", Array("int64", [1, 1]), repeats=Array("int64", [0, 2, 0]))


def windows(table):
    x = draw("im2col", "float32", (2, 3, 5, 6))
    for kernel, dilation, padding, stride in (((2, 3), (1, 1), (0, 0), (1, 1)), ((2, 2), (2, 1), (1, 0), (2, 3))):
        padded = np.pad(x.values, [(0, 0), (0, 0)] + [(each, each) for each in padding])
        counts = [(padded.shape[at + 2] - dilation[at] * (kernel[at] - 1) - 1) // stride[at] + 1 for at in (0, 1)]
        rows = []
        for channel, i, j in itertools.product(range(3), range(kernel[0]), range(kernel[1])):
            first = padded[:, channel, i * dilation[0]:, j * dilation[1]:]
            rows.append(first[:, ::stride[0], ::stride[1]][:, :counts[0], :counts[1]].reshape(2, -1))
        table.add("im2col", Array("float32", np.stack(rows, 1)), self=x, kernel_size=list(kernel),
                  dilation=list(dilation), padding=list(padding), stride=list(stride))


def write(table):
    factories(table)
    bags(table)
    windows(table)
    bits(table)
    conversions(table)
    convolutions(table)
