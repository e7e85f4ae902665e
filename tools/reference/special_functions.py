"""Rows of special_functions.cpp, polynomials.cpp, shifts.cpp and the forms with numbers of functions of pairs.

Bessel's functions and their relatives are summed here by their series at 0, in a hundred digits, which no cancellation
uses up; polynomials are NumPy's.
"""

import math
from decimal import Decimal, getcontext
from statistics import NormalDist

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

from elements import Array, FLOATS, INTEGERS, convert, wide

getcontext().prec = 110
EULER = Decimal("0.57721566490153286060651209008240243104215933593992359880576723488486772677766467")
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
# Airy's function and its slope at 0.
AIRY, AIRY_SLOPE = (Decimal("0.355028053887817239260063186004183176397979174199177240583327"),
                    Decimal("0.258819403792806798405183560189203963479091138354934582210002"))
STEP = {"float16": 2.0**-9, "bfloat16": 2.0**-6, "float32": 2.0**-21, "float64": 2.0**-46}


def terms(x, order, sign):
    """(x/2)^(2k + order) / (k! (k + order)!), with signs."""
    half, k = x / 2, 0
    term = Decimal(1) if order == 0 else half
    while k < 40 or abs(term) > Decimal("1e-105"):
        yield k, term
        k += 1
        term = term * sign * half * half / (k * (k + order))


def series(order, sign, weight=lambda k: 1):
    return lambda x: sum((weight(k) * term for k, term in terms(x, order, sign)), Decimal(0))


def harmonic(k):
    return sum((Decimal(1) / n for n in range(1, k + 1)), Decimal(0))


def two_digammas(k):
    return harmonic(k) + harmonic(k + 1) - 2 * EULER


j0, j1, i0, i1 = series(0, -1), series(1, -1), series(0, 1), series(1, 1)


def y0(x):
    return 2 / PI * ((x / 2).ln() + EULER) * j0(x) - 2 / PI * series(0, -1, harmonic)(x)


def y1(x):
    return 2 / PI * (x / 2).ln() * j1(x) - 2 / (PI * x) - series(1, -1, two_digammas)(x) / PI


def k0(x):
    return series(0, 1, harmonic)(x) - ((x / 2).ln() + EULER) * i0(x)


def k1(x):
    return 1 / x + (x / 2).ln() * i1(x) - series(1, 1, two_digammas)(x) / 2


def airy(x):
    f = g = Decimal(0)
    even, odd, k = Decimal(1), x, 0
    while k < 30 or abs(even) + abs(odd) > Decimal("1e-105"):
        f, g, k = f + even, g + odd, k + 1
        even, odd = even * x**3 / ((3 * k - 1) * 3 * k), odd * x**3 / (3 * k * (3 * k + 1))
    return AIRY * f - AIRY_SLOPE * g


def erfc(x):
    total, term, k = Decimal(0), x, 0
    while k < 40 or abs(term) > Decimal("1e-105"):
        total, k = total + term / (2 * k + 1), k + 1
        term = -term * x * x / k
    return 1 - 2 * total / PI.sqrt()


def exactly(function):
    return np.vectorize(lambda x: float(function(Decimal(float(x)))), otypes=[float])


def add(table, operator, function, points, argument="self", dtypes=FLOATS):
    """Within a few steps of the result; around roots, of 1."""
    for dtype in dtypes:
        x = Array(dtype, points)
        values = function(x.values.astype(np.float64))
        result = dtype if dtype in FLOATS else "float32"
        expected = Array(result, convert(values, wide(result)))
        table.add(operator, expected, np.maximum(1e-30, np.abs(expected.values.astype(np.float64))) * STEP[result] +
                  (np.abs(values) < 1) * np.minimum(np.abs(values) + 1e-3, 1) * STEP[result], **{argument: x})


def special_values(table, operator, points, values, argument="self"):
    for dtype in ("float32", "float64"):
        table.add(operator, Array(dtype, values), "exact", **{argument: Array(dtype, points)})


def bessel(table):
    near = [0.0625, 0.5, 1.0, 1.75, 2.0, 2.5, 4.0, 7.5]
    both = near + [-0.5, -2.5, -7.5]
    far = [12.0, 29.0, 31.0, 40.0]
    for operator, function, points, argument in (
            ("special_bessel_j0", j0, both + far, "self"), ("special_bessel_j1", j1, both + far, "self"),
            ("special_bessel_y0", y0, near + far, "self"), ("special_bessel_y1", y1, near + far, "self"),
            ("special_modified_bessel_k0", k0, near + far, "self"),
            ("special_modified_bessel_k1", k1, near + far, "self"),
            ("special_scaled_modified_bessel_k0", lambda x: k0(x) * x.exp(), near + far, "x"),
            ("special_scaled_modified_bessel_k1", lambda x: k1(x) * x.exp(), near + far, "x"),
            ("special_i0e", lambda x: i0(x) * (-abs(x)).exp(), both + far + [-31.0], "self"),
            ("special_i1e", lambda x: i1(x) * (-abs(x)).exp(), both + far + [-31.0], "self"),
            ("special_airy_ai", airy, both + [-9.0, -12.5, 0.0, 10.0, 20.0], "x")):
        # Halves have too few digits for arguments far out.
        add(table, operator, exactly(function), points, argument, ("float32", "float64"))
        add(table, operator, exactly(function), near, argument, ("float16", "bfloat16"))
    for operators, function in ((("i0", "special_i0", "special_modified_bessel_i0"), i0),
                                (("special_i1", "special_modified_bessel_i1"), i1)):
        for operator in operators:
            add(table, operator, exactly(function), both + far, dtypes=("float32", "float64"))
            add(table, operator, exactly(function), near, dtypes=("float16", "bfloat16"))
            add(table, operator, exactly(function), [0, 1, 2, 7], dtypes=("int32", "bool", "uint8"))
    add(table, "special_spherical_bessel_j0", lambda x: np.sinc(x / np.pi), [0.0, 0.5, -2.0, 3.0, 30.0], "x")
    for operator, at_zero in (("special_bessel_j0", 1), ("special_bessel_j1", 0), ("special_i0e", 1), ("i0", 1),
                              ("special_i1", 0)):
        special_values(table, operator, [0.0, np.nan], [at_zero, np.nan])
    for operator in ("special_bessel_y0", "special_bessel_y1"):
        special_values(table, operator, [0.0, -1.0, np.nan], [-np.inf, np.nan, np.nan])
    for operator in ("special_modified_bessel_k0", "special_modified_bessel_k1"):
        special_values(table, operator, [0.0, -1.0, np.nan], [np.inf, np.nan, np.nan])


def normal(table):
    points = [0.0, 0.25, 1.0, -1.0, -2.5, 3.0, 5.5, -0.75]
    add(table, "special_erfcx", exactly(lambda x: (x * x).exp() * erfc(x)), points)
    add(table, "special_erfcx", exactly(lambda x: (x * x).exp() * erfc(x)), [7.0, 8.5], dtypes=("float64",))
    add(table, "special_log_ndtr", exactly(lambda x: (erfc(-x / Decimal(2).sqrt()) / 2).ln()), points + [-8.0, -11.0])
    add(table, "special_ndtri", np.vectorize(NormalDist().inv_cdf), [0.5, 0.25, 0.75, 0.0625, 0.96875, 0.015625])
    add(table, "special_ndtri", np.vectorize(NormalDist().inv_cdf), [1e-10, 1e-30, 0.001], dtypes=("float64",))
    special_values(table, "special_ndtri", [0.0, 1.0, -0.5, 2.0], [-np.inf, np.inf, np.nan, np.nan])


ZETA = {2.0: math.pi**2 / 6, 3.0: 1.2020569031595942, 4.0: math.pi**4 / 90, 1.5: 2.6123753486854883}


def zeta(s, q):
    """At q = 1, and from there by the step from q to q + 1; of a large s the terms themselves."""
    if s > 20:
        return math.fsum((q + k) ** -s for k in range(200))
    return ZETA[s] if q == 1 else zeta(s, q - 1) - (q - 1) ** -s if q > 1 else zeta(s, q + 1) + q**-s


def zetas(table):
    pairs = [(2.0, 1.0), (2.0, 3.0), (3.0, 1.0), (4.0, 2.0), (1.5, 1.0), (1.5, 4.0), (100.0, 3.0), (50.0, 1.5)]
    for dtype in ("float32", "float64"):
        s, q = (Array(dtype, [pair[at] for pair in pairs]) for at in (0, 1))
        values = np.array([zeta(*pair) for pair in pairs])
        table.add("special_zeta", Array(dtype, convert(values, wide(dtype))), values * STEP[dtype] + 1e-45, self=s,
                  other=q)
        table.add("special_zeta", Array(dtype, [np.inf, np.nan, np.inf, np.nan]), "exact",
                  self=Array(dtype, [1.0, 0.5, 2.0, 2.5]), other=Array(dtype, [2.0, 2.0, -1.0, -0.5]))
        values = np.array([zeta(2.0, n) for n in (1.0, 2.0, 5.0)])
        x = Array(dtype, [1.0, 2.0, 5.0])
        table.add("special_zeta.self_scalar", Array(dtype, convert(values, wide(dtype))), values * STEP[dtype], self_=2,
                  other=x)
        values = np.array([zeta(n, 3.0) for n in (1.5, 2.0, 4.0)])
        x = Array(dtype, [1.5, 2.0, 4.0])
        table.add("special_zeta.other_scalar", Array(dtype, convert(values, wide(dtype))), values * STEP[dtype], self=x,
                  other=3.0)


def second_kind(x, n):
    """Chebyshev's U: U(n) = 2 (T(n) + T(n - 2) + …), with T(0) once."""
    weights = np.zeros(n + 1)
    weights[n % 2::2] = 2
    if n % 2 == 0:
        weights[0] = 1
    return chebyshev.chebval(x, weights) if n >= 0 else np.zeros_like(x)


def of(evaluate):
    return lambda x, n: evaluate(x, np.eye(n + 1)[n]) if n >= 0 else np.zeros_like(x)


def third(x, n, sign):
    return second_kind(x, n) + sign * (second_kind(x, n - 1) if n > 0 else 0)


def polynomials(table):
    first = of(chebyshev.chebval)
    families = {"chebyshev_polynomial_t": first, "chebyshev_polynomial_u": second_kind,
                "chebyshev_polynomial_v": lambda x, n: third(x, n, -1) if n >= 0 else 0 * x,
                "chebyshev_polynomial_w": lambda x, n: third(x, n, 1) if n >= 0 else 0 * x,
                "hermite_polynomial_h": of(hermite.hermval), "hermite_polynomial_he": of(hermite_e.hermeval),
                "laguerre_polynomial_l": of(laguerre.lagval), "legendre_polynomial_p": of(legendre.legval)}
    for letter in "tuvw":
        families[f"shifted_chebyshev_polynomial_{letter}"] = (
            lambda x, n, plain=families[f"chebyshev_polynomial_{letter}"]: plain(2 * x - 1, n))
    points = np.array([-1.0, -0.75, -0.125, 0.0, 0.5, 0.875, 1.0, 1.5])
    for name, function in families.items():
        for dtype in ("float32", "float64"):
            x = Array(dtype, points)
            degrees = Array(dtype, [[-1.0], [0.0], [1.0], [2.0], [5.0], [9.0]])
            values = np.array([function(points, int(n)) for n in degrees.values[:, 0]])
            bound = np.maximum(1, np.abs(values)) * STEP[dtype] * 8
            table.add(f"special_{name}", Array(dtype, values), bound, x=x, n=degrees)
            table.add(f"special_{name}.n_scalar", Array(dtype, values[4]), bound[4], x=x, n=5)
            whole = Array(dtype, [0.0, 1.0, 2.0, 4.0])
            values = np.array([function(np.array(0.25), int(n)) for n in whole.values])
            table.add(f"special_{name}.x_scalar", Array(dtype, values), np.maximum(1, np.abs(values)) * STEP[dtype],
                      x=0.25, n=whole)
        values = function(np.array([0.0, 1.0, 2.0]), 3)
        table.add(f"special_{name}", Array("float32", values), np.abs(values) * STEP["float32"] + 1e-6,
                  x=Array("int32", [0, 1, 2]), n=Array("int64", [3, 3, 3]))


def pairs_with_numbers(table):
    def x_log(x, y, shift):
        with np.errstate(all="ignore"):
            return np.where(np.isnan(y), np.nan, np.where(x == 0, 0, x * np.log(y + shift)))

    for dtype in ("float32", "float64"):
        x, y = Array(dtype, [0.0, 1.5, -2.0, 0.0]), Array(dtype, [0.5, 2.0, 3.0, np.nan])
        a, b = x.values.astype(np.float64), y.values.astype(np.float64)

        def expect(operator, values, **arguments):
            distance = np.where(np.isnan(values), 0, np.abs(values)) * STEP[dtype]
            table.add(operator, Array(dtype, convert(values, wide(dtype))), distance, **arguments)

        expect("special_xlogy", x_log(a, b, 0), self=x, other=y)
        expect("special_xlog1py", x_log(a, b, 1), self=x, other=y)
        expect("xlogy.Scalar_Self", x_log(1.5, b, 0), self_=1.5, other=y)
        expect("xlogy.Scalar_Other", x_log(a, 2.5, 0), self=x, other=2.5)
        expect("special_xlog1py.self_scalar", x_log(1.5, b, 1), self_=1.5, other=y)
        expect("special_xlog1py.other_scalar", x_log(a, 2.5, 1), self=x, other=2.5)
    expect_int = x_log(np.array([0.0, 1, 2]), np.array([1.0, 2, 3]), 1)
    table.add("special_xlog1py", Array("float32", expect_int), np.full(3, 1e-6), self=Array("int32", [0, 1, 2]),
              other=Array("int64", [1, 2, 3]))
    x = Array("float64", [1.0, 0.5, 2.0])
    table.add("special_polygamma", Array("float64", [math.pi**2 / 6, math.pi**2 / 2, math.pi**2 / 6 - 1]),
              np.full(3, 1e-13), n=1, self=x)
    x = Array("float64", [2.0, 3.5, 10.0])
    values = [math.lgamma(v) + math.lgamma(v - 0.5) + math.log(math.pi) / 2 for v in (2.0, 3.5, 10.0)]
    table.add("special_multigammaln", Array("float64", values), np.full(3, 1e-12), self=x, p=2)
    x = Array("float64", [0.25, 0.5])
    table.add("special_logit", Array("float64", [-math.log(3), 0.0]), np.full(2, 1e-14), self=x)
    x = Array("float32", [1.25, -2.5, 3.5])
    table.add("special_round", Array("float32", np.round(x.values)), self=x)
    table.add("special_round", Array("float32", np.round(x.values * np.float32(10)) / np.float32(10)), self=x,
              decimals=1)


def shifts_and_bounds(table):
    for dtype in INTEGERS:
        x = Array(dtype, [1, 5, 100, 7, 64])
        bits = 8 * x.values.dtype.itemsize
        y = Array(dtype, [0, 1, 2, 3, bits - 1])
        for operator, function in (("bitwise_left_shift", np.left_shift), ("bitwise_right_shift", np.right_shift)):
            table.add(operator + ".Tensor", Array(dtype, function(x.values, y.values)), self=x, other=y)
            table.add(operator + ".Tensor_Scalar", Array(dtype, function(x.values, x.values.dtype.type(2))), self=x,
                      other=2)
    x = Array("int32", [-5, -1, 12, 3])
    table.add("bitwise_right_shift.Tensor", Array("int32", [-3, -1, 0, 0]), self=x,
              other=Array("int32", [1, 40, 40, -1]))
    table.add("bitwise_left_shift.Tensor", Array("int32", [-10, 0, 0, 0]), self=x,
              other=Array("int32", [1, 32, 40, -1]))
    for dtype in ("float32", "float64", "int32", "uint8", "float16"):
        x, y = Array(dtype, [[1, 5, 3], [7, 2, 4]]), Array(dtype, [4, 1, 3])
        table.add("clamp_min.Tensor", Array(dtype, np.maximum(x.values, y.values)), self=x, min=y)
        table.add("clamp_max.Tensor", Array(dtype, np.minimum(x.values, y.values)), self=x, max=y)
    x, y = Array("float32", [1, np.nan, 2]), Array("float32", [np.nan, 1, 3])
    table.add("clamp_min.Tensor", Array("float32", [np.nan, np.nan, 3]), self=x, min=y)
    table.add("clamp_max.Tensor", Array("float32", [np.nan, np.nan, 2]), self=x, max=y)


def write(table):
    bessel(table)
    normal(table)
    zetas(table)
    polynomials(table)
    pairs_with_numbers(table)
    shifts_and_bounds(table)
