"""Operators of graphs below autograd: gradients by themselves, copies of views, forward with what backward needs."""

import math

import numpy as np

from elements import Array, convert, wide
from pointwise import draw

ERF = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


def gelu_slope(x, approximate):
    if approximate == "none":
        return 0.5 * (1 + ERF(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    factor = math.sqrt(2 / math.pi)
    t = np.tanh(factor * (x + 0.044715 * x ** 3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * factor * (1 + 3 * 0.044715 * x * x)


def elu_slope(x, alpha, scale, input_scale, is_result):
    falling = input_scale * (x + alpha * scale) if is_result else alpha * scale * input_scale * np.exp(x * input_scale)
    return np.where(x <= 0, falling, scale)


def mish_slope(x):
    t = np.tanh(softplus(x))
    return t + x * sigmoid(x) * (1 - t * t)


# Operator, the name of the tensor beside the gradient, its slope, and further arguments.
SLOPES = [
    ("gelu_backward", "self", lambda x, **a: gelu_slope(x, **a), [{"approximate": "none"}, {"approximate": "tanh"}]),
    ("silu_backward", "self", lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))), [{}]),
    ("sigmoid_backward", "output", lambda y: (1 - y) * y, [{}]),
    ("tanh_backward", "output", lambda y: 1 - y * y, [{}]),
    ("hardtanh_backward", "self", lambda x, min_val, max_val: ((x > min_val) & (x < max_val)).astype(float),
     [{"min_val": -1.0, "max_val": 0.5}]),
    ("hardsigmoid_backward", "self", lambda x: ((x > -3) & (x < 3)) / 6.0, [{}]),
    ("hardswish_backward", "self", lambda x: np.where(x > -3, np.where(x < 3, x / 3 + 0.5, 1.0), 0.0), [{}]),
    ("leaky_relu_backward", "self", lambda x, negative_slope, self_is_result: np.where(x > 0, 1.0, negative_slope),
     [{"negative_slope": 0.25, "self_is_result": False}, {"negative_slope": 0.5, "self_is_result": True}]),
    ("elu_backward", "self_or_result", elu_slope,
     [{"alpha": 1.5, "scale": 2.0, "input_scale": 0.5, "is_result": False},
      {"alpha": 1.5, "scale": 2.0, "input_scale": 0.5, "is_result": True}]),
    ("softplus_backward", "self", lambda x, beta, threshold: np.where(x * beta > threshold, 1.0, sigmoid(x * beta)),
     [{"beta": 2.0, "threshold": 3.0}]),
    ("mish_backward", "self", mish_slope, [{}]),
]
CORNERS = np.array([-4.0, -3.0, -1.0, 0.0, 0.5, 1.0, 3.0, 4.0])


def slopes(table):
    for operator, name, slope, variants in SLOPES:
        for arguments in variants:
            for dtype in ("float32", "float64", "bfloat16"):
                for x in (draw(operator, dtype, (3, 5)), Array(dtype, CORNERS)):
                    grad = draw(operator + " grad", dtype, x.shape)
                    exact = grad.values.astype(np.float64) * slope(x.values.astype(np.float64), **arguments)
                    # Sums that cancel are as exact as their terms.
                    step = {"float32": 2.0 ** -23, "float64": 2.0 ** -52, "bfloat16": 2.0 ** -8}[dtype]
                    table.add(operator, Array(dtype, convert(exact, wide(dtype))), 8 * step * (np.abs(exact) + 4),
                              grad_output=grad, **{name: x}, **arguments)


def copies(table):
    x = draw("copies", "float32", (2, 3, 4))
    v = x.values
    turned = x.strided([2, 0, 1])

    def each(operator, result, **arguments):
        table.add(operator, Array("float32", result), self=x, **arguments)
        table.add(operator, Array("float32", result), self=turned, **arguments)

    for operator in ("view_copy", "_unsafe_view"):
        for size in ([24], [6, 4], [-1, 12]):
            table.add(operator, Array("float32", v.reshape(size)), self=x, size=size)
    each("expand_copy", np.broadcast_to(v, (5, 2, 3, 4)), size=[5, 2, 3, -1])
    each("permute_copy", v.transpose(2, 0, 1), dims=[2, 0, -2])
    each("transpose_copy.int", v.swapaxes(0, 2), dim0=0, dim1=-1)
    table.add("t_copy", Array("float32", v[0].T), self=Array("float32", v[0]))
    table.add("t_copy", Array("float32", v[0, 0]), self=Array("float32", v[0, 0]))
    flat = Array("float32", v.reshape(1, 24, 1))
    table.add("squeeze_copy", Array("float32", v.reshape(24)), self=flat)
    table.add("squeeze_copy.dim", Array("float32", v.reshape(1, 24)), self=flat, dim=-1)
    each("squeeze_copy.dim", v, dim=1)
    each("unsqueeze_copy", v[:, None], dim=1)
    each("slice_copy.Tensor", v[:, :, 1:4:2], dim=2, start=1, end=9, step=2)
    each("slice_copy.Tensor", v[1:], start=-1)
    each("select_copy.int", v[:, -1], dim=1, index=-1)
    each("narrow_copy", v[:, 1:3], dim=1, start=1, length=2)
    each("diagonal_copy", np.diagonal(v, 1, 0, 2), offset=1, dim1=0, dim2=2)
    each("unfold_copy", np.stack([v[:, :, 0:2], v[:, :, 2:4]], 2), dimension=2, size=2, step=2)
    table.add("unfold_copy", Array("float32", np.zeros((1, 1, 0))), self=Array("float32", np.zeros((1, 0))),
              dimension=1, size=0, step=7)
    table.add("as_strided_copy", Array("float32", v.reshape(-1)[[[1, 2], [4, 5], [7, 8]]]), self=x, size=[3, 2],
              stride=[3, 1], storage_offset=1)
    each("detach_copy", v)
    each("alias_copy", v)


def gradients_of_views(table):
    grad = draw("view gradients", "float32", (2, 2, 4))
    expected = np.zeros((2, 5, 4), np.float32)
    expected[:, 1:5:2] = grad.values
    table.add("slice_backward", Array("float32", expected), grad_output=grad, input_sizes=[2, 5, 4], dim=1, start=1,
              end=5, step=2)
    expected = np.zeros((2, 2, 3, 4), np.float32)
    expected[:, :, 1] = grad.values
    table.add("select_backward", Array("float32", expected), grad_output=grad, input_sizes=[2, 2, 3, 4], dim=2,
              index=-2)
    line = draw("view gradients", "float32", (2, 3))
    expected = np.zeros((3, 4, 2), np.float32)
    for i in range(3):
        expected[i, i + 1] = line.values[:, i]
    table.add("diagonal_backward", Array("float32", expected), grad_output=line, input_sizes=[3, 4, 2], offset=1,
              dim1=0, dim2=1)


def softmaxes(table):
    for dtype in ("float32", "float64"):
        x, grad = draw("softmax parts", dtype, (3, 5)), draw("softmax parts grad", dtype, (3, 5))
        v, g = x.values.astype(np.float64), grad.values.astype(np.float64)
        step = 2.0 ** (-23 if dtype == "float32" else -52)
        for dim in (0, 1, -1):
            power = np.exp(v - v.max(dim, keepdims=True))
            y = power / power.sum(dim, keepdims=True)
            table.add("_softmax", Array(dtype, y), 16 * step * np.ones(y.shape), self=x, dim=dim, half_to_float=False)
            table.add("_log_softmax", Array(dtype, np.log(y)), 16 * step * (np.abs(np.log(y)) + 8), self=x, dim=dim,
                      half_to_float=False)
            # What is given is rounded, and what is expected starts from there.
            output, logs = Array(dtype, y), Array(dtype, np.log(y))
            p, l = output.values.astype(np.float64), logs.values.astype(np.float64)
            table.add("_softmax_backward_data", Array(dtype, g * p - p * (g * p).sum(dim, keepdims=True)),
                      64 * step * np.ones(y.shape), grad_output=grad, output=output, dim=dim, input_dtype=dtype)
            table.add("_log_softmax_backward_data", Array(dtype, g - np.exp(l) * g.sum(dim, keepdims=True)),
                      256 * step * np.ones(y.shape), grad_output=grad, output=logs, dim=dim, input_dtype=dtype)
    x = Array("float16", [0.0, 1.0, -1.0])
    y = np.exp(x.values.astype(np.float64))
    table.add("_softmax", Array("float32", y / y.sum()), "ulp 8", self=x, dim=0, half_to_float=True)


    x = Array("float32", [[0.0, 1.0], [-np.inf, -np.inf], [-np.inf, 2.0]])
    e = np.e
    table.add("_safe_softmax", Array("float32", [[1 / (1 + e), e / (1 + e)], [0.0, 0.0], [0.0, 1.0]]), "ulp 4", self=x,
              dim=1)
    grad, mask = draw("dropout parts", "float32", (2, 3)), Array("bool", [[1, 0, 1], [0, 0, 1]])
    table.add("native_dropout_backward", Array("float32", grad.values * mask.values * np.float32(2)), grad_output=grad,
              mask=mask, scale=2.0)
    x, weight = draw("prelu parts", "float32", (2, 3)), Array("float32", [0.5, 0.25, 2.0])
    table.add("_prelu_kernel", Array("float32", np.where(x.values > 0, x.values, x.values * weight.values)), self=x,
              weight=weight)


def masked_indices(table):
    x, mask, index = draw("masked index", "float32", (8,)), Array("bool", [1, 0, 1]), Array("int64", [3, 9, -2])
    v = x.values
    table.add("_unsafe_index.Tensor", Array("float32", v[[3, 0, -2]]), self=x, indices=[Array("int64", [3, 0, -2])])
    table.add("_unsafe_masked_index", Array("float32", [v[3], 1.0, v[-2]]), self=x, mask=mask, indices=[index], fill=1)
    values, expected = draw("masked values", "float32", (3,)), v.copy()
    expected[3] += values.values[0]
    expected[-2] += values.values[2]
    table.add("_unsafe_masked_index_put_accumulate", Array("float32", expected), "ulp 1", self=x, mask=mask,
              indices=[index], values=values)


def losses(table):
    x = draw("nll parts", "float32", (4, 3))
    weight = Array("float32", [0.5, 2.0, 1.5])
    v = x.values.astype(np.float64)
    for w in (None, weight):
        for target, ignored in ((Array("int64", [2, 0, -100, 1]), -100), (Array("int64", [2, 0, 1, 1]), 1)):
            counts = target.values != ignored
            classes = np.where(counts, target.values, 0)
            factor = np.where(counts, 1.0 if w is None else w.values.astype(np.float64)[classes], 0.0)
            each = -v[np.arange(4), classes] * factor
            for reduction in (0, 1, 2):
                total = factor.sum() if reduction else 0.0
                loss = [each, each.sum() / factor.sum(), each.sum()][reduction]
                shape = (4,) if reduction == 0 else ()
                table.add("nll_loss_forward", [Array("float32", np.reshape(loss, shape)), Array("float32", total)],
                          [1e-5 * np.ones(shape), 1e-6], self=x, target=target, weight=w, reduction=reduction,
                          ignore_index=ignored)
                grad = draw("nll parts grad", "float32", shape)
                share = grad.values.astype(np.float64) * factor / (factor.sum() if reduction == 1 else 1)
                expected = np.zeros((4, 3))
                expected[np.arange(4), classes] = -share
                table.add("nll_loss_backward", Array("float32", expected), 1e-5 * np.ones((4, 3)), grad_output=grad,
                          self=x, target=target, weight=w, reduction=reduction, ignore_index=ignored,
                          total_weight=Array("float32", total))
    one, single = Array("float32", v[0]), Array("int64", np.array(2))
    table.add("nll_loss_forward", [Array("float32", -v[0, 2]), Array("float32", 1.0)], self=one, target=single,
              weight=None, reduction=1, ignore_index=-100)
    table.add("nll_loss_backward", Array("float32", [0.0, 0.0, -3.0]), grad_output=Array("float32", 3.0), self=one,
              target=single, weight=None, reduction=1, ignore_index=-100, total_weight=Array("float32", 1.0))
    a, b = draw("mse parts", "float32", (2, 3)), draw("mse parts target", "float32", (2, 3))
    apart = 2 * (a.values.astype(np.float64) - b.values.astype(np.float64))
    for reduction in (0, 1, 2):
        grad = draw("mse parts grad", "float32", (2, 3) if reduction == 0 else ())
        expected = apart * grad.values.astype(np.float64) / (6 if reduction == 1 else 1)
        table.add("mse_loss_backward", Array("float32", expected), 1e-5 * np.ones((2, 3)), grad_output=grad, self=a,
                  target=b, reduction=reduction)


def tables(table):
    indices, grad = Array("int64", [[1, 1, 0], [3, 1, 3]]), draw("embedding parts", "float32", (2, 3, 2))
    flat, rows = indices.values.reshape(-1), grad.values.reshape(6, 2).astype(np.float64)
    for padding in (-1, 0, 1):
        for scaled in (False, True):
            expected = np.zeros((5, 2))
            for index, row in zip(flat, rows):
                if index != padding:
                    expected[index] += row / (np.sum(flat == index) if scaled else 1)
            table.add("embedding_dense_backward", Array("float32", expected), 1e-5 * np.ones((5, 2)), grad_output=grad,
                      indices=indices, num_weights=5, padding_idx=padding, scale_grad_by_freq=scaled)


def write(table):
    slopes(table)
    copies(table)
    gradients_of_views(table)
    softmaxes(table)
    masked_indices(table)
    losses(table)
    tables(table)
