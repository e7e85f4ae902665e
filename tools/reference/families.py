"""Rows of below/ by ATen's further names: stacks, splits, losses, normalisation, pooling, order, distances."""

import itertools

import numpy as np

from elements import Array, FLOATS, ORDER
from pointwise import draw

NUMBERS = ("float32", "float64", "int64")


def near(table, name, dtype, results, /, **arguments):
    bound = {"float64": 1e-10, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    arrays, bounds = [], []
    for each in results if isinstance(results, (list, tuple)) else [results]:
        whole = isinstance(each, Array)
        arrays.append(each if whole else Array(dtype, each))
        bounds.append("exact" if whole else np.full(arrays[-1].shape, bound) * (1 + np.abs(arrays[-1].values)))
    table.add(name, arrays, bounds, **arguments)


def stacks(table):
    for dtype in NUMBERS:
        zero, line, plane, cube = (draw("stacks", dtype, shape) for shape in ((), (3,), (2, 3), (2, 3, 2)))
        for x in (zero, line, plane, cube):
            for rank, function in ((1, np.atleast_1d), (2, np.atleast_2d), (3, np.atleast_3d)):
                table.add(f"atleast_{rank}d", Array(dtype, function(x.values)), self=x)
        for rank, function in ((1, np.atleast_1d), (2, np.atleast_2d), (3, np.atleast_3d)):
            table.add(f"atleast_{rank}d.Sequence", [Array(dtype, function(x.values)) for x in (zero, plane)],
                      tensors=[zero, plane])
        for each in ([line, line], [plane, plane]):
            values = [x.values for x in each]
            for name, function in (("hstack", np.hstack), ("vstack", np.vstack), ("dstack", np.dstack),
                                   ("column_stack", np.column_stack)):
                table.add(name, Array(dtype, function(values)), tensors=each)
        block = np.zeros((5, 6))
        block[:2, :3], block[2, 3:], block[3:5, 3:6] = plane.values, 0, 0
        expected = np.zeros((3, 6))
        expected[:2, :3], expected[2, 3:] = plane.values, line.values
        table.add("block_diag", Array(dtype, expected), tensors=[plane, line])
        pair = draw("pair", dtype, (2,))
        grid = np.meshgrid(line.values, pair.values, indexing="ij")
        table.add("cartesian_prod", Array(dtype, np.stack([each.reshape(-1) for each in grid], 1)), tensors=[line,
                                                                                                             pair])
        for indexing in ("ij", "xy"):
            table.add("meshgrid.indexing", [Array(dtype, each) for each in
                                            np.meshgrid(line.values, pair.values, indexing=indexing)],
                      tensors=[line, pair], indexing=indexing)
        table.add("broadcast_tensors", [Array(dtype, each) for each in np.broadcast_arrays(line.values, plane.values)],
                  tensors=[line, plane])
        table.add("broadcast_to", Array(dtype, np.broadcast_to(line.values, (2, 3))), self=line, size=[2, 3])
        wide = draw("splits", dtype, (4, 4, 4))
        for name, function in (("hsplit", np.hsplit), ("vsplit", np.vsplit), ("dsplit", np.dsplit)):
            table.add(name + ".int", [Array(dtype, each) for each in function(wide.values, 2)], self=wide, sections=2)
            table.add(name + ".array", [Array(dtype, each) for each in function(wide.values, [1, 3])], self=wide,
                      indices=[1, 3])
        for sections in (2, 3):
            table.add("tensor_split.sections", [Array(dtype, each) for each in np.array_split(wide.values, sections,
                                                                                              1)],
                      self=wide, sections=sections, dim=1)
        table.add("tensor_split.indices", [Array(dtype, each) for each in np.split(wide.values, [1, 3], 0)], self=wide,
                  indices=[1, 3])
        pieces = [Array(dtype, each) for each in (wide.values[:, :3], wide.values[:, 3:])]
        table.add("unsafe_split.Tensor", pieces, self=wide, split_size=3, dim=1)
        table.add("split_with_sizes_copy", pieces, self=wide, split_sizes=[3, 1], dim=1)
        table.add("unsafe_chunk", [Array(dtype, each) for each in np.split(wide.values, 2, 0)], self=wide, chunks=2)
        table.add("unbind_copy.int", [Array(dtype, wide.values[:, at]) for at in range(4)], self=wide, dim=1)


def shapes(table):
    for dtype in NUMBERS:
        line, plane = draw("shapes", dtype, (3,)), draw("shapes", dtype, (3, 4))
        for k in (0, 1, -2):
            table.add("diag", Array(dtype, np.diag(line.values, k)), self=line, diagonal=k)
            table.add("diag", Array(dtype, np.diag(plane.values, k)), self=plane, diagonal=k)
            table.add("diagflat", Array(dtype, np.diagflat(plane.values, k)), self=plane, offset=k)
            table.add("linalg_diagonal", Array(dtype, np.diagonal(plane.values, k)), A=plane, offset=k)
        table.add("fliplr", Array(dtype, np.fliplr(plane.values)), self=plane)
        table.add("flipud", Array(dtype, np.flipud(plane.values)), self=plane)
        table.add("mT", Array(dtype, plane.values.T), self=plane)
        table.add("numpy_T", Array(dtype, plane.values.T), self=plane)
        table.add("ravel", Array(dtype, plane.values.reshape(-1)), self=plane)
        table.add("positive", plane, self=plane)
        index = Array("int64", [[2, 0], [1, 1], [3, 3]])
        table.add("take_along_dim", Array(dtype, np.take_along_axis(plane.values, index.values, 1)), self=plane,
                  indices=index, dim=1)
        places, source = Array("int64", [5, 0]), draw("put", dtype, (2,))
        for accumulate in (False, True):
            expected = plane.values.copy().reshape(-1)
            expected[places.values] = source.values + (expected[places.values] if accumulate else 0)
            table.add("put", Array(dtype, expected.reshape(3, 4)), self=plane, index=places, source=source,
                      accumulate=accumulate)
        image = draw("pixels", dtype, (2, 8, 2, 3))
        apart = image.values.reshape(2, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 4, 6)
        table.add("pixel_shuffle", Array(dtype, apart), self=image, upscale_factor=2)
        table.add("pixel_unshuffle", image, self=Array(dtype, apart), downscale_factor=2)
        shuffled = image.values.reshape(2, 2, 4, 2, 3).transpose(0, 2, 1, 3, 4).reshape(2, 8, 2, 3)
        for name in ("channel_shuffle", "native_channel_shuffle"):
            table.add(name, Array(dtype, shuffled), self=image, groups=2)
        for n in (1, 2):
            for dim in (0, 1):
                near_or_exact(table, "diff", dtype, np.diff(plane.values, n, dim), self=plane, n=n, dim=dim)
        condition = Array("bool", [[True, False, True, False]] * 3)
        table.add("where.ScalarOther", Array(dtype, np.where(condition.values, plane.values, 2)), condition=condition,
                  self=plane, other=2)
        table.add("where.ScalarSelf", Array(dtype, np.where(condition.values, 2, plane.values)), condition=condition,
                  self=2, other=plane)
    table.add("where.Scalar", Array("int64", [2, 3]), condition=Array("bool", [True, False]), self=2, other=3)
    for offset in (-1, 0, 2):
        for name, function in (("tril_indices", np.tril_indices), ("triu_indices", np.triu_indices)):
            table.add(name, Array("int64", np.stack(function(4, offset, 3))), row=4, col=3, offset=offset)
    for dtype in ("float32", "float64"):
        y, x = draw("trapezoid", dtype, (3, 4)), Array(dtype, [0.0, 0.5, 2.0, 2.5])
        values, places = y.values.astype(np.float64), x.values.astype(np.float64)
        parts = (values[:, 1:] + values[:, :-1]) / 2
        for name in ("trapezoid", "trapz"):
            near(table, name + ".dx", dtype, parts.sum(1) * 0.5, y=y, dx=0.5)
            near(table, name + ".x", dtype, (parts * np.diff(places)).sum(1), y=y, x=x)
        near(table, "cumulative_trapezoid.dx", dtype, np.cumsum(parts * 0.5, 1), y=y, dx=0.5)
        near(table, "cumulative_trapezoid.x", dtype, np.cumsum(parts * np.diff(places), 1), y=y, x=x)
        for edge in (1, 2):
            near(table, "gradient.scalarint", dtype, np.gradient(values, 0.5, axis=1, edge_order=edge), self=y,
                 spacing=0.5,
                 dim=1, edge_order=edge)
            near(table, "gradient.tensorarray", dtype, np.gradient(values, places, axis=1, edge_order=edge), self=y,
                 spacing=[x], dim=[1], edge_order=edge)
    x = draw("resize_as", "float32", (2, 3))
    table.add("resize_as_", Array("float32", x.values.reshape(-1)[:4].reshape(2, 2)), self=x,
              the_template=Array("int64", np.zeros((2, 2))))
    for sizes in ((2, 2), (4,), (2, 3), (1, 3, 2, 2)):
        count = int(np.prod(sizes))
        values = np.full(count, np.nan, np.float32)
        values[:6] = x.values.reshape(-1)[:count]
        made = Array("float32", values.reshape(sizes))
        table.add("resize", made, self=x, size=list(sizes))
        table.add("resize_as", made, self=x, the_template=Array("int64", np.zeros(sizes)))
    # In the order of memory.
    columns = Array("float32", x.values, strides=(1, 2))
    table.add("resize", Array("float32", x.values.T.reshape(-1)[:4].reshape(2, 2)), self=columns, size=[2, 2])
    table.add("resize", Array("int32", [1, 2, 2**31 - 1]), self=Array("int32", [1, 2]), size=[3])
    table.add("empty_permuted", Array("float32", np.zeros((2, 3))), "shape", size=[2, 3], physical_layout=[1, 0])


def near_or_exact(table, name, dtype, values, /, **arguments):
    if dtype in FLOATS:
        near(table, name, dtype, values, **arguments)
    else:
        table.add(name, Array(dtype, values), **arguments)


def spaces(table):
    def tensor(value):
        return Array("float32", value)

    for steps in (1, 2, 7):
        for name, function, extra in (("linspace", np.linspace, {}), ("logspace", np.logspace, {"base": 2.0})):
            expected = function(-1.5, 2.5, steps, **extra)
            near(table, name + ".Tensor_Tensor", "float32", expected, start=tensor(-1.5), end=tensor(2.5), steps=steps,
                 **extra)
            near(table, name + ".Tensor_Scalar", "float32", expected, start=tensor(-1.5), end=2.5, steps=steps, **extra)
            near(table, name + ".Scalar_Tensor", "float32", expected, start=-1.5, end=tensor(2.5), steps=steps, **extra)
        near(table, "logspace", "float64", np.logspace(-1.5, 2.5, steps), start=-1.5, end=2.5, steps=steps,
             dtype="float64")


def products(table):
    for dtype in NUMBERS:
        a, b = draw("cross a", dtype, (2, 3)), draw("cross b", dtype, (2, 3))
        near_or_exact(table, "linalg_cross", dtype, np.cross(a.values, b.values), self=a, other=b)
        near_or_exact(table, "cross", dtype, np.cross(a.values, b.values), self=a, other=b)
        near_or_exact(table, "linalg_vecdot", dtype, (a.values * b.values).sum(-1), x=a, y=b)
        near_or_exact(table, "vdot", dtype, np.dot(a.values[0], b.values[0]), self=Array(dtype, a.values[0]),
                      other=Array(dtype, b.values[0]))
        near_or_exact(table, "inner", dtype, np.inner(a.values, b.values), self=a, other=b)
        near_or_exact(table, "tensordot", dtype, np.tensordot(a.values, b.values, ([0], [0])), self=a, other=b,
                      dims_self=[0], dims_other=[0])
        near_or_exact(table, "kron", dtype, np.kron(a.values, b.values), self=a, other=b)
        near_or_exact(table, "linalg_vander", dtype, np.vander(np.arange(1, 4), 4, increasing=True),
                      x=Array(dtype, [1, 2, 3]), N=4)
    for dtype in ("float32", "float64"):
        parts = [draw(f"chain {at}", dtype, shape) for at, shape in enumerate(((2, 3), (3, 4), (4, 2)))]
        chained = np.linalg.multi_dot([each.values.astype(np.float64) for each in parts])
        near(table, "linalg_multi_dot", dtype, chained, tensors=parts)
        near(table, "chain_matmul", dtype, chained, matrices=parts)
        x, y, weight, bias = (draw(f"bilinear {at}", dtype, shape) for at, shape in
                              enumerate(((2, 3), (2, 4), (5, 3, 4), (5,))))
        product = np.einsum("ni,nj,oij->no", x.values.astype(np.float64), y.values, weight.values)
        near(table, "bilinear", dtype, product + bias.values, input1=x, input2=y, weight=weight, bias=bias)
        near(table, "_trilinear", dtype, product, i1=x, i2=weight, i3=y, expand1=[1, 3], expand2=[0], expand3=[1, 2],
             sumdim=[2, 3])
        p, q = draw("points p", dtype, (4, 3)), draw("points q", dtype, (2, 3))
        apart = p.values[:, None].astype(np.float64) - q.values
        within = [p.values[i].astype(np.float64) - p.values[j] for i in range(4) for j in range(i + 1, 4)]
        for order in (0.0, 1.0, 2.0, 3.0, np.inf):
            for name in ("cdist", "_cdist_forward"):
                extra = {"compute_mode": None} if name == "_cdist_forward" else {}
                near(table, name, dtype, np.linalg.norm(apart, order, -1) if order else (apart != 0).sum(-1), x1=p,
                     x2=q,
                     p=order, **extra)
            for name in ("pdist", "_pdist_forward"):
                near(table, name, dtype, np.linalg.norm(within, order,
                                                        -1) if order else (np.asarray(within) != 0).sum(-1),
                     self=p, p=order)
        near(table, "_euclidean_dist", dtype, np.linalg.norm(apart, 2, -1), x1=p, x2=q)
        norms = np.linalg.norm(p.values.astype(np.float64), 2, 1, keepdims=True)
        near(table, "renorm", dtype, p.values * np.where(norms > 3, 3 / (norms + 1e-7), 1), self=p, p=2, dim=0,
             maxnorm=3)


def order(table):
    for dtype in NUMBERS:
        x = Array(dtype, [[3, 1, 2, 5, 4], [2, 2, 7, 0, 2]])
        places = np.argsort(x.values, -1, kind="stable")
        ordered = np.take_along_axis(x.values, places, -1)
        for k in (1, 3, 5):
            table.add("kthvalue", [Array(dtype, ordered[:, k - 1]), Array("int64", places[:, k - 1])], self=x, k=k)
        middle = [Array(dtype, ordered[:, 2]), Array("int64", places[:, 2])]
        for name in ("median", "nanmedian"):
            table.add(name + ".dim", middle, self=x, dim=1)
            table.add(name, Array(dtype, np.sort(x.values.reshape(-1))[4]), self=x)
        table.add("msort", Array(dtype, np.sort(x.values, 0)), self=x)
        table.add("argsort.stable", Array("int64", places), self=x, stable=True)
        best, least = np.zeros((2, 5), int), np.zeros((2, 5), int)
        for row in range(2):
            for at in range(1, 5):
                held = best[row, at - 1]
                best[row, at] = at if x.values[row, at] >= x.values[row, held] else held
                held = least[row, at - 1]
                least[row, at] = at if x.values[row, at] <= x.values[row, held] else held
        table.add("cummax", [Array(dtype, np.maximum.accumulate(x.values, 1)), Array("int64", best)], self=x, dim=1)
        table.add("cummin", [Array(dtype, np.minimum.accumulate(x.values, 1)), Array("int64", least)], self=x, dim=1)
        table.add("mode", [Array(dtype, [1, 2]), Array("int64", [1, 4])], self=x)
    holes = Array("float64", [[1, np.nan, 3, 2], [np.nan, np.nan, np.nan, 5]])
    table.add("median.dim", [Array("float64", [np.nan, np.nan]), Array("int64", [1, 0])], self=holes, dim=1)
    table.add("nanmedian.dim", [Array("float64", [2, 5]), Array("int64", [3, 3])], self=holes, dim=1)
    for dtype in ("float32", "float64"):
        x, q = draw("quantile", dtype, (3, 5)), Array(dtype, [0.1, 0.5, 1.0])
        values = x.values.astype(np.float64)
        for how in ("linear", "lower", "higher", "midpoint", "nearest"):
            near(table, "quantile", dtype, np.quantile(values, q.values.astype(np.float64), axis=1, method=how), self=x,
                 q=q, dim=1, interpolation=how)
            near(table, "quantile.scalar", dtype, np.quantile(values, 0.3, method=how), self=x, q=0.3,
                 interpolation=how)
        values = values.copy()
        values[0, 1] = values[2, 3] = np.nan
        holes = Array(dtype, values)
        near(table, "nanquantile", dtype, np.nanquantile(values, q.values.astype(np.float64), axis=1), self=holes, q=q,
             dim=1)
        near(table, "nanquantile.scalar", dtype, np.nanquantile(values, 0.3, axis=0), self=holes, q=0.3, dim=0)


def histograms(table):
    for dtype in ("float32", "float64"):
        x, weight = draw("histogram", dtype, (20,)), draw("histogram weight", dtype, (20,), 0, 2)
        values = x.values.astype(np.float64)
        table.add("histc", Array(dtype, np.histogram(values, 5, (-3, 3))[0]), self=x, bins=5, min=-3, max=3)
        table.add("histc", Array(dtype, np.histogram(values, 4)[0]), self=x, bins=4)
        for density in (False, True):
            counts, edges = np.histogram(values, 6, weights=weight.values.astype(np.float64), density=density)
            near(table, "histogram.bin_ct", dtype, [counts, edges], self=x, bins=6, weight=weight, density=density)
        edges = Array(dtype, [-3, -1, 0.5, 3])
        near(table, "histogram.bins_tensor", dtype, [np.histogram(values, edges.values)[0], edges], self=x, bins=edges)
        points = Array(dtype, x.values.reshape(10, 2))
        counts, both = np.histogramdd(points.values.astype(np.float64), [3, 2])
        near(table, "_histogramdd_bin_edges", dtype, list(both), self=points, bins=[3, 2])
        near(table, "_histogramdd_from_bin_cts", dtype, counts, self=points, bins=[3, 2])
        near(table, "histogramdd", dtype, [counts, *both], self=points, bins=[3, 2])
        other = Array(dtype, [-2, 0, 2.0])
        counts, _ = np.histogramdd(points.values.astype(np.float64), [edges.values, other.values])
        near(table, "_histogramdd_from_bin_tensors", dtype, counts, self=points, bins=[edges, other])
        near(table, "histogramdd.TensorList_bins", dtype, [counts, edges, other], self=points, bins=[edges, other])
    numbers, weights = Array("int64", [0, 3, 1, 3, 3]), Array("float32", [1, 0.5, 2, 0.25, 4])
    table.add("bincount", Array("int64", np.bincount(numbers.values)), self=numbers)
    table.add("bincount", Array("int64", np.bincount(numbers.values, minlength=6)), self=numbers, minlength=6)
    table.add("bincount", Array("float32", np.bincount(numbers.values, weights.values)), self=numbers, weights=weights)


def comparing(table):
    for dtype in NUMBERS:
        x, y = Array(dtype, [1, 2, 3, 100]), Array(dtype, [1, 2, 4, 101])
        table.add("isclose", Array("bool", np.isclose(x.values, y.values, 0.02, 1e-8)), self=x, other=y, rtol=0.02)
        table.add("isin.Tensor_Tensor", Array("bool", np.isin(x.values, y.values)), elements=x, test_elements=y)
        table.add("isin.Tensor_Tensor", Array("bool", ~np.isin(x.values, y.values)), elements=x, test_elements=y,
                  invert=True)
        z = Array(dtype, [[0, 1, 0], [2, 0, 3]])
        found = np.argwhere(z.values)
        table.add("argwhere", Array("int64", found), self=z)
        table.add("nonzero_static", Array("int64", np.vstack([found, [[-1, -1]] * 2])), self=z, size=5)
        table.add("nonzero_static", Array("int64", found[:2]), self=z, size=2)
        table.add("searchsorted.Scalar", Array("int64", np.searchsorted(x.values, 3)), sorted_sequence=x, self=3)
        table.add("searchsorted.Scalar", Array("int64", np.searchsorted(x.values, 3, "right")), sorted_sequence=x,
                  self=3,
                  right=True)
        table.add("remainder.Scalar_Tensor", Array(dtype, np.remainder(7, [2, 3, -4])), self=7, other=Array(dtype,
                                                                                                            [2, 3, -4]))
        near(table, "float_power.Tensor_Scalar", "float64", np.float_power(x.values, 1.5), self=x, exponent=1.5)
        near(table, "float_power.Tensor_Tensor", "float64", np.float_power(x.values, [1, 2, 0.5, -1]), self=x,
             exponent=Array("float64", [1, 2, 0.5, -1]))
        base, source, index = Array(dtype, [4, 2, 9]), Array(dtype, [3, 6]), Array("int64", [2, 0])
        for how, expected in (("amax", [6, 2, 9]), ("amin", [4, 2, 3]), ("prod", [24, 2, 27])):
            table.add("index_reduce", Array(dtype, expected), self=base, dim=0, index=index, source=source, reduce=how)
        table.add("index_reduce", Array(dtype, [5, 2, 6]), self=base, dim=0, index=index, source=source, reduce="mean")
    for dtype in ("uint8", "int8", "int16", "int32", "int64"):
        a, b = Array(dtype, [12, 0, 7, 36]), Array(dtype, [18, 5, 0, 8])
        table.add("gcd", Array(dtype, np.gcd(a.values, b.values)), self=a, other=b)
        table.add("lcm", Array(dtype, np.lcm(a.values, b.values)), self=a, other=b)
    for dtype in ("float32", "float64"):
        x = Array(dtype, [0.0, 1.0, -3.5, 1e-20, 1e20])
        mantissa, exponent = np.frexp(x.values)
        table.add("frexp.Tensor", [Array(dtype, mantissa), Array("int32", exponent)], self=x)


def moments(table):
    for dtype in ("float32", "float64"):
        x = draw("moments names", dtype, (3, 5))
        values = x.values.astype(np.float64)
        for unbiased in (True, False):
            for name, function in (("var", np.var), ("std", np.std)):
                near(table, name, dtype, function(values, ddof=int(unbiased)), self=x, unbiased=unbiased)
                near(table, name + ".dim", dtype, function(values, 1, ddof=int(unbiased)), self=x, dim=[1],
                     unbiased=unbiased)
                near(table, name + "_mean", dtype, [function(values, ddof=int(unbiased)), values.mean()], self=x,
                     unbiased=unbiased)
                near(table, name + "_mean.dim", dtype, [function(values, 0, ddof=int(unbiased)), values.mean(0)],
                     self=x,
                     dim=[0], unbiased=unbiased)
        times, weights = Array("int64", [1, 2, 1, 3, 1]), draw("cov weights", dtype, (5,), 0.5, 2)
        near(table, "cov", dtype, np.cov(values), self=x)
        near(table, "cov", dtype, np.cov(values, fweights=times.values, aweights=weights.values), self=x,
             fweights=times,
             aweights=weights)
        near(table, "corrcoef", dtype, np.corrcoef(values), self=x)


def reduced(loss, reduction):
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


def losses(table):
    for dtype in ("float32", "float64"):
        x, y = draw("losses x", dtype, (4, 3)), draw("losses y", dtype, (4, 3))
        a, b = x.values.astype(np.float64), y.values.astype(np.float64)
        apart = np.abs(a - b)
        p, q = Array(dtype, 1 / (1 + np.exp(-a))), Array(dtype, 1 / (1 + np.exp(-b)))
        sure, wanted = p.values.astype(np.float64), q.values.astype(np.float64)
        signs = Array(dtype, np.sign(b))
        norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        cosine = (a * b).sum(1) / norms
        log_sure = -np.log1p(np.exp(-a))
        for r in (0, 1, 2):
            near(table, "huber_loss", dtype, reduced(np.where(apart < 2, apart ** 2 / 2, 2 * (apart - 1)), r), self=x,
                 target=y, reduction=r, delta=2.0)
            near(table, "smooth_l1_loss", dtype, reduced(np.where(apart < 2, apart ** 2 / 4, apart - 1), r), self=x,
                 target=y, reduction=r, beta=2.0)
            near(table, "soft_margin_loss", dtype, reduced(np.log1p(np.exp(-signs.values * a)), r), self=x,
                 target=signs,
                 reduction=r)
            entropy = -(wanted * np.log(sure) + (1 - wanted) * np.log1p(-sure))
            near(table, "binary_cross_entropy", dtype, reduced(entropy, r), self=p, target=q, reduction=r)
            near(table, "binary_cross_entropy_with_logits", dtype, reduced((1 - wanted) * a - log_sure, r), self=x,
                 target=q,
                 reduction=r)
            near(table, "kl_div", dtype, reduced(wanted * (np.log(wanted) - a), r), self=x, target=q, reduction=r)
            near(table, "poisson_nll_loss", dtype, reduced(np.exp(a) - wanted * a, r), input=x, target=q,
                 log_input=True,
                 full=False, eps=1e-8, reduction=r)
            near(table, "hinge_embedding_loss", dtype, reduced(np.where(signs.values == 1, a, np.maximum(0, 1 - a)), r),
                 self=x, target=signs, reduction=r)
            near(table, "margin_ranking_loss", dtype, reduced(np.maximum(0, -signs.values * (a - b) + 0.5), r),
                 input1=x,
                 input2=y, target=signs, margin=0.5, reduction=r)
            kinds = Array("int64", [1, -1, 1, -1])
            near(table, "cosine_embedding_loss", dtype,
                 reduced(np.where(kinds.values == 1, 1 - cosine, np.maximum(0, cosine - 0.25)), r), input1=x, input2=y,
                 target=kinds, margin=0.25, reduction=r)
            z = draw("losses z", dtype, (4, 3))
            far = np.linalg.norm(a - z.values + 1e-6, axis=1)
            near(table, "triplet_margin_loss", dtype,
                 reduced(np.maximum(0, np.linalg.norm(a - b + 1e-6, axis=1) - far + 1), r), anchor=x, positive=y,
                 negative=z,
                 reduction=r)
            classes = Array("int64", [0, 2, 1, 1])
            own = np.take_along_axis(a, classes.values[:, None], 1)
            margins = np.maximum(0, 1 - own + a)
            margins[np.arange(4), classes.values] = 0
            near(table, "multi_margin_loss", dtype, reduced(margins.sum(1) / 3, r), self=x, target=classes, reduction=r)
            labels = Array("int64", [[0, -1, 1], [1, 2, -1], [-1, 0, 0], [2, -1, 2]])
            listed = [[0], [1, 2], [], [2]]
            total = np.array([sum(max(0, 1 - a[row, label] + a[row, other]) for label in each for other in range(3)
                                  if other not in each) / 3 for row, each in enumerate(listed)])
            hit = np.array([[float(column in each) for column in range(3)] for each in listed])
            near(table, "multilabel_margin_loss", dtype, reduced(total, r), self=x, target=labels, reduction=r)
            near(table, "multilabel_margin_loss_forward", dtype, [reduced(total, r), hit], self=x, target=labels,
                 reduction=r)
            scores, planes = draw("nll2d", dtype, (2, 3, 2, 2)), Array("int64", [[[0, 1], [2, 1]], [[1, 1], [0, 2]]])
            picked = -np.take_along_axis(scores.values.astype(np.float64), planes.values[:, None], 1)[:, 0]
            counts = planes.values != 1
            kept = np.where(counts, picked, 0)
            value = kept if r == 0 else kept.sum() / counts.sum() if r == 1 else kept.sum()
            near(table, "nll_loss2d_forward", dtype, [value, np.float64(0 if r == 0 else counts.sum())], self=scores,
                 target=planes, weight=None, reduction=r, ignore_index=1)
        near(table, "cosine_similarity", dtype, cosine, x1=x, x2=y)
        near(table, "pairwise_distance", dtype, np.linalg.norm(a - b + 1e-6, axis=1), x1=x, x2=y)
        near(table, "log_sigmoid_forward", dtype, [log_sure, np.exp(-np.abs(a))], self=x)


def normalised(x, axes, eps):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps), mean, 1 / np.sqrt(variance + eps)


def normalisation(table):
    for dtype in ("float32", "float64"):
        x, weight, bias = draw("norm", dtype, (3, 4, 5)), draw("norm w", dtype, (4,)), draw("norm b", dtype, (4,))
        mean, variance = draw("norm mean", dtype, (4,)), draw("norm var", dtype, (4,), 0.5, 2)
        values = x.values.astype(np.float64)
        w, b = weight.values[:, None].astype(np.float64), bias.values[:, None].astype(np.float64)
        unit, center, rstd = normalised(values, (0, 2), 1e-3)
        by_batch = [unit * w + b, center.reshape(-1), rstd.reshape(-1)]
        numbers = {"momentum": 0.25, "eps": 1e-3}
        none = {"running_mean": None, "running_var": None}
        near(table, "native_batch_norm", dtype, by_batch, input=x, weight=weight, bias=bias, **none, training=True,
             **numbers)
        near(table, "batch_norm", dtype, by_batch[0], input=x, weight=weight, bias=bias, **none, training=True,
             **numbers,
             cudnn_enabled=False)
        moved = {"running_mean": mean, "running_var": variance}
        by_running = (values - mean.values[:, None]) / np.sqrt(variance.values[:, None] + 1e-3) * w + b
        near(table, "_native_batch_norm_legit", dtype, [by_running, np.zeros(0), np.zeros(0)], input=x, weight=weight,
             bias=bias, **moved, training=False, **numbers)
        near(table, "_batch_norm_with_update", dtype, by_batch + [Array("uint8", np.zeros(0))], input=x, weight=weight,
             bias=bias, **moved, **numbers)
        unit, _, _ = normalised(values, (2,), 1e-3)
        near(table, "instance_norm", dtype, unit * w + b, input=x, weight=weight, bias=bias, **none,
             use_input_stats=True,
             **numbers, cudnn_enabled=False)
        unit, center, rstd = normalised(values.reshape(3, 2, 10), (2,), 1e-3)
        grouped = unit.reshape(3, 4, 5) * w + b
        near(table, "native_group_norm", dtype, [grouped, center[..., 0], rstd[..., 0]], input=x, weight=weight,
             bias=bias,
             N=3, C=4, HxW=5, group=2, eps=1e-3)
        near(table, "group_norm", dtype, grouped, input=x, num_groups=2, weight=weight, bias=bias, eps=1e-3)
        last = draw("norm last", dtype, (5,))
        unit, center, rstd = normalised(values, (2,), 1e-3)
        near(table, "native_layer_norm", dtype, [unit * last.values, center, rstd], input=x, normalized_shape=[5],
             weight=last, bias=None, eps=1e-3)
        scale = 1 / np.sqrt((values ** 2).mean(2, keepdims=True) + 1e-3)
        near(table, "rms_norm", dtype, values * scale * last.values, input=x, normalized_shape=[5], weight=last,
             eps=1e-3)


def windows_of(size, kernel, stride, padding):
    return [[at for at in range(start, start + kernel) if 0 <= at < size]
            for start in range(-padding, size + padding - kernel + 1, stride)]


def even_windows(size, count):
    return [list(range(at * size // count, -(-(at + 1) * size // count))) for at in range(count)]


def pooled(x, windows, largest):
    """Over the last dimensions, one list of windows each: values, and positions among all of these dimensions."""
    dims = len(windows)
    sizes = x.shape[-dims:]
    shape = x.shape[:-dims] + tuple(len(each) for each in windows)
    values, places = np.zeros(shape), np.zeros(shape, int)
    for at in np.ndindex(*shape):
        cells = np.ix_(*[windows[dim][at[len(at) - dims + dim]] for dim in range(dims)])
        block = x[at[:-dims]][cells]
        if not largest:
            values[at] = block.mean()
            continue
        best = np.unravel_index(block.argmax(), block.shape)
        values[at] = block[best]
        places[at] = np.ravel_multi_index([cells[dim].reshape(-1)[best[dim]] for dim in range(dims)], sizes)
    return values, places


def pooling(table):
    for dtype in ("float32", "float64"):
        line, volume = draw("pool line", dtype, (2, 3, 7)), draw("pool volume", dtype, (2, 4, 5, 6))
        values = volume.values.astype(np.float64)
        windows = [windows_of(size, 3, 2, 1) for size in (4, 5, 6)]
        most, places = pooled(values, windows, True)
        numbers = {"kernel_size": [3, 3, 3], "stride": [2, 2, 2], "padding": [1, 1, 1]}
        near(table, "max_pool3d_with_indices", dtype, [most, Array("int64", places)], self=volume, **numbers)
        near(table, "max_pool3d", dtype, most, self=volume, **numbers)
        most, places = pooled(line.values.astype(np.float64), [windows_of(7, 3, 2, 1)], True)
        numbers = {"kernel_size": [3], "stride": [2], "padding": [1]}
        near(table, "max_pool1d_with_indices", dtype, [most, Array("int64", places)], self=line, **numbers)
        near(table, "max_pool1d", dtype, most, self=line, **numbers)
        mean, _ = pooled(line.values.astype(np.float64), [windows_of(7, 3, 2, 0)], False)
        near(table, "avg_pool1d", dtype, mean, self=line, kernel_size=[3], stride=[2])
        most, places = pooled(line.values.astype(np.float64), [even_windows(7, 3)], True)
        near(table, "adaptive_max_pool1d", dtype, [most, Array("int64", places)], self=line, output_size=[3])
        mean, _ = pooled(line.values.astype(np.float64), [even_windows(7, 3)], False)
        near(table, "adaptive_avg_pool1d", dtype, mean, self=line, output_size=[3])
        mean, _ = pooled(values, [even_windows(4, 3), even_windows(5, 2), even_windows(6, 4)], False)
        near(table, "adaptive_avg_pool3d", dtype, mean, self=volume, output_size=[3, 2, 4])
        near(table, "_adaptive_avg_pool3d", dtype, mean, self=volume, output_size=[3, 2, 4])
        for dims, name in ((2, "max_unpool2d"), (3, "max_unpool3d")):
            x = draw(name, dtype, (2,) + (2,) * dims)
            count = 2 ** dims
            places = np.tile(np.arange(count) * 2, 2).reshape(x.shape)
            expected = np.zeros((2, 3 ** dims))
            for plane in range(2):
                expected[plane, places[plane].reshape(-1)] = x.values[plane].reshape(-1)
            extra = {"stride": [1] * 3, "padding": [0] * 3} if dims == 3 else {}
            near(table, name, dtype, expected.reshape((2,) + (3,) * dims), self=x, indices=Array("int64", places),
                 output_size=[3] * dims, **extra)


def bags(table):
    weight = draw("bags", "float32", (5, 3))
    indices, offsets = Array("int64", [0, 1, 2, 3, 4, 1]), Array("int64", [0, 2, 2])
    groups = [[0], [], [2, 3, 4]]  # without number 1
    flags = {"scale_grad_by_freq": False, "sparse": False, "per_sample_weights": None, "include_last_offset": False}
    sums = np.array([weight.values[each].sum(0) if each else np.zeros(3) for each in groups])
    bag_of, sizes = Array("int64", [0, 0, 2, 2, 2, 2]), Array("int64", [1, 0, 3])
    zeros = Array("int64", [0, 0, 0])
    near(table, "embedding_bag.padding_idx", "float32", [sums, bag_of, zeros, zeros], weight=weight, indices=indices,
         offsets=offsets, mode=0, padding_idx=1, **flags)
    means = sums / np.array([[1], [1], [3]])
    near(table, "embedding_bag.padding_idx", "float32", [means, bag_of, sizes, sizes], weight=weight, indices=indices,
         offsets=offsets, mode=1, padding_idx=1, **flags)
    most = np.array([weight.values[each].max(0) if each else np.zeros(3) for each in groups])
    rows = np.array([[each[at] for at in weight.values[each].argmax(0)] if each else [0] * 3 for each in groups])
    near(table, "embedding_bag.padding_idx", "float32", [most, bag_of, sizes, Array("int64", rows)], weight=weight,
         indices=indices, offsets=offsets, mode=2, padding_idx=1, **flags)


def convolved(x, weight, border):
    """Each output is the sum of a window's products; `border`: before and behind, by dimension."""
    dims = weight.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + border)
    sizes = [x.shape[2 + dim] - weight.shape[2 + dim] + 1 for dim in range(dims)]
    result = np.zeros((x.shape[0], weight.shape[0], *sizes))
    for at in np.ndindex(*sizes):
        cells = tuple(slice(at[dim], at[dim] + weight.shape[2 + dim]) for dim in range(dims))
        window = x[(slice(None), slice(None), *cells)].reshape(x.shape[0], -1)
        result[(slice(None), slice(None), *at)] = window @ weight.reshape(weight.shape[0], -1).T
    return result


def named_borders(table):
    for dims in (1, 2, 3):
        x = draw("border", "float64", (2, 3) + (5, 4, 3)[:dims])
        weight = draw("border w", "float64", (2, 3) + (2, 3, 2)[:dims])
        same = [((size - 1) // 2, size // 2) for size in (2, 3, 2)[:dims]]
        for name, border in (("same", same), ("valid", [(0, 0)] * dims)):
            near(table, f"conv{dims}d.padding", "float64", convolved(x.values, weight.values, border), input=x,
                 weight=weight, padding=name)


def further(table):
    scores = draw("nll nd", "float64", (2, 3, 4))
    classes = Array("int64", [[0, 2, 1, 1], [1, 0, 2, 2]])
    picked = -np.take_along_axis(scores.values, classes.values[:, None], 1)[:, 0]
    for r in (0, 1, 2):
        near(table, "nll_loss_nd", "float64", reduced(picked, r), self=scores, target=classes, reduction=r)
    for dtype in NUMBERS:
        x = draw("combinations", dtype, (4,))
        for r in (1, 2, 3):
            chosen = np.array(list(itertools.combinations(x.values, r)))
            table.add("combinations", Array(dtype, chosen), self=x, r=r)
        table.add("combinations", Array(dtype, list(itertools.combinations_with_replacement(x.values, 2))), self=x,
                  with_replacement=True)
        z = Array(dtype, [[0, 1, 0], [2, 0, 3]])
        table.add("nonzero_numpy", [Array("int64", each) for each in np.nonzero(z.values)], self=z)
    x = draw("dropped", "float32", (2, 3, 4))
    for name in ("alpha_dropout", "feature_alpha_dropout", "feature_dropout"):
        table.add(name, x, input=x, p=0.5, train=False)
        table.add(name, Array("float32", x.values * 0), input=x, p=1.0, train=True)
        table.add(name, x, "shape", input=x, p=0.5, train=True)
    near(table, "rrelu", "float32", np.where(x.values > 0, x.values, x.values * 0.25), self=x, lower=0.125, upper=0.375)


def distributions(table):
    """What is drawn is the business of tests/ops/distributions_test.cpp."""
    x = draw("distributions", "float32", (2, 3), 0.5, 2)
    for name, numbers in (("uniform", {}), ("normal", {}), ("log_normal", {}), ("cauchy", {}), ("exponential", {}),
                          ("geometric", {"p": 0.5})):
        table.add(name, x, "shape", self=x, **numbers)
    table.add("normal.Tensor_float", x, "shape", mean=x)
    table.add("normal.float_Tensor", x, "shape", mean=0.5, std=x)
    table.add("normal.Tensor_Tensor", x, "shape", mean=x, std=x)
    table.add("normal.float_float", x, "shape", mean=0.5, std=1.0, size=[2, 3])
    for replacement in (False, True):
        table.add("multinomial", Array("int64", np.zeros((2, 2))), "shape", self=x, num_samples=2,
                  replacement=replacement)


def write(table):
    for part in (stacks, shapes, spaces, products, order, histograms, comparing, moments, losses, normalisation,
                 pooling,
                 bags, named_borders, further, distributions):
        part(table)
