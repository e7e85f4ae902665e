"""Windows over images, borders, other sizes, and parts of networks."""

import numpy as np

from elements import Array, FLOATS, INTEGERS, ORDER, convert, wide
from pointwise import draw
from moments import loosely


def sliding(size, kernel, stride, padding, dilation, ceil):
    """Positions of each window along one dimension, those in the padding included."""
    reach = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (reach + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (count - 1) * stride >= size + padding:
        count -= 1
    return [[at * stride - padding + k * dilation for k in range(kernel)] for at in range(count)]


def even(size, count):
    return [list(range(at * size // count, -(-(at + 1) * size // count))) for at in range(count)]


def windows_of(dims):
    """Every combination of windows, one for each dimension, in row-major order."""
    if not dims:
        yield (), []
        return
    for at, window in enumerate(dims[0]):
        for rest_at, rest in windows_of(dims[1:]):
            yield (at,) + rest_at, [window] + rest


def pooled(values, dims, choose):
    rank = len(dims)
    lead, inner = values.shape[:-rank], values.shape[-rank:]
    planes = values.reshape((-1,) + inner)
    result = [np.zeros((len(planes),) + tuple(len(d) for d in dims), np.float64) for _ in range(2)]
    for p, plane in enumerate(planes):
        for at, window in windows_of(dims):
            inside = [[i for i in w if 0 <= i < n] for w, n in zip(window, inner)]
            part = plane[np.ix_(*inside)]
            flat = np.ravel_multi_index(np.ix_(*inside), inner)
            for target, value in zip(result, choose(part, flat, window, inner)):
                target[p][at] = value
    return [each.reshape(lead + tuple(len(d) for d in dims)) for each in result]


def largest(part, flat, window, inner):
    at = np.argmax(part)
    return part.reshape(-1)[at], flat.reshape(-1)[at]


POOLS = [((2, 3, 6, 5), [2, 2], [], [0, 0], [1, 1], False), ((1, 2, 7, 7), [3, 3], [2, 2], [1, 1], [1, 1], False),
         ((2, 6, 8), [2, 3], [1, 2], [1, 0], [1, 1], False), ((1, 1, 7, 6), [2, 2], [2, 3], [0, 1], [1, 1], True),
         ((1, 2, 9, 8), [2, 3], [2, 1], [1, 1], [2, 2], False), ((0, 2, 4, 4), [2, 2], [], [0, 0], [1, 1], False)]


def pools(table):
    for dtype in FLOATS + ["int32"]:
        for shape, kernel, stride, padding, dilation, ceil in POOLS if dtype == "float32" else POOLS[:2]:
            x = draw("pool", dtype, shape)
            steps = stride or kernel
            dims = [sliding(shape[-2 + d], kernel[d], steps[d], padding[d], dilation[d], ceil) for d in range(2)]
            best, at = pooled(x.values, dims, largest)
            arguments = {"self": x, "kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation,
                         "ceil_mode": ceil}
            table.add("max_pool2d_with_indices", [Array(dtype, best), Array("int64", at)], **arguments)
            arguments["self"] = x.strided(list(range(len(shape))))
            table.add("max_pool2d", Array(dtype, best), **arguments)
            if dtype == "int32" or dilation != [1, 1]:
                continue
            for include, override in ((True, None), (False, None), (True, 3)):
                def average(part, flat, window, inner):
                    count = 1
                    for w, n, p in zip(window, inner, padding):
                        count *= len([i for i in w if (i < n + p if include else 0 <= i < n)])
                    return part.astype(np.float64).sum() / (override or count), 0
                expected = pooled(x.values, dims, average)[0]
                more = {} if include else {"count_include_pad": False}
                more |= {} if override is None else {"divisor_override": override}
                table.add("avg_pool2d", Array(dtype, expected), loosely(expected, dtype), self=x, kernel_size=kernel,
                          stride=stride, padding=padding,
                          ceil_mode=ceil, **more)
                grad = draw("pool grad", dtype, expected.shape)
                total = np.zeros(shape)
                planes = total.reshape((-1,) + shape[-2:])
                grads = grad.values.astype(np.float64).reshape((-1,) + expected.shape[-2:])
                for p in range(len(planes)):
                    for place, window in windows_of(dims):
                        inside = [[i for i in w if 0 <= i < n] for w, n in zip(window, shape[-2:])]
                        count = average(np.zeros((1, 1)) + 1, None, window, shape[-2:])[0]
                        planes[p][np.ix_(*inside)] += grads[p][place] * count
                table.add("_avg_pool2d_backward", Array(dtype, total), loosely(total, dtype, 4), grad_output=grad,
                          input_size=list(shape),
                          kernel_size=kernel, stride=stride, padding=padding, ceil_mode=ceil,
                          count_include_pad=include, divisor_override=override)
    for dtype in FLOATS:
        for shape, size in (((2, 3, 7, 5), [3, 2]), ((1, 6, 6), [3, 3]), ((2, 1, 4, 5), [4, 7]),
                            ((1, 2, 5, 3), [1, 1])):
            x = draw("adaptive", dtype, shape)
            dims = [even(shape[-2 + d], size[d]) for d in range(2)]
            best, at = pooled(x.values, dims, largest)
            table.add("adaptive_max_pool2d", [Array(dtype, best), Array("int64", at)], self=x, output_size=size)
            expected = pooled(x.values, dims, lambda part, *_: (part.astype(np.float64).mean(), 0))[0]
            for operator in ("adaptive_avg_pool2d", "_adaptive_avg_pool2d"):
                table.add(operator, Array(dtype, expected), loosely(expected, dtype), self=x, output_size=size)
            grad, total = draw("adaptive grad", dtype, expected.shape), np.zeros(shape)
            planes = total.reshape((-1,) + shape[-2:])
            grads = grad.values.astype(np.float64).reshape((-1,) + tuple(size))
            for p in range(len(planes)):
                for place, window in windows_of(dims):
                    planes[p][np.ix_(*window)] += grads[p][place] / (len(window[0]) * len(window[1]))
            table.add("_adaptive_avg_pool2d_backward", Array(dtype, total), loosely(total, dtype, 4), grad_output=grad,
                      input_size=list(shape))
        for shape, size in (((2, 3, 4, 5, 3), [2, 3, 2]), ((1, 5, 5, 5), [5, 1, 2]), ((1, 1, 4, 6, 2), [3, 3, 3])):
            x = draw("adaptive", dtype, shape)
            best, at = pooled(x.values, [even(shape[-3 + d], size[d]) for d in range(3)], largest)
            table.add("adaptive_max_pool3d", [Array(dtype, best), Array("int64", at)], self=x, output_size=size)
    x = Array("float32", [[[1, np.nan, 3, np.nan], [5, 6, -np.inf, 8]]])
    table.add("max_pool2d_with_indices", [Array("float32", [[[np.nan, np.nan]]]), Array("int64", [[[1, 3]]])], self=x,
              kernel_size=[2, 2])
    y = draw("adaptive", "float32", (1, 4, 4, 4))
    best, at = pooled(y.values, [even(4, 2)] * 3, largest)
    table.add("adaptive_max_pool3d", [Array("float32", best), Array("int64", at)], self=y, output_size=[2])


def borders(table):
    for dtype in ORDER:
        x = draw("pad", dtype, (2, 3, 4))
        for pad in ([1, 2], [0, 1, 2, 0], [1, 1, 0, 0, 2, 1], [-1, 0], [1, -2, -1, 1], []):
            whole = pad + [0] * (6 - len(pad))
            pairs = [(whole[4], whole[5]), (whole[2], whole[3]), (whole[0], whole[1])]
            cut = x.values[tuple(slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(pairs, x.shape))]
            wider = [(max(0, a), max(0, b)) for a, b in pairs]
            for value in (0, 2.5):
                expected = np.pad(cut, wider, constant_values=convert(value, dtype))
                more = {} if value == 0 else {"value": value}
                table.add("constant_pad_nd", Array(dtype, expected), self=x if value else x.strided([0, 1, 2]),
                          pad=pad, **more)
                table.add("pad", Array(dtype, expected), self=x, pad=pad, **more)
    table.add("constant_pad_nd", Array("float32", [7, 7, 7]), self=Array("float32", []), pad=[1, 2], value=7)
    x = draw("pad", "float32", (2, 3, 4))
    for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        for pad in ([1, 2], [2, 0, 1, 2], [0, 3]):
            whole = pad + [0] * (6 - len(pad))
            wider = [(whole[4], whole[5]), (whole[2], whole[3]), (whole[0], whole[1])]
            for dtype in ("float32", "int64"):
                y = Array(dtype, x.values * 4)
                table.add("pad", Array(dtype, np.pad(y.values, wider, mode=name)), self=y, pad=pad, mode=mode)


def linear(size, count, corners, scale):
    at = np.arange(count, dtype=np.float64)
    if corners:
        place = at * (size - 1) / max(1, count - 1)
    else:
        place = np.maximum(0, (at + 0.5) * (1 / scale if scale else size / count) - 0.5)
    below = np.minimum(np.floor(place).astype(int), size - 1)
    return below, np.minimum(below + 1, size - 1), place - below


def sizes(table):
    for dtype in FLOATS + ["uint8"]:
        for shape, size in (((2, 3, 4, 5), [8, 10]), ((1, 2, 5, 3), [7, 2]), ((1, 1, 2, 2), [2, 2]),
                            ((1, 2, 3, 3), [1, 5])):
            x = draw("upsample", dtype, shape)
            rows, columns = [(np.arange(count) * n) // count for n, count in zip(shape[2:], size)]
            expected = x.values[:, :, rows][:, :, :, columns]
            table.add("upsample_nearest2d", Array(dtype, expected), self=x.strided([1, 0, 3, 2]), output_size=size)
            table.add("upsample_nearest2d.vec", Array(dtype, expected), input=x, output_size=size, scale_factors=None)
            if dtype == "uint8":
                continue
            v = x.values.astype(np.float64)
            for corners in (False, True):
                (a, b, down), (c, d, right) = [linear(n, count, corners, None) for n, count in zip(shape[2:], size)]
                lines = v[:, :, a] * (1 - down)[:, None] + v[:, :, b] * down[:, None]
                expected = lines[..., c] * (1 - right) + lines[..., d] * right
                near = loosely(expected, dtype, 16)
                table.add("upsample_bilinear2d", Array(dtype, expected), near, self=x, output_size=size,
                          align_corners=corners)
                table.add("upsample_bilinear2d.vec", Array(dtype, expected), near, input=x, output_size=size,
                          align_corners=corners, scale_factors=None)
    x = draw("upsample", "float32", (1, 2, 3, 4))
    for scales in ([2.0, 2.0], [1.5, 3.0], [0.5, 1.0]):
        size = [int(np.floor(n * s)) for n, s in zip((3, 4), scales)]
        rows, columns = [np.minimum(np.floor(np.arange(count) / s).astype(int), n - 1)
                         for n, count, s in zip((3, 4), size, scales)]
        table.add("upsample_nearest2d.vec", Array("float32", x.values[:, :, rows][:, :, :, columns]), input=x,
                  output_size=None, scale_factors=scales)
        (a, b, down), (c, d, right) = [linear(n, count, False, s) for n, count, s in zip((3, 4), size, scales)]
        v = x.values.astype(np.float64)
        lines = v[:, :, a] * (1 - down)[:, None] + v[:, :, b] * down[:, None]
        expected = lines[..., c] * (1 - right) + lines[..., d] * right
        table.add("upsample_bilinear2d.vec", Array("float32", expected), loosely(expected, "float32", 16), input=x,
                  output_size=None, align_corners=False,
                  scale_factors=scales)


def convolutions(table):
    for dtype in ORDER:
        x = draw("unfold", dtype, (3, 7))
        for dim, size, step in ((1, 3, 2), (0, 2, 1), (-1, 1, 3), (1, 7, 1)):
            count = (x.shape[dim] - size) // step + 1
            windows = np.stack([np.take(x.values, range(at * step, at * step + size), axis=dim)
                                for at in range(count)], axis=dim % 2)
            windows = np.moveaxis(windows, dim % 2 + 1, -1)
            table.add("unfold", Array(dtype, windows), self=x.strided([0, 1]), dimension=dim, size=size, step=step)
            if dtype not in FLOATS:
                continue
            grad, total = draw("unfold grad", dtype, windows.shape), np.zeros((3, 7))
            for at in range(count):
                place = [slice(None)] * 2
                place[dim] = slice(at * step, at * step + size)
                part = np.take(grad.values.astype(np.float64), at, axis=dim % 2)
                total[tuple(place)] += part if dim % 2 == 1 else part.T
            table.add("unfold_backward", Array(dtype, total), loosely(total, dtype, 8), grad_in=grad,
                      input_sizes=[3, 7], dim=dim, size=size, step=step)
    cases = [((2, 3, 5, 6), (4, 3, 3, 2), [1, 1], [0, 0], [1, 1], 1),
             ((1, 4, 6, 6), (6, 2, 3, 3), [2, 1], [1, 1], [1, 1], 2),
             ((1, 2, 7, 6), (2, 2, 2, 2), [1, 2], [0, 1], [2, 1], 1),
             ((3, 5, 5), (2, 3, 1, 1), [1, 1], [0, 0], [1, 1], 1),
             ((2, 3, 4, 4), (3, 1, 3, 3), [1, 1], [1, 1], [1, 1], 3),
             ((0, 2, 4, 4), (3, 2, 2, 2), [1, 1], [0, 0], [1, 1], 1)]
    for dtype in FLOATS:
        for shape, kernel, stride, padding, dilation, groups in cases if dtype == "float32" else cases[:2]:
            x, weight = draw("conv x", dtype, shape), draw("conv w", dtype, kernel)
            bias = draw("conv b", dtype, kernel[:1])
            v, w = x.values.astype(np.float64), weight.values.astype(np.float64)
            v = v[None] if len(shape) == 3 else v
            v = np.pad(v, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
            rows, columns = [(v.shape[2 + d] - dilation[d] * (kernel[2 + d] - 1) - 1) // stride[d] + 1
                             for d in range(2)]
            expected, size = np.zeros((2, v.shape[0], kernel[0], rows, columns))
            for o in range(kernel[0]):
                first = o // (kernel[0] // groups) * kernel[1]
                for i in range(rows):
                    for j in range(columns):
                        part = v[:, first: first + kernel[1],
                                 i * stride[0]: i * stride[0] + dilation[0] * (kernel[2] - 1) + 1: dilation[0],
                                 j * stride[1]: j * stride[1] + dilation[1] * (kernel[3] - 1) + 1: dilation[1]]
                        expected[:, o, i, j] = (part * w[o]).sum(axis=(1, 2, 3))
                        size[:, o, i, j] = np.abs(part * w[o]).sum(axis=(1, 2, 3))
            if len(shape) == 3:
                expected, size = expected[0], size[0]
            arguments = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
            count = kernel[1] * kernel[2] * kernel[3]
            table.add_sum("conv2d", expected, size, count + 4, dtype, input=x, weight=weight, **arguments)
            full = expected + bias.values.astype(np.float64)[:, None, None]
            # The product is rounded before the bias is added.
            near = (loosely(full, dtype, 0) + size * 2.0 ** (-44 if dtype == "float64" else -16)
                    + loosely(expected, dtype, 0))
            table.add("conv2d", Array(dtype, full), near, input=x.strided(list(range(len(shape)))),
                      weight=weight.strided([3, 2, 1, 0]), bias=bias,
                      **arguments)


def networks(table):
    for dtype in FLOATS:
        x = draw("layer_norm", dtype, (2, 3, 4))
        v = x.values.astype(np.float64)
        for shape in ([4], [3, 4]):
            axis = tuple(range(3 - len(shape), 3))
            apart = v - v.mean(axis=axis, keepdims=True)
            expected = apart / np.sqrt((apart**2).mean(axis=axis, keepdims=True) + 1e-5)
            table.add("layer_norm", Array(dtype, expected), loosely(expected, dtype, 2), input=x,
                      normalized_shape=shape)
            weight, bias = draw("layer_norm weight", dtype, tuple(shape)), draw("layer_norm bias", dtype, tuple(shape))
            full = expected * weight.values.astype(np.float64) + bias.values.astype(np.float64)
            table.add("layer_norm", Array(dtype, full), loosely(full, dtype, 16), input=x.strided([0, 1, 2]),
                      normalized_shape=shape, weight=weight,
                      bias=bias)
        x = draw("batch_norm", dtype, (3, 2, 2, 2))
        v = x.values.astype(np.float64)
        mean, variance = v.mean(axis=(0, 2, 3)), v.var(axis=(0, 2, 3))
        rstd = 1 / np.sqrt(variance + 1e-5)
        expected = (v - mean[:, None, None]) * rstd[:, None, None]
        weight, bias = draw("batch_norm weight", dtype, (2,)), draw("batch_norm bias", dtype, (2,))
        wide_weight, wide_bias = (each.values.astype(np.float64)[:, None, None] for each in (weight, bias))
        full = expected * wide_weight + wide_bias
        single = "float64" if dtype == "float64" else "float32"
        moments = [Array(single, mean), Array(single, rstd)]
        for result, scale, more in ((expected, 2, {"weight": None, "bias": None}),
                                    (full, 16, {"weight": weight, "bias": bias})):
            table.add("_native_batch_norm_legit.no_stats", [Array(dtype, result)] + moments,
                      [loosely(result, dtype, scale)] + [loosely(each, single, 4) for each in (mean, rstd)],
                      input=x, **more, training=True, momentum=0.1, eps=1e-5)
        a, b = draw("baddbmm a", dtype, (2, 3, 4)), draw("baddbmm b", dtype, (2, 4, 2))
        product = np.matmul(a.values.astype(np.float64), b.values.astype(np.float64))
        for shape in ((2, 3, 2), (2,), (3, 1)):
            c = draw("baddbmm", dtype, shape)
            for alpha, beta in ((1, 1), (0.5, -2.0), (1, 0)):
                expected = beta * c.values.astype(np.float64) + alpha * product
                more = {} if (alpha, beta) == (1, 1) else {"alpha": alpha, "beta": beta}
                # The product and what is scaled are rounded on the way.
                near = loosely(expected, dtype, 64) + (0.2 if dtype == "bfloat16" else 0.05 if dtype == "float16"
                                                       else 0)
                table.add("baddbmm", Array(dtype, expected), near, self=c, batch1=a, batch2=b, **more)
        p, q = draw("l1", dtype, (3, 4)), draw("l1 target", dtype, (3, 4))
        loss = np.abs(p.values.astype(np.float64) - q.values.astype(np.float64))
        for reduction, expected in ((0, loss), (1, loss.mean()), (2, loss.sum())):
            table.add("l1_loss", Array(dtype, expected), loosely(expected, dtype, 4), self=p, target=q,
                      reduction=reduction)
    for dtype in ORDER:
        weight = draw("embedding", dtype, (5, 3))
        for indices in ([0, 4, 4], [[1, 2], [3, 0]], np.zeros((0, 2)), 3):
            at = Array("int64" if dtype != "int8" else "int32", indices)
            table.add("embedding", Array(dtype, weight.values[at.values.astype(int)]), weight=weight, indices=at)
        x = draw("dropout", dtype, (3, 4))
        table.add("dropout", x, input=x, p=0.5, train=False)
        if dtype in FLOATS:
            table.add("dropout", x, input=x, p=0.0, train=True)
            table.add("dropout", Array(dtype, x.values * 0), input=x, p=1.0, train=True)
            table.add("bernoulli", Array(dtype, [0, 1, 1, 0]), self=Array(dtype, [0, 1, 1, 0]))
        table.add("bernoulli.p", Array(dtype, np.ones((3, 4))), self=x, p=1.0)
        table.add("bernoulli.p", Array(dtype, np.zeros((3, 4))), self=x, p=0.0)
        table.add("type_as", Array(dtype, convert([0, 1.5, 2], dtype)), self=Array("float32", [0, 1.5, 2]),
                  other=Array(dtype, 0))
    table.add("baddbmm", Array("int64", [[[3]]]), self=Array("int64", 1), batch1=Array("int64", [[[2]]]),
              batch2=Array("int64", [[[1]]]))


def write(table):
    for family in (pools, borders, sizes, convolutions, networks):
        family(table)
