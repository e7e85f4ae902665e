"""Rows of linear_systems.cpp, factorizations.cpp, matrix_functions.cpp and below/pseudoinverse.cpp, by NumPy's LAPACK.

Factors whose signs mean nothing are given where they are made unique: what is compared is a product of them, or a
value. Reflections, pivots and blocks are computed here in words.
"""

import numpy as np

from elements import Array
from pointwise import draw

NEAR = {"float64": 1e-9, "float32": 2e-3}


def heavy(name, dtype, shape):
    """Random, with a diagonal that outweighs the rest; the order of pivots is not the order of rows."""
    x = draw(name, dtype, shape).values.astype(np.float64)
    rows = np.roll(np.arange(shape[-2]), 1)
    for at in range(min(shape[-2:])):
        x[..., rows[at], at] += 9 + 3 * at
    return Array(dtype, x)


def near(table, name, dtype, results, /, **arguments):
    arrays, bounds = [], []
    for each in results if isinstance(results, (list, tuple)) else [results]:
        whole = isinstance(each, Array)
        arrays.append(each if whole else Array(dtype, each))
        bounds.append("exact" if whole else np.full(arrays[-1].shape, NEAR[dtype]) * (1 + np.abs(arrays[-1].values)))
    table.add(name, arrays, bounds, **arguments)


def eliminate(a):
    """L and U in one, the rows that are exchanged, and the first pivot that is zero."""
    lu, pivots, zero = a.copy(), [], 0
    for at in range(min(a.shape)):
        best = at + int(np.argmax(np.abs(lu[at:, at])))
        pivots.append(best + 1)
        if lu[best, at] == 0:
            zero = zero or at + 1
            continue
        lu[[at, best]] = lu[[best, at]]
        lu[at + 1:, at] /= lu[at, at]
        lu[at + 1:, at + 1:] -= np.outer(lu[at + 1:, at], lu[at, at + 1:])
    return lu, pivots, zero


def unpacked(lu, pivots):
    rows, columns = lu.shape
    most = min(rows, columns)
    order = list(range(rows))
    for at, other in enumerate(pivots):
        order[at], order[other - 1] = order[other - 1], order[at]
    p = np.zeros((rows, rows))
    for at, row in enumerate(order):
        p[row, at] = 1
    return p, np.tril(lu[:, :most], -1) + np.eye(rows, most), np.triu(lu[:most])


def systems(table):
    for dtype in ("float32", "float64"):
        for shape in ((4, 4), (5, 3), (3, 5), (1, 1)):
            a = heavy("lu", dtype, shape)
            lu, pivots, zero = eliminate(a.values.astype(np.float64))
            order, info = Array("int32", pivots), Array("int32", zero)
            near(table, "linalg_lu_factor_ex", dtype, [lu, order, info], A=a)
            near(table, "_lu_with_info", dtype, [lu, order, info], self=a)
            near(table, "linalg_lu_factor", dtype, [lu, order], A=a)
            near(table, "linalg_lu", dtype, list(unpacked(lu, pivots)), A=a)
            near(table, "lu_unpack", dtype, list(unpacked(lu, pivots)), LU_data=Array(dtype, lu), LU_pivots=order)
        singular = Array(dtype, [[1, 2, 3], [2, 4, 6], [0, 0, 1]])
        lu, pivots, zero = eliminate(singular.values.astype(np.float64))
        near(table, "linalg_lu_factor_ex", dtype, [lu, Array("int32", pivots), Array("int32", zero)], A=singular)
        a, b = heavy("solve", dtype, (2, 4, 4)), draw("solve b", dtype, (2, 4, 3))
        exact, right = a.values.astype(np.float64), b.values.astype(np.float64)
        parts = [eliminate(each) for each in exact]
        lu = Array(dtype, np.stack([each[0] for each in parts]))
        pivots, info = Array("int32", [each[1] for each in parts]), Array("int32", [0, 0])
        x, turned = np.linalg.solve(exact, right), np.swapaxes(right, 1, 2)
        near(table, "_linalg_solve_ex", dtype, [x, lu.values, pivots, info], A=a, B=b)
        near(table, "linalg_solve_ex", dtype, [x, info], A=a, B=b)
        near(table, "linalg_solve", dtype, x, A=a, B=b)
        near(table, "linalg_solve", dtype, np.linalg.solve(exact, right[..., :1])[..., 0], A=a,
             B=Array(dtype, b.values[..., 0]))
        near(table, "linalg_solve", dtype, turned @ np.linalg.inv(exact), A=a, B=Array(dtype, turned), left=False)
        near(table, "linalg_lu_solve", dtype, x, LU=lu, pivots=pivots, B=b)
        near(table, "linalg_lu_solve", dtype, np.linalg.solve(np.swapaxes(exact, 1, 2), right), LU=lu, pivots=pivots,
             B=b, adjoint=True)
        near(table, "linalg_lu_solve", dtype, turned @ np.linalg.inv(exact), LU=lu, pivots=pivots,
             B=Array(dtype, turned), left=False)
        near(table, "lu_solve", dtype, x, self=b, LU_data=lu, LU_pivots=pivots)
        inverse, det = np.linalg.inv(exact), np.linalg.det(exact)
        sign, logarithm = np.linalg.slogdet(exact)
        near(table, "linalg_inv_ex", dtype, [inverse, info], A=a)
        near(table, "linalg_inv", dtype, inverse, A=a)
        near(table, "inverse", dtype, inverse, self=a)
        near(table, "_linalg_det", dtype, [det, lu.values, pivots], A=a)
        near(table, "linalg_det", dtype, det, A=a)
        near(table, "det", dtype, det, self=a)
        near(table, "_linalg_slogdet", dtype, [sign, logarithm, lu.values, pivots], A=a)
        near(table, "linalg_slogdet", dtype, [sign, logarithm], A=a)
        near(table, "logdet", dtype, np.where(sign > 0, logarithm, np.nan), self=a)
        for upper in (False, True):
            whole = heavy("triangle", dtype, (4, 4)).values.astype(np.float64) + 20 * np.eye(4)
            triangle = np.triu(whole) if upper else np.tril(whole)
            t = Array(dtype, whole)
            near(table, "linalg_solve_triangular", dtype, np.linalg.solve(triangle, right), self=t, B=b, upper=upper)
            near(table, "linalg_solve_triangular", dtype, turned @ np.linalg.inv(triangle), self=t,
                 B=Array(dtype, turned), upper=upper, left=False)
            unit = triangle / 40 - np.diag(np.diag(triangle / 40)) + np.eye(4)
            near(table, "linalg_solve_triangular", dtype, np.linalg.solve(unit, right), self=Array(dtype, whole / 40),
                 B=b, upper=upper, unitriangular=True)
            near(table, "triangular_solve", dtype, [np.linalg.solve(triangle.T, right[0]), whole],
                 self=Array(dtype, b.values[0]), A=t, upper=upper, transpose=True)


def reflections(a):
    """Householder's, with a first element of 1 each."""
    work, tau = a.copy(), []
    for at in range(min(a.shape)):
        x = work[at:, at]
        rest = np.linalg.norm(x[1:])
        if rest == 0:
            tau.append(0.0)
            continue
        beta = -np.copysign(np.hypot(x[0], rest), x[0])
        tau.append((beta - x[0]) / beta)
        v = np.concatenate([[1.0], x[1:] / (x[0] - beta)])
        work[at:, at + 1:] -= tau[-1] * np.outer(v, v @ work[at:, at + 1:])
        work[at:, at] = np.concatenate([[beta], v[1:]])
    return work, np.asarray(tau)


def whole_product(work, tau):
    q = np.eye(work.shape[0])
    for at, factor in enumerate(tau):
        v = np.zeros(work.shape[0])
        v[at], v[at + 1:] = 1, work[at + 1:, at]
        q = q @ (np.eye(work.shape[0]) - factor * np.outer(v, v))
    return q


def factors(table):
    for dtype in ("float32", "float64"):
        for shape in ((5, 3), (3, 5), (4, 4)):
            a = draw("qr", dtype, shape)
            work, tau = reflections(a.values.astype(np.float64))
            near(table, "geqrf", dtype, [work, tau], self=a)
            q, r = whole_product(work, tau), np.triu(work)
            most = min(shape)
            near(table, "linalg_qr", dtype, [q[:, :most], r[:most]], A=a)
            near(table, "linalg_qr", dtype, [q, r], A=a, mode="complete")
            near(table, "linalg_qr", dtype, [np.zeros(0), r[:most]], A=a, mode="r")
            near(table, "qr", dtype, [q[:, :most], r[:most]], self=a)
            vectors, factor = Array(dtype, work), Array(dtype, tau)
            if shape[0] >= shape[1]:
                near(table, "linalg_householder_product", dtype, q[:, :shape[1]], input=vectors, tau=factor)
            if len(tau) == shape[1]:
                c = draw("ormqr", dtype, (shape[0], 2))
                near(table, "ormqr", dtype, q @ c.values, self=vectors, input2=factor, input3=c)
                near(table, "ormqr", dtype, c.values.T @ q.T, self=vectors, input2=factor, input3=Array(dtype,
                                                                                                        c.values.T),
                     left=False, transpose=True)
            s = np.linalg.svd(a.values.astype(np.float64), compute_uv=False)
            near(table, "linalg_svdvals", dtype, s, A=a)
            near(table, "_linalg_svd", dtype, [np.zeros(0), s, np.zeros(0)], A=a, compute_uv=False)
        # Vectors of a matrix whose columns are orthogonal already, the longest first: units.
        diagonal = Array(dtype, [[3, 0], [0, 2], [0, 0]])
        parts = [np.eye(3)[:, :2], np.array([3.0, 2.0]), np.eye(2)]
        near(table, "_linalg_svd", dtype, parts, A=diagonal)
        near(table, "linalg_svd", dtype, [np.eye(3), parts[1], np.eye(2)], A=diagonal)
        near(table, "svd", dtype, parts, self=diagonal)
        base = draw("cholesky", dtype, (2, 4, 4)).values.astype(np.float64)
        positive = Array(dtype, base @ np.swapaxes(base, 1, 2) + 4 * np.eye(4))
        lower, info = np.linalg.cholesky(positive.values.astype(np.float64)), Array("int32", [0, 0])
        upper = np.swapaxes(lower, 1, 2)
        near(table, "linalg_cholesky_ex", dtype, [lower, info], self=positive)
        near(table, "linalg_cholesky_ex", dtype, [upper, info], self=positive, upper=True)
        near(table, "linalg_cholesky", dtype, lower, self=positive)
        near(table, "cholesky", dtype, upper, self=positive, upper=True)
        b = draw("cholesky b", dtype, (2, 4, 3))
        near(table, "cholesky_solve", dtype, np.linalg.solve(positive.values.astype(np.float64), b.values), self=b,
             input2=Array(dtype, lower))
        near(table, "cholesky_inverse", dtype, np.linalg.inv(positive.values.astype(np.float64)),
             self=Array(dtype, lower))
        near(table, "_linalg_eigh", dtype, [np.linalg.eigvalsh(positive.values.astype(np.float64)), np.zeros(0)],
             A=positive, compute_v=False)
        near(table, "linalg_eigvalsh", dtype, np.linalg.eigvalsh(positive.values.astype(np.float64)), self=positive)
        # Blocks: one, where the diagonal outweighs the rest; two, where it is zero.
        one = Array(dtype, [[4, 2], [2, 5]])
        near(table, "linalg_ldl_factor_ex", dtype, [np.array([[4, 0], [0.5, 4]]), Array("int32", [1, 2]),
                                                    Array("int32", 0)], self=one)
        two = Array(dtype, [[0, 3], [3, 0]])
        near(table, "linalg_ldl_factor", dtype, [np.array([[0.0, 0], [3, 0]]), Array("int32", [-2, -2])], self=two)
        right = Array(dtype, [[1.0], [2.0]])
        for matrix, ld, pivots in ((one, [[4, 0], [0.5, 4]], [1, 2]), (two, [[0, 0], [3, 0]], [-2, -2])):
            near(table, "linalg_ldl_solve", dtype, np.linalg.solve(matrix.values.astype(np.float64), right.values),
                 LD=Array(dtype, ld), pivots=Array("int32", pivots), B=right)


def exponential(a):
    """A long sum of a small matrix, squared."""
    scale = 2.0 ** 12
    total, term = np.eye(len(a)), np.eye(len(a))
    for order in range(1, 12):
        term = term @ (a / scale) / order
        total = total + term
    for _ in range(12):
        total = total @ total
    return total


def functions(table):
    for dtype in ("float32", "float64"):
        a = draw("expm", dtype, (3, 3), -1, 1)
        near(table, "linalg_matrix_exp", dtype, exponential(a.values.astype(np.float64)), self=a)
        near(table, "matrix_exp", dtype, exponential(a.values.astype(np.float64)), self=a)
        square = heavy("power", dtype, (3, 3))
        for n in (0, 1, 3, -2):
            near(table, "linalg_matrix_power", dtype, np.linalg.matrix_power(square.values.astype(np.float64), n),
                 self=square, n=n)
        for shape in ((4, 3), (2, 3, 4)):
            x = draw("pinv", dtype, shape)
            exact = x.values.astype(np.float64)
            near(table, "linalg_pinv.atol_rtol_float", dtype, np.linalg.pinv(exact), self=x)
            near(table, "linalg_pinv.atol_rtol_tensor", dtype, np.linalg.pinv(exact), self=x)
            near(table, "pinverse", dtype, np.linalg.pinv(exact), self=x)
            rank = Array("int64", np.full(shape[:-2], 3))
            near(table, "linalg_matrix_rank.atol_rtol_float", dtype, [rank], self=x)
            near(table, "linalg_matrix_rank.atol_rtol_tensor", dtype, [rank], input=x)
        dependent = Array(dtype, [[1, 2, 3], [2, 4, 6], [1, 0, 1]])
        near(table, "linalg_pinv.atol_rtol_float", dtype, np.linalg.pinv(dependent.values.astype(np.float64)),
             self=dependent)
        near(table, "linalg_matrix_rank.atol_rtol_float", dtype, [Array("int64", 2)], self=dependent)
        x, b = draw("lstsq", dtype, (5, 3)), draw("lstsq b", dtype, (5, 2))
        exact, right = x.values.astype(np.float64), b.values.astype(np.float64)
        solution, residuals, rank, values = np.linalg.lstsq(exact, right, rcond=None)
        none = np.zeros(0)
        near(table, "linalg_lstsq", dtype, [solution, none, Array("int64", rank), none], self=x, b=b)
        near(table, "linalg_lstsq", dtype, [solution, residuals, Array("int64", rank), values], self=x, b=b,
             driver="gelsd")
        for order in (1, -1, 2, -2, np.inf, -np.inf):
            near(table, "linalg_matrix_norm", dtype, np.linalg.norm(exact, order), self=x, ord=float(order))
            near(table, "linalg_norm", dtype, np.linalg.norm(exact, order), self=x, ord=float(order))
            near(table, "linalg_cond", dtype, np.linalg.cond(square.values.astype(np.float64), order), self=square,
                 p=float(order))
        for order in ("fro", "nuc"):
            near(table, "linalg_matrix_norm.str_ord", dtype, np.linalg.norm(exact, order), self=x, ord=order)
            near(table, "linalg_norm.ord_str", dtype, np.linalg.norm(exact, order), self=x, ord=order)
        cube = heavy("tensorinv", dtype, (6, 6)).values.astype(np.float64).reshape(2, 3, 6)
        near(table, "linalg_tensorinv", dtype, np.linalg.tensorinv(cube, 2), self=Array(dtype, cube))
        other = draw("tensorsolve", dtype, (2, 3))
        near(table, "linalg_tensorsolve", dtype, np.linalg.tensorsolve(cube, other.values.astype(np.float64)),
             self=Array(dtype, cube), other=other)


def write(table):
    systems(table)
    factors(table)
    functions(table)
