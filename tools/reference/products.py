"""Products of matrices, additions by index, softmax and losses."""

import numpy as np

from elements import Array, FLOATS, INTEGERS, convert, spacing, wide
from pointwise import draw

NUMBERS = FLOATS + INTEGERS


def exactly(array):
    """Integers wrap around when converted back, so the widest integer is as good as any."""
    return array.values.astype(np.float64 if array.dtype in FLOATS else np.int64)


def add_product(table, operator, a, b, operands, extra=None, alpha=1, beta=1):
    x, y = exactly(a), exactly(b)
    total, magnitude, count = np.matmul(x, y), np.matmul(np.abs(x), np.abs(y)), x.shape[-1]
    if alpha != 1:
        total, magnitude = total * alpha, magnitude * abs(alpha)
    if extra is not None:
        total, magnitude = total + beta * exactly(extra), magnitude + np.abs(beta * exactly(extra))
    if a.dtype in FLOATS:
        table.add_sum(operator, total, magnitude, count + 2, a.dtype, **operands)
    else:
        table.add(operator, Array(a.dtype, convert(total, a.dtype)), **operands)


def products(table):
    for dtype in NUMBERS:
        for m, k, n in ((3, 5, 7), (1, 1, 1), (17, 9, 4), (2, 0, 3), (0, 3, 2), (1, 8, 5)):
            if dtype not in ("float32", "bfloat16", "int64") and m == 17:
                continue
            a, b = draw("mm a", dtype, (m, k)), draw("mm b", dtype, (k, n))
            add_product(table, "mm", a, b, {"self": a, "mat2": b})
            for shape in ((n,), (m, n), (m, 1), ()):
                bias = draw("addmm", dtype, shape)
                operands = {"self": bias, "mat1": a, "mat2": b}
                add_product(table, "addmm", a, b, operands, bias)
                if (m, k) == (3, 5):
                    factors = {"alpha": 2, "beta": 3} if dtype in INTEGERS else {"alpha": 0.5, "beta": -2}
                    add_product(table, "addmm", a, b, operands, bias, **factors)
                    table.cases[-1] = with_factors(table.cases[-1], factors)
        a, b = draw("mm a", dtype, (4, 6)), draw("mm b", dtype, (6, 5))
        add_product(table, "mm", a, b, {"self": a.strided([0, 1]), "mat2": b.strided([1, 0])})
        add_product(table, "mm", a, b, {"self": a, "mat2": b.strided([0, 1])})
        for batch, m, k, n in ((2, 3, 5, 4), (1, 2, 2, 2), (0, 2, 3, 4), (3, 2, 0, 2)):
            a, b = draw("bmm a", dtype, (batch, m, k)), draw("bmm b", dtype, (batch, k, n))
            add_product(table, "bmm", a, b, {"self": a, "mat2": b})
        add_product(table, "bmm", a, b, {"self": a.strided([1, 2, 0]), "mat2": b.strided([0, 1, 2])})
        for size in (7, 1, 0):
            a, b = draw("dot a", dtype, (size,)), draw("dot b", dtype, (size,))
            add_product(table, "dot", a, b, {"self": a, "tensor": b})
        a, b = draw("mv a", dtype, (3, 5)), draw("mv b", dtype, (5,))
        add_product(table, "mv", a, b, {"self": a, "vec": b})
    # A beta of 0 ignores what it multiplies.
    bias, a, b = Array("float32", [np.nan, np.inf]), Array("float32", [[1, 2]]), Array("float32", [[3, 4], [5, 6]])
    table.add("addmm", Array("float32", [[13, 16]]), self=bias, mat1=a, mat2=b, beta=0)
    special = Array("float32", [[np.nan, 1], [np.inf, 1], [1, 1]])
    with np.errstate(all="ignore"):
        table.add("mm", Array("float32", np.matmul(special.values, b.values)), self=special, mat2=b)


EQUATIONS = [  # with the shapes of the operands
    ("i->", [(7,)]), ("ij->ji", [(3, 4)]), ("ii", [(4, 4)]), ("ii->i", [(4, 4)]), ("iji->j", [(3, 2, 3)]),
    ("ij->j", [(3, 4)]), ("i,i", [(5,), (5,)]), ("i,j->ji", [(3,), (4,)]), ("ij,jk", [(3, 4), (4, 5)]),
    ("ij,kj->ki", [(3, 4), (5, 4)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("bij,bij->b", [(2, 3, 4), (2, 3, 4)]),
    ("...ij,...jk->...ik", [(2, 3, 4, 5), (3, 5, 2)]), ("...i->...", [(2, 3, 4)]),
    ("i...j,...->ji...", [(2, 3, 4), (3,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("ab,bc,ca->", [(2, 3), (3, 4), (4, 2)]),
    ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]), ("ij,ij->ij", [(3, 4), (3, 4)]), (",ij->ij", [(), (2, 3)]),
    ("aB,Bc", [(2, 3), (3, 2)]), ("ij,k->k", [(2, 3), (4,)]), ("ij,jk->ik", [(2, 0), (0, 3)]),
]


def einsums(table):
    for equation, shapes in EQUATIONS:
        arrays = [draw(f"einsum {equation}", "float64", shape) for shape in shapes]
        total = np.einsum(equation, *(each.values for each in arrays))
        magnitude = np.einsum(equation, *(np.abs(each.values) for each in arrays))
        sizes = int(np.prod([size for shape in shapes for size in shape], dtype=np.int64))
        count = sizes // max(1, total.size) + 2
        table.add_sum("einsum", total, magnitude, count, "float64", equation=equation, tensors=arrays)


def with_factors(case, factors):
    operator, text = case
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("  ->"))
    return operator, "\n".join(lines[:at] + [f"  {name} = {value}" for name, value in factors.items()] + lines[at:])


MATMULS = [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 3)), ((2, 3), (3, 4)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)),
           ((2, 3, 4), (4, 5)),
           ((3, 4), (2, 4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((0, 3, 4), (4, 2)),
           ((2, 3, 0), (2, 0, 2)),
           ((1, 2, 2), (3, 2, 2))]


def compositions(table):
    for dtype in ("float32", "float64", "bfloat16", "int32"):
        for left, right in MATMULS:
            a, b = draw("matmul a", dtype, left), draw("matmul b", dtype, right)
            add_product(table, "matmul", a, b, {"self": a, "other": b})
        for shape in ((5, 4), (4,), (2, 3, 4), (0, 4), (2, 1, 3, 4)):
            x, weight, bias = draw("linear", dtype, shape), draw("weight", dtype, (3, 4)), draw("bias", dtype, (3,))
            turned = Array(dtype, weight.values.T)
            add_product(table, "linear", x, turned, {"input": x, "weight": weight})
            add_product(table, "linear", x, turned, {"input": x, "weight": weight, "bias": bias}, bias)


def scatters(table):
    for dtype in NUMBERS:
        x = draw("scatter", dtype, (3, 4))
        for dim, shape in ((0, (2, 4)), (1, (3, 6)), (-1, (2, 2)), (0, (0, 4))):
            index = np.random.RandomState(3).randint(0, x.shape[dim], shape)
            src = draw("scatter src", dtype, shape)
            total, magnitude = exactly(x), np.abs(exactly(x))
            for at in np.ndindex(*shape):
                to = list(at)
                to[dim] = index[at]
                total[tuple(to)] += exactly(src)[at]
                magnitude[tuple(to)] += np.abs(exactly(src)[at])
            operands = {"self": x, "dim": dim, "index": Array("int64", index), "src": src}
            if dtype in FLOATS:
                table.add_sum("scatter_add", total, magnitude, 8, dtype, **operands)
            else:
                table.add("scatter_add", Array(dtype, convert(total, dtype)), **operands)


def logs_of(values, axis):
    shifted = values - values.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def near(table, operator, expected, dtype, magnitude=None, steps=8, /, **arguments):
    """Within some steps of float32 (float64) of what was added up, and one of the dtype itself."""
    expected = np.asarray(expected, np.float64)
    size = np.abs(expected) if magnitude is None else np.maximum(np.abs(expected), magnitude)
    bound = steps * spacing(np.where(np.isfinite(size), size, 0), wide(dtype))
    if wide(dtype) != dtype:
        bound = bound + spacing(np.where(np.isfinite(expected), expected, 0), dtype)
    table.add(operator, Array(dtype, convert(expected, wide(dtype))), bound, **arguments)


def softmaxes(table):
    cases = [((3, 5), 1, 4), ((3, 5), 0, 4), ((2, 3, 4), -2, 4), ((7,), 0, 200), ((), 0, 4), ((0, 3), 1, 4),
             ((2, 33), 1, 30), ((1, 1), 1, 4)]
    for dtype in FLOATS:
        for shape, dim, reach in cases:
            x = draw("softmax", dtype, shape, -reach, reach)
            values = x.values.astype(np.float64).reshape(shape or (1,))
            logs = logs_of(values, dim).reshape(shape)
            largest = np.abs(values).max(initial=0) * 2
            near(table, "log_softmax.int", logs, dtype, largest, self=x, dim=dim)
            near(table, "softmax.int", np.exp(logs), dtype, np.exp(logs) * max(1, largest), self=x, dim=dim)
    x = draw("softmax", "float16", (2, 3))
    logs = logs_of(x.values.astype(np.float64), 1)
    near(table, "softmax.int", np.exp(logs), "float32", 8, self=x, dim=1, dtype="float32")
    near(table, "log_softmax.int", logs, "float64", 8, self=x, dim=1, dtype="float64")
    x = draw("softmax", "int32", (2, 3))
    near(table, "softmax.int", np.exp(logs_of(x.values.astype(np.float64), 1)), "float32", 8, self=x, dim=1,
         dtype="float32")
    with np.errstate(all="ignore"):
        x = Array("float32", [[np.nan, 1, 2], [-np.inf, 0, 0], [np.inf, 1, 2], [-np.inf, -np.inf, -np.inf]])
        near(table, "softmax.int", np.exp(logs_of(x.values.astype(np.float64), 1)), "float32", 1, self=x, dim=1)


def nll(logs, target, weight, reduction, ignore):
    """In words: minus the picked logarithm times its class's weight; a mean is over the weights that count."""
    losses, weights = [], []
    for row, number in zip(logs, target):
        counts = number != ignore
        factor = (weight[number] if weight is not None else 1.0) if counts else 0.0
        losses.append(-row[number] * factor if counts else 0.0)
        weights.append(factor)
    losses = np.asarray(losses, np.float64)
    with np.errstate(all="ignore"):
        if reduction == 0:
            return losses
        return losses.sum() / np.float64(np.sum(weights)) if reduction == 1 else losses.sum()


def smoothing(logs, target, weight, reduction, ignore):
    counts = np.asarray(target) != ignore
    rows = -(logs * (weight if weight is not None else 1.0)).sum(axis=1) * counts
    total = sum((weight[number] if weight is not None else 1.0) for number in target if number != ignore)
    return rows if reduction == 0 else rows.sum() / total if reduction == 1 else rows.sum()


def losses(table):
    for dtype in FLOATS:
        for reduction in (0, 1, 2):
            for ignore in (-100, 2):
                for weighted in (False, True):
                    logits, target = draw("nll", dtype, (6, 4)), [0, 3, 2, 1, 2, 0]
                    weight = draw("class weight", dtype, (4,), 0.5, 2) if weighted else None
                    more = {} if weight is None else {"weight": weight}
                    if reduction != 1:
                        more["reduction"] = reduction
                    if ignore != -100:
                        more["ignore_index"] = ignore
                    numbers = Array("int64", target)
                    factors = None if weight is None else weight.values.astype(np.float64)
                    given = logits.values.astype(np.float64)
                    near(table, "nll_loss", nll(given, target, factors, reduction, ignore), dtype, 40, self=logits,
                         target=numbers, **more)
                    logs = logs_of(given, 1)
                    plain = nll(logs, target, factors, reduction, ignore)
                    near(table, "cross_entropy_loss", plain, dtype, 60, self=logits, target=numbers, **more)
                    smooth = smoothing(logs, target, factors, reduction, ignore)
                    near(table, "cross_entropy_loss", 0.9 * plain + 0.1 / 4 * smooth, dtype, 60, self=logits,
                         target=numbers, **more,
                         label_smoothing=0.1)
            # One sample, a picture of samples, and probabilities.
            one = draw("nll", dtype, (5,))
            near(table, "nll_loss", -one.values[3], dtype, 4, self=one, target=Array("int64", 3), reduction=reduction)
            near(table, "cross_entropy_loss", -logs_of(one.values.astype(np.float64), 0)[3], dtype, 8, self=one,
                 target=Array("int64", 3),
                 reduction=reduction)
            image = draw("image", dtype, (2, 3, 2, 2))
            target = np.random.RandomState(1).randint(0, 3, (2, 2, 2))
            logs = logs_of(image.values.astype(np.float64), 1)
            each = -np.take_along_axis(logs, target[:, None], axis=1)[:, 0]
            expected = each if reduction == 0 else each.mean() if reduction == 1 else each.sum()
            near(table, "cross_entropy_loss", expected, dtype, 40, self=image, target=Array("int64", target),
                 reduction=reduction)
            logits, soft = draw("soft", dtype, (3, 4)), draw("soft target", dtype, (3, 4), 0, 1)
            for smooth in (0.0, 0.2):
                wanted = soft.values.astype(np.float64) * (1 - smooth) + smooth / 4
                rows = -(logs_of(logits.values.astype(np.float64), 1) * wanted).sum(axis=1)
                expected = rows if reduction == 0 else rows.mean() if reduction == 1 else rows.sum()
                near(table, "cross_entropy_loss", expected, dtype, 40, self=logits, target=soft, reduction=reduction,
                     label_smoothing=smooth)
            a, b = draw("mse a", dtype, (3, 5)), draw("mse b", dtype, (3, 5))
            squares = (a.values.astype(np.float64) - b.values.astype(np.float64)) ** 2
            expected = squares if reduction == 0 else squares.mean() if reduction == 1 else squares.sum()
            near(table, "mse_loss", expected, dtype, squares.sum(), self=a, target=b, reduction=reduction)
    near(table, "nll_loss", np.nan, "float32", 1, self=draw("nll", "float32", (2, 3)),
         target=Array("int64", [-100, -100]))
    near(table, "nll_loss", np.nan, "float32", 1, self=Array("float32", np.zeros((0, 3))), target=Array("int64", []))
    near(table, "mse_loss", np.nan, "float32", 1, self=Array("float32", []), target=Array("float32", []))


def decompositions(table):
    """The sign of an eigenvector is free: its largest element is made positive."""
    for dtype, within in (("float32", 2e-6), ("float64", 1e-13)):
        for shape in ((1, 1), (2, 2), (5, 5), (2, 3, 3), (0, 3, 3)):
            x = draw("linalg_eigh", dtype, shape)
            for triangle in ("L", "U"):
                values, vectors = np.linalg.eigh(x.values.astype(np.float64), UPLO=triangle)
                largest = np.take_along_axis(vectors, np.abs(vectors).argmax(-2)[..., None, :], -2)
                size = max(1.0, float(np.abs(values).max(initial=0)))
                table.add("linalg_eigh", [Array(dtype, values), Array(dtype, vectors * np.sign(largest))],
                          [np.full(values.shape, within * size), np.full(vectors.shape, within * 10)],
                          self=x.strided(list(range(len(shape)))) if triangle == "U" else x, UPLO=triangle)


def write(table):
    products(table)
    einsums(table)
    compositions(table)
    scatters(table)
    softmaxes(table)
    losses(table)
    decompositions(table)
