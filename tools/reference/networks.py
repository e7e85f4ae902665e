"""Convolutions over one to three dimensions with their gradients, and attention: sums written out with NumPy."""

import itertools

import numpy as np

from elements import FLOATS, Array
from pointwise import draw

EPSILON = {"float64": 2.0 ** -52, "float32": 2.0 ** -23, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}


def windows(sizes, kernel, stride, dilation):
    """By element of the kernel: its place, and the slices of the (padded) image that it meets."""
    for at in itertools.product(*map(range, kernel)):
        yield at, tuple(slice(a * d, a * d + (n - 1) * s + 1, s)
                        for a, d, n, s in zip(at, dilation, sizes, stride))


def apart(x, groups):
    """Channels as [groups, channels of one]."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


def flat(x):
    """The image as one dimension."""
    return x.reshape(*x.shape[:3], -1)


def padded(x, padding):
    return np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])


def sizes_of(image, kernel, stride, padding, dilation):
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(image, kernel, stride, padding, dilation)]


def convolve(x, w, stride, padding, dilation, groups):
    sizes = sizes_of(x.shape[2:], w.shape[2:], stride, padding, dilation)
    x, split = padded(x, padding), w.reshape(groups, -1, *w.shape[1:])
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    for at, place in windows(sizes, w.shape[2:], stride, dilation):
        part = apart(x[(slice(None), slice(None)) + place], groups)
        out += np.einsum("ngc...,goc->ngo...", part, split[(slice(None),) * 3 + at]).reshape(out.shape)
    return out


def input_gradient(grad, w, image, stride, padding, dilation, groups):
    split = w.reshape(groups, -1, *w.shape[1:])
    out = np.zeros((grad.shape[0], w.shape[1] * groups, *[n + 2 * p for n, p in zip(image, padding)]))
    for at, place in windows(grad.shape[2:], w.shape[2:], stride, dilation):
        part = np.einsum("ngo...,goc->ngc...", apart(grad, groups), split[(slice(None),) * 3 + at])
        out[(slice(None), slice(None)) + place] += part.reshape(grad.shape[0], -1, *grad.shape[2:])
    return out[(slice(None), slice(None)) + tuple(slice(p, p + n) for n, p in zip(image, padding))]


def weight_gradient(grad, x, kernel, stride, padding, dilation, groups):
    x, out = padded(x, padding), np.zeros((grad.shape[1], x.shape[1] // groups, *kernel))
    for at, place in windows(grad.shape[2:], kernel, stride, dilation):
        part = apart(x[(slice(None), slice(None)) + place], groups)
        both = np.einsum("ngox,ngcx->goc", flat(apart(grad, groups)), flat(part))
        out[(slice(None), slice(None)) + at] = both.reshape(out.shape[:2])
    return out


def add_sum(table, operator, function, first, second, bias, dtype, arguments):
    """A function that is linear in both operands: of absolute values it tells how large the terms are."""
    a, b = first[1].values.astype(np.float64), second[1].values.astype(np.float64)
    exact, terms = function(a, b), function(np.abs(a), np.abs(b))
    given = {first[0]: first[1], second[0]: second[1]}
    if bias is not None:
        row = bias.values.astype(np.float64).reshape(-1, *[1] * (exact.ndim - 2))
        exact, terms = exact + row, terms + np.abs(row)
        given["bias"] = bias
    # Halves are rounded once or twice: behind the sum, and behind the bias.
    bound = terms * EPSILON["float64" if dtype == "float64" else "float32"] * 64
    if dtype in ("float16", "bfloat16"):
        bound = bound + terms * EPSILON[dtype] * 2
    table.add(operator, Array(dtype, exact), bound, **given, **arguments)


# Image, weight, stride, padding, dilation, groups.
CASES = {1: [((2, 3, 7), (4, 3, 3), [2], [1], [1], 1), ((1, 4, 6), (6, 2, 2), [1], [0], [2], 2)],
         2: [((2, 3, 5, 6), (4, 3, 3, 2), [1, 2], [1, 0], [1, 1], 1),
             ((1, 4, 5, 5), (4, 1, 3, 3), [1, 1], [1, 1], [2, 1], 4)],
         3: [((1, 2, 4, 3, 4), (3, 2, 2, 2, 3), [1, 1, 2], [1, 0, 1], [1, 2, 1], 1),
             ((2, 4, 3, 3, 3), (2, 2, 1, 2, 2), [2, 1, 1], [0, 0, 1], [1, 1, 1], 2)]}


def convolutions(table):
    for dtype, dims in itertools.product(FLOATS, CASES):
        for number, (shape, kernel, stride, padding, dilation, groups) in enumerate(CASES[dims]):
            x, weight = draw("conv x", dtype, shape), draw("conv w", dtype, kernel)
            bias = draw("conv b", dtype, kernel[:1]) if number == 0 else None
            rule = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}

            def forward(a, b):
                return convolve(a, b, stride, padding, dilation, groups)

            image, row = ("input", x), ("weight", weight)
            if dims != 2:
                add_sum(table, f"conv{dims}d", forward, image, row, bias, dtype, rule)
            whole = dict(rule, transposed=False, output_padding=[0] * dims)
            add_sum(table, "convolution", forward, image, row, bias, dtype,
                    whole if bias is not None else dict(whole, bias=None))

            sizes = sizes_of(shape[2:], kernel[2:], stride, padding, dilation)
            grad = draw("conv grad", dtype, (shape[0], kernel[0], *sizes))
            add_sum(table, "_convolution_input_gradient",
                    lambda a, b: input_gradient(a, b, shape[2:], stride, padding, dilation, groups),
                    ("grad_output", grad), row, None, dtype, dict(rule, input_size=list(shape)))
            add_sum(table, "_convolution_weight_gradient",
                    lambda a, b: weight_gradient(a, b, kernel[2:], stride, padding, dilation, groups),
                    ("grad_output", grad), ("input", x), None, dtype, dict(rule, weight_size=list(kernel)))

            # Transposed: what the weight leads from is what it led to.
            extra = [s - 1 for s in stride]
            result = [(n - 1) * s - 2 * p + d * (k - 1) + 1 + e
                      for n, s, p, d, k, e in zip(sizes, stride, padding, dilation, kernel[2:], extra)]
            shift = draw("conv b", dtype, (kernel[1] * groups,)) if number == 1 else None

            def transposed(a, b):
                return input_gradient(a, b, result, stride, padding, dilation, groups)

            name = "conv_transpose1d" if dims == 1 else f"conv_transpose{dims}d.input"
            add_sum(table, name, transposed, ("input", grad), row, shift, dtype, dict(rule, output_padding=extra))
            whole = dict(rule, transposed=True, output_padding=extra)
            add_sum(table, "convolution", transposed, ("input", grad), row, shift, dtype,
                    whole if shift is not None else dict(whole, bias=None))


def attend(q, k, v, mask, causal, scale):
    """Result, logarithm of the sum of exponentials, weights."""
    scores = np.einsum("bhqf,bhkf->bhqk", q, k) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    most = scores.max(-1, keepdims=True)
    total = np.exp(scores - most).sum(-1, keepdims=True)
    weights = np.exp(scores - most) / total
    return np.einsum("bhqk,bhkf->bhqf", weights, v), (most + np.log(total))[..., 0], weights


def attention(table):
    for dtype in FLOATS:
        wide = "float64" if dtype == "float64" else "float32"
        near = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-2, "bfloat16": 1.5e-1}[dtype]
        sums = {"float64": 1e-13, "float32": 1e-5, "float16": 1e-4, "bfloat16": 1e-4}[dtype]
        q, k = draw("attention q", dtype, (1, 2, 3, 4)), draw("attention k", dtype, (1, 2, 5, 4))
        v, grad = draw("attention v", dtype, (1, 2, 5, 3)), draw("attention g", dtype, (1, 2, 3, 3))
        values = [each.values.astype(np.float64) for each in (q, k, v, grad)]
        added = draw("attention mask", dtype, (3, 5))
        seen = Array("bool", (np.arange(15).reshape(3, 5) * 7 % 5 > 1))
        for mask, causal, scale in ((None, False, None), (None, True, 0.25), (added, False, 0.5), (seen, False, None)):
            factor = 0.5 if scale is None else scale
            shown = None if mask is None else mask.values if mask is seen else mask.values.astype(np.float64)
            out, logarithms, weights = attend(*values[:3], shown, causal, factor)
            rule = {"is_causal": causal, "attn_mask": mask, "scale": scale}
            table.add("scaled_dot_product_attention", Array(dtype, out), near, query=q, key=k, value=v, **rule)
            tiled = "_scaled_dot_product_flash_attention_for_cpu"
            table.add(tiled, [Array(dtype, out), Array(wide, logarithms)], [near, sums], query=q, key=k, value=v,
                      **rule)
            by_weight = np.einsum("bhqf,bhkf->bhqk", values[3], values[2])
            by_score = weights * (by_weight - (weights * by_weight).sum(-1, keepdims=True)) * factor
            gradients = [np.einsum("bhqk,bhkf->bhqf", by_score, values[1]),
                         np.einsum("bhqk,bhqf->bhkf", by_score, values[0]),
                         np.einsum("bhqk,bhqf->bhkf", weights, values[3])]
            table.add(tiled + "_backward", [Array(dtype, each) for each in gradients], [near * 4] * 3, grad_out=grad,
                      query=q, key=k, value=v, out=Array(dtype, out), logsumexp=Array(wide, logarithms),
                      dropout_p=0.0, **rule)


def write(table):
    convolutions(table)
    attention(table)
