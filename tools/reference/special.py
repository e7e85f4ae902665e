"""Rows of numbers.cpp, special.cpp, running.cpp and aliases.cpp, and small functions of other rows (dist, one_hot, …).

Of functions that NumPy lacks the values are closed forms, or those of Python's own library.
"""

import decimal
import math
from statistics import NormalDist

import numpy as np

from elements import Array, FLOATS, INTEGERS, ORDER, category, convert, operand, result_type, wide
from pointwise import FUNCTIONS, SPECIAL, draw, floating, pairs, ulps

EULER = 0.5772156649015329
ZETA_3 = 1.2020569031595942


def vectorized(function):
    return np.vectorize(function, otypes=[float])


def signs(table):
    for dtype in ORDER:
        x = draw("sgn", dtype, (2, 7), -2, 2)
        if dtype != "bool":
            table.add("sgn", Array(dtype, np.sign(x.wide())), self=x)
        table.add("signbit", Array("bool", np.signbit(x.values) if dtype in FLOATS else x.values < 0), self=x)
        table.add("isposinf", Array("bool", np.zeros((2, 7))), self=x)
        table.add("isneginf", Array("bool", np.zeros((2, 7))), self=x)
        result = floating(dtype)
        scale = np.asarray(np.pi / 180, np.float64)
        for operator, factor in (("deg2rad", scale), ("rad2deg", 1 / scale)):
            expected = operand(x, result).astype(np.float64) * factor
            table.add(operator, Array(result, convert(expected, wide(result))), ulps(result, 2), self=x)
    for dtype in FLOATS:
        x = Array(dtype, SPECIAL[1:] + [1.5, -2.0])
        table.add("sgn", Array(dtype, np.sign(x.values)), self=x)
        table.add("signbit", Array("bool", np.signbit(x.values)), self=x)
        everything = Array(dtype, SPECIAL + [1.5, -2.0])
        table.add("isposinf", Array("bool", everything.values == np.inf), self=everything)
        table.add("isneginf", Array("bool", everything.values == -np.inf), self=everything)
        y = draw("frac", dtype, (3, 5))
        table.add("frac", Array(dtype, y.wide() - np.trunc(y.wide())), self=y)
        largest = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}.get(dtype, None)
        largest = float(np.finfo(dtype).max) if largest is None else largest
        for nan, high, low in ((None, None, None), (3.0, None, None), (None, 4.0, None), (None, None, 5.0),
                               (1.0, 2.0, 3.0)):
            values = np.where(np.isnan(everything.values), 0 if nan is None else nan, everything.values)
            values = np.where(everything.values == np.inf, largest if high is None else high, values)
            values = np.where(everything.values == -np.inf, -largest if low is None else low, values)
            table.add("nan_to_num", Array(dtype, values), self=everything, nan=nan, posinf=high, neginf=low)
    x = draw("nan_to_num", "int32", (4,))
    table.add("nan_to_num", x, self=x)
    for a, b in pairs("copysign", FLOATS):
        dtype = result_type(a, b)
        table.add("copysign.Tensor", Array(dtype, np.copysign(operand(a, dtype), without_nan(operand(b, dtype)))),
                  self=a, other=Array(b.dtype, without_nan(b.values)))
    x = Array("float32", [1.5, -2, 0.0, -0.0, np.inf])
    for other in (2, -2.5):
        table.add("copysign.Scalar", Array("float32", np.copysign(x.values, other)), self=x, other=other)
    for dtype in ("float32", "float64", "int32", "float16"):
        x, at_zero = Array(dtype, [-2, 0, 3, 0]), Array(dtype, [5, 6, 7, -8])
        table.add("heaviside", Array(dtype, [0, 6, 1, -8]), self=x, values=at_zero)
    for dtype in ("float32", "float64"):
        x = Array(dtype, [123.456, -0.125, 2.675, 1e-3, 250.0])
        for decimals in (0, 1, -1, 2):
            scale = x.values.dtype.type(10.0 ** abs(decimals))
            expected = np.round(x.values * scale) / scale if decimals >= 0 else np.round(x.values / scale) * scale
            table.add("round.decimals", Array(dtype, expected), self=x, decimals=decimals)


def without_nan(values):
    return np.where(np.isnan(values), values.dtype.type(1), values)


def two_numbers(table):
    def run(function, dtype, a, b):
        with np.errstate(all="ignore"):
            return function(operand(a, dtype).astype(np.float64), operand(b, dtype).astype(np.float64))

    for operator, function in (("fmax", np.fmax), ("fmin", np.fmin)):
        for a, b in pairs(operator, ORDER):
            dtype = result_type(a, b)
            with np.errstate(all="ignore"):
                table.add(operator, Array(dtype, function(operand(a, dtype), operand(b, dtype))), self=a, other=b)
    for operator, function in (("hypot", np.hypot), ("logaddexp", np.logaddexp), ("logaddexp2", np.logaddexp2)):
        for a, b in pairs(operator, FLOATS):
            if "int" in a.dtype or "int" in b.dtype:
                continue
            dtype = result_type(a, b)
            expected = Array(dtype, convert(run(function, dtype, a, b), wide(dtype)))
            distance = ulps(dtype, 4)
            if operator != "hypot":
                # Where both parts cancel, what counts is their size.
                size = np.maximum(1, np.abs(np.where(np.isfinite(expected.values), expected.values, 0)))
                step = {"float16": 2.0**-9, "bfloat16": 2.0**-6, "float32": 2.0**-21, "float64": 2.0**-50}[dtype]
                distance = size.astype(np.float64) * step
            table.add(operator, expected, distance, self=a, other=b)

    def x_log_y(x, y):
        return np.where(np.isnan(y), np.nan, np.where(x == 0, 0, x * np.log(y)))

    for a, b in pairs("xlogy", ORDER, 0.1, 5):
        dtype = floating(result_type(a, b))
        expected = Array(dtype, convert(run(x_log_y, dtype, a, b), wide(dtype)))
        table.add("xlogy.Tensor", expected, ulps(dtype, 6), self=a, other=b)
    for dtype in ("float32", "float64", "int64"):
        x = Array(dtype, [0, 1, 2, 5])
        table.add("pow.Scalar", Array(dtype, np.power(3, x.values)), "ulp 4" if dtype in FLOATS else "exact", self_=3,
                  exponent=x)
    x = Array("int32", [0, 1, 2, -1])
    table.add("pow.Scalar", Array("float32", np.power(2.5, x.values.astype(np.float64))), "ulp 4", self_=2.5,
              exponent=x)


def neighbours(table):
    """Every pair of some numbers: the ends of the range, numbers without leading digits, powers of two."""
    for dtype in FLOATS:
        least, most = {"float16": (2.0**-24, 65504.0), "bfloat16": (2.0**-133, 3.3895313892515355e38),
                       "float32": (2.0**-149, float(np.finfo("float32").max)),
                       "float64": (5e-324, float(np.finfo("float64").max))}[dtype]
        digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype]
        ends = [0.0, least, least * 2**(digits - 1), least * (2**(digits - 1) - 1), least * 2**digits,
                least * 2.0**(2 * digits - 2), 0.75, 1.0, 2 - 2.0**(1 - digits), most, np.inf]
        points = Array(dtype, [sign * end for end in ends for sign in (1, -1)] + [np.nan, 3.14159])
        count = len(points.values)
        a, b = np.repeat(points.values, count), np.tile(points.values, count)
        table.add("nextafter", Array(dtype, neighbour(a, b, dtype)), self=Array(dtype, a), other=Array(dtype, b))
    for a, b in pairs("nextafter", FLOATS):
        dtype = result_type(a, b)
        expected = neighbour(*np.broadcast_arrays(operand(a, dtype), operand(b, dtype)), dtype)
        table.add("nextafter", Array(dtype, expected), self=a, other=b)


def neighbour(a, b, dtype):
    if dtype != "bfloat16":
        with np.errstate(all="ignore"):
            return np.nextafter(a.astype(dtype), b.astype(dtype))
    # The upper halves of floats: their bits count in the order of their sizes.
    bits = np.ascontiguousarray(np.abs(a)).view(np.uint32) >> 16
    outward = np.where(a < 0, b < a, b > a)
    moved = (np.where(outward, bits + 1, bits - 1) << 16).astype(np.uint32).view(np.float32)
    least = np.copysign(np.float32(2.0**-133), b)
    moved = np.where(a == 0, least, np.copysign(moved, a))
    return np.where(a == b, b, np.where(np.isnan(a) | np.isnan(b), np.float32(np.nan), moved)).astype(np.float32)


def incomplete_gamma(table):
    """Sums in many digits of decimals; gamma itself at whole numbers and halves, and by exact products between."""
    decimal.getcontext().prec = 250
    number = decimal.Decimal
    # Pi by the arithmetic and geometric mean of Gauss and Legendre.
    mean, other, rest, weight = number(1), 1 / number(2).sqrt(), number("0.25"), number(1)
    for _ in range(9):
        before = mean
        mean, other = (mean + other) / 2, (mean * other).sqrt()
        rest, weight = rest - weight * (before - mean) ** 2, weight * 2
    root_of_pi = ((mean + other) ** 2 / (4 * rest)).sqrt()

    def gamma_of_next(a):
        """gamma(a + 1), of a multiple of a half."""
        product = number(1)
        while a > number("0.5"):
            product, a = product * a, a - 1
        return product * (number(1) if a == 0 else root_of_pi / 2 if a == number("0.5") else root_of_pi)

    def lower(a, x):
        if math.isnan(a) or math.isnan(x) or a < 0 or x < 0 or a == x == 0:
            return math.nan
        if a == 0 or math.isinf(x):
            return math.nan if math.isinf(a) else 1
        if x == 0 or math.isinf(a):
            return 0
        a, x = number(a), number(x)
        term = total = number(1)
        for step in range(1, 100000):
            term *= x / (a + step)
            total += term
            if term < total * number("1e-240"):
                break
        return total * (a * x.ln() - x).exp() / gamma_of_next(a)

    points = [(a, x) for a in (0.5, 1.0, 1.5, 2.0, 4.5, 11.0, 20.5, 100.0)
              for x in (0.001, 0.25, 0.5, 1.0, 1.5, 4.0, 11.5, 25.0, 90.0, 130.0)]
    points += [(a, x) for a in (0.0, 1.0, math.inf, -1.0, math.nan) for x in (0.0, 1.0, math.inf, -1.0, math.nan)
               if not (math.isnan(a) and x in (0.0, math.inf)) and not (math.isnan(x) and a == math.inf)]
    points += [(1000.0, x) for x in (900.0, 990.0, 1000.0, 1010.0, 1100.0)]
    for dtype in FLOATS:
        a, x = (Array(dtype, [point[which] for point in points]) for which in (0, 1))
        pairs_of_numbers = list(zip(a.values.astype(float), x.values.astype(float)))
        values = [lower(*pair) for pair in pairs_of_numbers]
        for operator, results in (("igamma", values), ("igammac", [1 - each for each in values])):
            exact = np.array([float(each) for each in results])
            step = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-22, "float64": 2.0**-43}[dtype]
            least = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}[dtype]
            bound = np.where(np.isnan(exact), 0, np.abs(np.nan_to_num(exact)) * step + least)
            table.add(operator, Array(dtype, convert(exact, wide(dtype))), bound, self=a, other=x)
    # Broadcast and promoted.
    a, x = Array("float32", [[0.5], [2.0]]), Array("float64", [0.25, 1.0, 4.0])
    exact = np.array([[float(lower(row, column)) for column in x.values] for row in a.wide()[:, 0].tolist()])
    table.add("igamma", Array("float64", exact), np.full((2, 3), 1e-14), self=a, other=x)
    table.add("igammac", Array("float64", 1 - exact), np.full((2, 3), 1e-14), self=a, other=x)
    # The expansion for large parameters is where it meets the sum.
    a, x = Array("float64", [200000.0] * 5), Array("float64", [199000.0, 199900.0, 200000.0, 200100.0, 201000.0])
    exact = np.array([float(lower(*pair)) for pair in zip(a.values, x.values)])
    table.add("igamma", Array("float64", exact), exact * 1e-11, self=a, other=x)


def special_functions(table):
    # Digits are lost around the roots: there, the distance from them counts.
    def close(operator, function, points, dtypes=FLOATS, **more):
        for dtype in dtypes:
            x = Array(dtype, points)
            expected = Array(dtype, convert(vectorized(function)(x.values.astype(np.float64)), wide(dtype)))
            step = {"float16": 2.0**-9, "bfloat16": 2.0**-6, "float32": 2.0**-21, "float64": 2.0**-49}[dtype]
            bound = np.maximum(1, np.abs(expected.values.astype(np.float64))) * step
            table.add(operator, expected, np.where(np.isfinite(bound), bound, 0), self=x, **more)

    def lgamma(x):
        return math.inf if x <= 0 and x == math.floor(x) or math.isinf(x) else math.lgamma(x)

    points = [0.5, 1.0, 1.5, 2.0, 3.25, 10.0, 30.5, 0.125, -0.5, -1.25, -3.5, 0.0, -2.0]
    close("lgamma", lgamma, points)
    close("special_gammaln", lgamma, points, ["float32"])
    tail = [0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 1e-6]
    close("erfc", math.erfc, tail)
    for operator in ("erfc", "special_erfc"):
        # The tail keeps its digits.
        x = Array("float64", [3.0, 5.0, 9.0, 20.0])
        table.add(operator, Array("float64", vectorized(math.erfc)(x.values)), "ulp 4", self=x)
        x = Array("float32", [3.0, 5.0, 9.0])
        table.add(operator, Array("float32", vectorized(math.erfc)(x.values.astype(np.float64))), "ulp 4", self=x)

    def erfinv(y):
        if abs(y) >= 1:
            return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
        return NormalDist().inv_cdf((y + 1) / 2) / math.sqrt(2)

    close("erfinv", erfinv, [0.0, 0.5, -0.5, 0.25, 0.875, -0.96875, 1.0, -1.0, 2.0, 0.0625])
    close("special_erfinv", erfinv, [0.5, -0.25], ["float32"])
    for x, y in ((0.5, math.erf(0.5)), (2.0, math.erf(2.0)), (1e-5, math.erf(1e-5))):
        table.add("erfinv", Array("float64", x), "within 1e-14", self=Array("float64", y))

    # Closed forms at whole numbers, halves and quarters; the rest by digamma(x + 1) = digamma(x) + 1/x.
    base = {1.0: -EULER, 0.5: -EULER - 2 * math.log(2), 0.25: -EULER - math.pi / 2 - 3 * math.log(2),
            0.75: -EULER + math.pi / 2 - 3 * math.log(2)}

    def digamma(x):
        if x == 0:
            return math.copysign(math.inf, -x)
        if x < 0 and x == math.floor(x):
            return math.nan
        if x in base:
            return base[x]
        return digamma(x - 1) + 1 / (x - 1) if x > 1 else digamma(x + 1) - 1 / x

    points = [1.0, 0.5, 0.25, 0.75, 2.0, 3.5, 7.25, 20.0, -0.5, -0.25, -2.75, -6.5, 0.0, -0.0, -3.0]
    close("digamma", digamma, points)
    for operator in ("special_digamma", "special_psi"):
        close(operator, digamma, [1.0, 3.5, -0.5], ["float64"])
    trigamma = {1.0: math.pi**2 / 6, 0.5: math.pi**2 / 2}

    def polygamma_1(x):
        if x in trigamma:
            return trigamma[x]
        return polygamma_1(x - 1) - 1 / (x - 1) ** 2 if x > 1 else polygamma_1(x + 1) + 1 / x**2

    close("polygamma", polygamma_1, [1.0, 0.5, 2.0, 3.5, 12.0, -0.5, -4.5], n=1)
    close("polygamma", lambda x: {1.0: -2 * ZETA_3, 0.5: -14 * ZETA_3, 2.0: -2 * ZETA_3 + 2}[x], [1.0, 0.5, 2.0],
          ["float64", "float32"], n=2)
    close("polygamma", lambda x: {1.0: math.pi**4 / 15, 0.5: math.pi**4}[x], [1.0, 0.5], ["float64"], n=3)
    close("polygamma", digamma, [1.0, 0.25, -2.75], ["float64"], n=0)

    def multigamma(x, p):
        return sum(math.lgamma(x - i / 2) for i in range(p)) + p * (p - 1) / 4 * math.log(math.pi)

    for p in (1, 2, 4):
        close("mvlgamma", lambda x: multigamma(x, p), [2.0, 3.5, 10.0], ["float32", "float64"], p=p)
    for dtype in ("float32", "float64"):
        x = Array(dtype, [0.1, 0.5, 0.9, 0.25])
        values = x.values.astype(np.float64)
        table.add("logit", Array(dtype, np.log(values / (1 - values))), np.full(4, 1e-6), self=x)
        clipped = np.clip(values, 0.2, 0.8)
        table.add("logit", Array(dtype, np.log(clipped / (1 - clipped))), np.full(4, 1e-6), self=x, eps=0.2)
    table.add("logit", Array("float32", [-np.inf, np.inf, np.nan]), self=Array("float32", [0.0, 1.0, 2.0]))
    for operator in ("sinc", "special_sinc"):
        for dtype in FLOATS:
            x = Array(dtype, [0.0, 0.5, -0.25, 1.5, 2.25])
            values = x.values.astype(np.float64)
            table.add(operator, Array(dtype, convert(np.sinc(values), wide(dtype))),
                      np.full(5, {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 1e-14}[dtype]), self=x)
    for dtype in FLOATS:
        x = Array(dtype, [0.0, 0.5, 2.0, -1.0, np.nan])
        with np.errstate(all="ignore"):
            values = x.values.astype(np.float64)
            entropy = np.where(values > 0, -values * np.log(values), np.where(values == 0, 0, -np.inf))
        table.add("special_entr", Array(dtype, convert(np.where(np.isnan(values), np.nan, entropy), wide(dtype))),
                  ulps(dtype, 4), self=x)
    close("special_ndtr", NormalDist().cdf, [0.0, 1.0, -1.0, 2.5, -3.0], ["float32", "float64"])


def running(table):
    for dtype in ORDER[1:]:
        result = dtype if dtype in FLOATS else "int64"
        for shape, dim in (((5,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 3, 2), -2), ((), 0), ((0, 3), 1)):
            x = draw("cumprod", dtype, shape, -2, 2)
            if dtype in INTEGERS:
                x = Array(dtype, x.values % 4)
            values = x.values.astype(np.float64 if dtype in FLOATS else np.int64)
            expected = np.cumprod(values, axis=dim) if shape else values
            table.add("cumprod", Array(result, expected), "exact" if dtype in INTEGERS else ulps(dtype, 8),
                      self=x.strided(list(range(len(shape)))), dim=dim)
            if dtype in FLOATS:
                sums = np.logaddexp.accumulate(values, axis=dim) if shape and 0 not in shape else values
                step = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-6, "float64": 1e-14}[dtype]
                table.add("logcumsumexp", Array(dtype, sums), np.full(shape, step), self=x, dim=dim)
    x = draw("cumprod", "int32", (5,), 1, 3)
    table.add("cumprod", Array("float64", np.cumprod(x.values)), self=x, dim=0, dtype="float64")
    x = Array("float32", [-np.inf, 1.0, np.inf, 2.0, np.nan, 0.0])
    table.add("logcumsumexp", Array("float32", [-np.inf, 1, np.inf, np.inf, np.nan, np.nan]), self=x, dim=0)
    x = Array("float32", [1000.0, 1000.0, -1000.0])
    table.add("logcumsumexp", Array("float32", np.logaddexp.accumulate(x.values.astype(np.float64))), "ulp 4", self=x,
              dim=0)


def searches(table):
    for dtype in ORDER[1:]:
        sequence = Array(dtype, [1, 3, 3, 5, 7])
        values = Array(dtype, [[0, 1, 3], [4, 7, 9]])
        for right in (False, True):
            expected = np.searchsorted(sequence.values, values.values, side="right" if right else "left")
            table.add("searchsorted.Tensor", Array("int64", expected), sorted_sequence=sequence, self=values,
                      right=right)
            table.add("bucketize.Tensor", Array("int32", expected), self=values, boundaries=sequence, right=right,
                      out_int32=True)
    lines = Array("float32", [[1, 2, 3], [2, 4, 6]])
    values = Array("int64", [[2, 3, 0, 5], [2, 3, 0, 5]])
    expected = [np.searchsorted(row, wanted, side="right") for row, wanted in zip(lines.values, values.values)]
    table.add("searchsorted.Tensor", Array("int64", expected), sorted_sequence=lines, self=values, side="right")
    mixed = Array("float64", [5, 1, 3])
    table.add("searchsorted.Tensor", Array("int64", [0, 2, 3]), sorted_sequence=mixed, self=Array("float64", [0, 4, 6]),
              sorter=Array("int64", [1, 2, 0]))
    ends = Array("float32", [-np.inf, 0, np.inf, np.nan])
    table.add("searchsorted.Tensor", Array("int64", [0, 2, 2, 3]), sorted_sequence=ends,
              self=Array("float32", [-np.inf, 5, np.inf, np.nan]))
    table.add("bucketize.Tensor", Array("int64", 1), self=Array("float32", 2.5),
              boundaries=Array("float32", [1.0, 4.0]))


ALIASES = {"absolute": np.abs, "negative": np.negative, "fix": np.trunc}
INVERSE = {"arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
           "arctanh": "atanh", "special_erf": "erf", "special_exp2": "exp2", "special_expm1": "expm1",
           "special_expit": "sigmoid", "special_log1p": "log1p"}
PAIRS = {"multiply.Tensor": np.multiply, "divide.Tensor": np.divide, "true_divide.Tensor": np.divide,
         "subtract.Tensor": np.subtract}
COMPARISONS = {"greater.Tensor": np.greater, "greater_equal.Tensor": np.greater_equal, "less.Tensor": np.less,
               "less_equal.Tensor": np.less_equal, "not_equal.Tensor": np.not_equal}


def second_names(table):
    for operator, function in ALIASES.items():
        for dtype in ("float32", "float64", "float16"):
            x = draw(operator, dtype, (3, 4))
            table.add(operator, Array(dtype, function(x.wide())), self=x)
    for operator, row in INVERSE.items():
        function, (low, high), _ = FUNCTIONS[row]
        for dtype in ("float32", "float64"):
            x = draw(operator, dtype, (6,), low, high)
            table.add(operator, Array(dtype, function(x.values.astype(np.float64))), "ulp 4", self=x)
    a, b = draw("arctan2 a", "float32", (5,)), draw("arctan2 b", "float32", (5,))
    table.add("arctan2", Array("float32", np.arctan2(a.values.astype(np.float64), b.values.astype(np.float64))),
              "ulp 4", self=a, other=b)
    for operator, function in PAIRS.items():
        a, b = draw(operator + "a", "float32", (2, 3), 1, 4), draw(operator + "b", "float32", (3,), 1, 4)
        table.add(operator, Array("float32", function(a.values, b.values)), self=a, other=b)
    a, b = draw("subtract a", "int32", (3,)), draw("subtract b", "int32", (3,))
    table.add("subtract.Tensor", Array("int32", a.values - 2 * b.values), self=a, other=b, alpha=2)
    for operator, function in COMPARISONS.items():
        a, b = Array("int32", [1, 2, 3]), Array("float32", [1.0, 2.5, 2.0])
        table.add(operator, Array("bool", function(a.values, b.values)), self=a, other=b)


def composites(table):
    for p in (2, 1, 3.5, float("inf")):
        a, b = draw("dist a", "float64", (2, 3)), draw("dist b", "float64", (3,))
        difference = np.abs(a.values - b.values)
        expected = difference.max() if p == float("inf") else (difference**p).sum() ** (1 / p)
        table.add("dist", Array("float64", expected), "ulp 8", self=a, other=b, p=p)
    for dtype in ("float32", "int64", "float64"):
        x = draw("trace", dtype, (3, 4))
        table.add("trace", Array(dtype, np.trace(x.values.astype(np.float64))), "ulp 4" if dtype in FLOATS else "exact",
                  self=x)
        a, b = draw("outer a", dtype, (3,)), draw("outer b", dtype, (2,))
        table.add("outer", Array(dtype, np.outer(a.values, b.values)), self=a, vec2=b)
    for dtype in ("float32", "float64"):
        x = Array(dtype, [[1, np.nan, 3], [np.nan, np.nan, 2], [4, 5, 6]])
        table.add("nansum", Array(dtype, np.nansum(x.values)), self=x)
        table.add("nansum", Array(dtype, np.nansum(x.values, axis=1)), self=x, dim=[1])
        table.add("nansum", Array(dtype, np.nansum(x.values, axis=0, keepdims=True)), self=x, dim=[0], keepdim=True)
        table.add("nanmean", Array(dtype, np.nanmean(x.values)), "ulp 2", self=x)
        table.add("nanmean", Array(dtype, np.nanmean(x.values, axis=1)), "ulp 2", self=x, dim=[1])
    x = Array("int32", [[1, 2], [3, 4]])
    table.add("nansum", Array("int64", x.values.sum()), self=x)
    for dtype in ORDER:
        x = Array(dtype, [[0, 1, 2], [0, 0, 1]])
        table.add("count_nonzero", Array("int64", np.count_nonzero(x.values)), self=x)
        table.add("count_nonzero", Array("int64", np.count_nonzero(x.values, axis=1)), self=x, dim=1)
        table.add("count_nonzero.dim_IntList", Array("int64", np.count_nonzero(x.values, axis=(0, 1))), self=x,
                  dim=[0, 1])
    x = Array("int64", [[0, 2], [1, 2]])
    table.add("one_hot", Array("int64", np.eye(4, dtype=np.int64)[x.values]), self=x, num_classes=4)
    table.add("one_hot", Array("int64", np.eye(3, dtype=np.int64)[x.values]), self=x)
    for dtype in ("float32", "int64", "bool", "float16"):
        x, mask = draw("masked_scatter", dtype, (3, 4)), draw("mask", "bool", (3, 4))
        source = draw("masked source", dtype, (14,))
        expected = x.values.copy()
        expected[mask.values] = source.values[: int(mask.values.sum())]
        table.add("masked_scatter", Array(dtype, expected), self=x, mask=mask, source=source)
    x = draw("masked_scatter", "float32", (2, 3))
    expected = x.values.copy()
    expected[:, 1] = [7, 8]
    table.add("masked_scatter", Array("float32", expected), self=x, mask=Array("bool", [0, 1, 0]),
              source=Array("float32", [7, 8]))
    x = draw("squeeze", "float32", (1, 3, 1, 2))
    table.add("squeeze.dims", Array("float32", x.values.reshape(3, 2)), self=x, dim=[0, 2])
    table.add("squeeze.dims", Array("float32", x.values.reshape(3, 1, 2)), self=x, dim=[0, -1])
    table.add("squeeze.dims", x, self=x, dim=[1])


def write(table):
    for family in (signs, two_numbers, special_functions, neighbours, incomplete_gamma, running, searches,
                   second_names, composites):
        family(table)
