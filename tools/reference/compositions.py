"""Small functions of other operators that only graphs name (rsub, addmv, index_fill, rot90, …)."""

import numpy as np

from elements import Array, FLOATS, ORDER, wide
from pointwise import draw


def logic(table):
    for dtype in ORDER:
        x = Array(dtype, [[0, 1, 0], [0, 0, 0], [1, 1, 1]])
        result = "uint8" if dtype == "uint8" else "bool"
        for name, function in (("any", np.any), ("all", np.all)):
            table.add(name, Array(result, function(x.values != 0)), self=x)
            for dim in (0, -1):
                table.add(name + ".dim", Array(result, function(x.values != 0, axis=dim)), self=x, dim=dim)
            table.add(name + ".dim", Array(result, function(x.values != 0, axis=1, keepdims=True)), self=x, dim=1,
                      keepdim=True)


def elements(table):
    for dtype in ("float32", "float64", "int32", "int64"):
        x, y = draw("compositions", dtype, (3, 4), -8, 8), draw("compositions.other", dtype, (3, 4), -8, 8)
        table.add("lift_fresh", x, self=x)
        table.add("rsub.Tensor", Array(dtype, y.values - x.values), self=x, other=y)
        table.add("rsub.Tensor", Array(dtype, y.values - 2 * x.values), self=x, other=y, alpha=2)
        table.add("aminmax", [Array(dtype, x.values.min()), Array(dtype, x.values.max())], self=x)
        ends = [Array(dtype, function(x.values, 0, keepdims=True)) for function in (np.min, np.max)]
        table.add("aminmax", ends, self=x, dim=0, keepdim=True)
        for descending in (False, True):
            z = Array(dtype, [[3, 1, 2, 1], [0, 5, 5, -1]])
            order = np.argsort(-z.values if descending else z.values, axis=-1, kind="stable")
            table.add("sort.stable", [Array(dtype, np.take_along_axis(z.values, order, -1)), Array("int64", order)],
                      self=z, stable=True, descending=descending)
        table.add("take", Array(dtype, x.values.reshape(-1)[[[0, 5], [11, -1]]]), self=x,
                  index=Array("int64", [[0, 5], [11, -1]]))
        index = Array("int64", [2, 0])
        for dim, sizes in ((0, (2, 4)), (1, (3, 2))):
            expected = x.values.copy()
            expected[tuple([slice(None)] * dim + [index.values])] = 7
            table.add("index_fill.int_Scalar", Array(dtype, expected), self=x, dim=dim, index=index, value=7)
            table.add("index_fill.int_Tensor", Array(dtype, expected), self=x, dim=dim, index=index,
                      value=Array(dtype, 7))
            source = draw("index_copy", dtype, sizes, -8, 8)
            expected = x.values.copy()
            expected[tuple([slice(None)] * dim + [index.values])] = source.values
            table.add("index_copy", Array(dtype, expected), self=x, dim=dim, index=index, source=source)
        for k in range(-1, 5):
            turned = np.rot90(x.values, k)
            table.add("rot90", Array(dtype, turned), self=x, k=k)
        for offset in (0, 1, -2):
            table.add("diag_embed", Array(dtype, np.stack([np.diag(row, offset) for row in x.values])), self=x,
                      offset=offset)
    for start, end, dtype in ((2, 7, None), (0.5, 3.0, None), (1, 4, "float64")):
        values = np.arange(start, end)
        result = dtype or ("float32" if isinstance(start, float) else "int64")
        table.add("arange.start", Array(result, values), start=start, end=end, dtype=dtype)
    for dtype in FLOATS:
        x, y = Array(dtype, [0.5, -1.25, 3.0, 0.0]), Array("int32", [3, 0, -2, 5])
        # Powers of two of integers are float32, which is what halves times those are.
        table.add("ldexp.Tensor", Array(wide(dtype), np.ldexp(x.wide(), y.values)), self=x, other=y)


def products(table):
    for dtype in ("float64", "int64"):
        mat, vec, self = (draw(f"addmv.{at}", dtype, shape, -5, 5) for at, shape in enumerate(((3, 4), (4,), (3,))))
        near = np.full(3, 1e-12) if dtype == "float64" else "exact"
        table.add("addmv", Array(dtype, self.values + mat.values @ vec.values), near, self=self, mat=mat, vec=vec)
        table.add("addmv", Array(dtype, 2 * self.values + 3 * (mat.values @ vec.values)), near, self=self, mat=mat,
                  vec=vec, beta=2, alpha=3)
        whole = draw("addr", dtype, (3, 4), -5, 5)
        near = np.full((3, 4), 1e-12) if dtype == "float64" else "exact"
        table.add("addr", Array(dtype, 2 * whole.values + 3 * np.outer(self.values, vec.values)), near, self=whole,
                  vec1=self, vec2=vec, beta=2, alpha=3)
        a, b = draw("addbmm.a", dtype, (2, 3, 5), -5, 5), draw("addbmm.b", dtype, (2, 5, 4), -5, 5)
        table.add("addbmm", Array(dtype, whole.values + (a.values @ b.values).sum(0)), near, self=whole, batch1=a,
                  batch2=b)
    nothing = Array("float64", [np.nan, np.inf, 1])
    mat, vec = draw("addmv.0", "float64", (3, 4)), draw("addmv.1", "float64", (4,))
    table.add("addmv", Array("float64", mat.values @ vec.values), np.full(3, 1e-12), self=nothing, mat=mat, vec=vec,
              beta=0)


def borders(table):
    for name, mode in (("reflection", "reflect"), ("replication", "edge")):
        for dims, pads in ((1, [2, 1]), (2, [1, 2, 0, 1]), (3, [1, 0, 2, 1, 1, 1])):
            x = draw(f"{name}_pad", "float32", (2, 3, 4, 5)[:1] + (3, 4, 5)[:dims])
            sides = [(0, 0)] + [(pads[2 * at], pads[2 * at + 1]) for at in reversed(range(dims))]
            table.add(f"{name}_pad{dims}d", Array("float32", np.pad(x.values, sides, mode)), self=x, padding=pads)


def write(table):
    logic(table)
    elements(table)
    products(table)
    borders(table)
