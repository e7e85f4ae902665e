"""Functions of one, two and three elements, comparisons and conversions."""

import math
import zlib

import numpy as np

from elements import Array, FLOATS, INTEGERS, ORDER, category, convert, numpy_type, operand, result_type, wide

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0]


def draw(operator, dtype, shape, low=-4.0, high=4.0):
    """Random elements, the same at every run."""
    random = np.random.RandomState(zlib.crc32(f"{operator} {dtype} {shape}".encode()))
    if dtype == "bool":
        return Array(dtype, random.randint(0, 2, shape))
    if dtype in INTEGERS:
        return Array(dtype, random.randint(0 if dtype == "uint8" else max(-100, int(low * 10)), max(2, int(high * 10)), shape))
    return Array(dtype, np.round(random.uniform(low, high, shape), 3))


def floating(dtype):
    return dtype if category(dtype) == 2 else "float32"


def ulps(dtype, single):
    """How far a function may be off: halves are rounded from float32, so one step."""
    return f"ulp {1 if dtype in ('float16', 'bfloat16') else single}"


# The function in float64, the domain of random arguments, and further arguments worth a try.
FUNCTIONS = {
    "exp": (np.exp, (-10, 10), [88.0, -87.0, 100.0, -120.0, 1e-8]),
    "log": (np.log, (0.01, 100), [-1.0, 1e-30, 1e30, 1.0]),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0.01, 100), [-1.0, 1e-30, 4.0]),
    "sin": (np.sin, (-20, 20), [100.0, 1e-10, -3.1415927]),
    "cos": (np.cos, (-20, 20), [100.0, 1e-10, 1.5707964]),
    "tanh": (np.tanh, (-5, 5), [20.0, -20.0, 1e-6, 0.3]),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (-10, 10), [60.0, -60.0, 1e-8]),
    "erf": (np.vectorize(math.erf, otypes=[float]), (-3, 3), [6.0, -6.0, 1e-7, 0.5]),
}


def unary_functions(table):
    for operator, (function, (low, high), more) in FUNCTIONS.items():
        for dtype in ORDER:
            result = floating(dtype)
            for shape in [(7,), (3, 5)] if dtype == "float32" else [(5,)]:
                x = draw(operator, dtype, shape, low, high)
                if category(dtype) == 1:
                    x = Array(dtype, np.abs(x.values.astype(np.int64)) % 9)
                with np.errstate(all="ignore"):
                    expected = function(convert(x.values, wide(result)).astype(np.float64))
                table.add(operator, Array(result, convert(expected, wide(result))), ulps(result, 4), self=x)
        for dtype in FLOATS:
            x = Array(dtype, SPECIAL + more)
            with np.errstate(all="ignore"):
                expected = convert(function(x.values.astype(np.float64)), wide(dtype))
            table.add(operator, Array(dtype, expected), ulps(dtype, 4), self=x)
        table.add(operator, Array("float32", np.zeros((0, 3))), self=Array("float32", np.zeros((0, 3))))
        x = draw(operator, "float32", (3, 4), low, high)
        table.add(operator, Array("float32", function(x.values.astype(np.float64))), "ulp 4", self=x.strided([0, 1]))
        x = draw(operator, "float32", (), low, high)
        table.add(operator, Array("float32", function(x.values.astype(np.float64))), "ulp 4", self=x)


def exact_unary(table):
    def relu(x):
        return np.maximum(x, x.dtype.type(0))

    def whole(function):
        """NumPy makes floats of integers here; they are whole already."""
        return lambda x: x if x.dtype.kind in "iu" else function(x)

    same = {"neg": np.negative, "abs": np.abs, "sign": np.sign, "relu": relu, "trunc": whole(np.trunc),
            "floor": whole(np.floor), "ceil": whole(np.ceil), "round": whole(np.round)}
    for operator, function in same.items():
        for dtype in ORDER:
            if dtype == "bool":
                continue
            x = draw(operator, dtype, (2, 7))
            table.add(operator, Array(dtype, function(x.wide())), self=x)
            if dtype in FLOATS:
                # The sign of a NaN is a NaN in NumPy and 0 with us, as in PyTorch.
                values = [v for v in SPECIAL if not (operator == "sign" and np.isnan(v))]
                special = Array(dtype, values)
                table.add(operator, Array(dtype, function(special.wide())), self=special)
        table.add(operator, Array("float32", []), self=Array("float32", []))
    for operator, function in {"sqrt": np.sqrt, "reciprocal": lambda x: x.dtype.type(1) / x}.items():
        for dtype in ORDER:
            result = floating(dtype)
            x = draw(operator, dtype, (3, 3), 0.01, 50)
            with np.errstate(all="ignore"):
                table.add(operator, Array(result, function(operand(x, result))), self=x)
                if dtype in FLOATS:
                    special = Array(dtype, SPECIAL + [-1.0, 4.0])
                    table.add(operator, Array(dtype, function(special.wide())), self=special)
    for dtype in ORDER:
        x = draw("logical_not", dtype, (9,), -1, 2)
        values = x.values.copy()
        values[:2] = 0
        x = Array(dtype, values)
        table.add("logical_not", Array("bool", x.values == 0), self=x)
        table.add("isnan", Array("bool", x.values != x.values), self=x)
    table.add("isnan", Array("bool", np.isnan(SPECIAL)), self=Array("float16", SPECIAL))
    table.add("isnan", Array("bool", np.isnan(SPECIAL)), self=Array("float64", SPECIAL))
    table.add("logical_not", Array("bool", [0, 0, 0, 1, 1]), self=Array("float32", SPECIAL))


def broadcast_pairs(operator, dtype, low=-4.0, high=4.0):
    """Operands of several shapes: equal, a row, a column, a number, nothing, and a transposed one."""
    def make(tag, shape):
        return draw(operator + tag, dtype, shape, low, high)

    yield make("a", (3, 5)), make("b", (3, 5))
    yield make("a", (2, 3)), make("b", (3,))
    yield make("a", (2, 1)), make("b", (1, 3))
    yield make("a", (4,)), make("b", ())
    yield make("a", (0, 3)), make("b", (3,))
    yield make("a", (2, 3)).strided([0, 1]), make("b", (2, 3))


MIXED = [("int64", "float32"), ("float32", "float64"), ("uint8", "int8"), ("bool", "int16"), ("float16", "bfloat16"),
         ("int32", "float16"), ("bool", "bool"), ("int32", "int64")]
SCALARS = [2, 2.5, -3, True]


def pairs(operator, dtypes, low=-4.0, high=4.0):
    for dtype in dtypes:
        every = list(broadcast_pairs(operator, dtype, low, high))
        yield from every if dtype in ("float32", "int64") else [every[0], every[2]]
    for left, right in MIXED:
        if left in dtypes and right in dtypes:
            yield draw(operator + "m", left, (2, 3), low, high), draw(operator + "n", right, (3,), low, high)
    # A 0-d tensor and a number count by their category only.
    yield draw(operator + "m", "float32", (3,), low, high), draw(operator + "n", "float64", (), low, high)
    yield draw(operator + "m", "int32", (3,), low, high), draw(operator + "n", "float64", (), low, high)
    for dtype in FLOATS:
        yield (Array(dtype, np.repeat(SPECIAL + [1.5], 6)), Array(dtype, np.tile(SPECIAL + [-2.0], 6)))


def is_bool(*values):
    return all((v.dtype if isinstance(v, Array) else "bool" if isinstance(v, bool) else "") == "bool" for v in values)


def arithmetic(table):
    def lanes(values, dtype):
        return [operand(value, dtype) for value in values]

    def add(x, y, alpha):
        return x + alpha * y

    def sub(x, y, alpha):
        return x - alpha * y

    def run(operator, function, dtype, *values):
        with np.errstate(all="ignore"):
            return Array(dtype, function(*lanes(values, dtype)))

    for name, function in (("add", add), ("sub", sub)):
        operator = name + ".Tensor"
        for a, b in pairs(operator, ORDER):
            dtype = result_type(a, b)
            if dtype == "bool":
                continue
            table.add(operator, run(operator, function, dtype, a, b, 1), self=a, other=b)
            if a.shape == (3, 5):
                alpha = 2 if category(dtype) < 2 else -0.5
                table.add(operator, run(operator, function, dtype, a, b, alpha), self=a, other=b, alpha=alpha)
    for a, b in pairs("mul.Tensor", ORDER):
        dtype = result_type(a, b)
        if dtype == "bool":
            table.add("mul.Tensor", Array("bool", a.values & b.values), self=a, other=b)
        else:
            table.add("mul.Tensor", run("mul", np.multiply, dtype, a, b), self=a, other=b)
    for a, b in pairs("div.Tensor", ORDER, 0.5, 9):
        dtype = floating(result_type(a, b))
        table.add("div.Tensor", run("div", np.divide, dtype, a, b), self=a, other=b)
    for operator, function in (("maximum", np.maximum), ("minimum", np.minimum)):
        for a, b in pairs(operator, ORDER):
            table.add(operator, run(operator, function, result_type(a, b), a, b), self=a, other=b)

    scalar = {"add.Scalar": add, "sub.Scalar": sub, "rsub.Scalar": lambda x, y, alpha: y - alpha * x}
    for operator, function in scalar.items():
        for dtype in ORDER[1:]:
            for other in SCALARS:
                x = draw(operator, dtype, (5,))
                result = result_type(x, other)
                if isinstance(other, bool):
                    continue
                table.add(operator, run(operator, function, result, x, other, 1), self=x, other=other)
        x = draw(operator, "float32", (2, 3))
        table.add(operator, run(operator, function, "float32", x, 3, 2), self=x, other=3, alpha=2)
    for dtype in ORDER:
        for other in SCALARS:
            x = draw("mul.Scalar", dtype, (5,), 1, 9)
            result = result_type(x, other)
            if result == "bool":
                continue
            table.add("mul.Scalar", run("mul", np.multiply, result, x, other), self=x, other=other)
            table.add("div.Scalar", run("div", np.divide, floating(result), x, other), self=x, other=other)
    table.add("div.Scalar", run("div", np.divide, "float32", Array("float32", SPECIAL), 0), self=Array("float32", SPECIAL), other=0)


def powers(table):
    def power(x, y):
        with np.errstate(all="ignore"):
            return np.power(x.astype(np.float64), y.astype(np.float64))

    for dtype in ORDER[1:]:
        for a, b in list(broadcast_pairs("pow", dtype, 0.1, 3))[: 6 if dtype == "float32" else 2]:
            if dtype in FLOATS:
                expected = Array(dtype, convert(power(a.wide(), b.wide()), wide(dtype)))
                table.add("pow.Tensor_Tensor", expected, ulps(dtype, 4), self=a, exponent=b)
            else:
                exponent = Array(dtype, np.abs(b.values) % 5)
                table.add("pow.Tensor_Tensor", Array(dtype, np.power(a.values, exponent.values)), self=a, exponent=exponent)
    bases = [np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, -2.0, 0.5]
    exponents = [np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 3.0, 0.5, -2.0]
    for dtype in ("float32", "float64"):
        a, b = Array(dtype, np.repeat(bases, len(exponents))), Array(dtype, np.tile(exponents, len(bases)))
        table.add("pow.Tensor_Tensor", Array(dtype, power(a.values, b.values)), "ulp 4", self=a, exponent=b)
    for dtype in FLOATS:
        x = Array(dtype, [0.25, 1.0, 2.5, 3.0, 0.0, np.inf, np.nan])
        for exponent in (0, 1, 2, 3, 0.5, -1, -2, 2.5, 4, 0.0):
            expected = power(x.wide(), np.asarray(float(exponent)))
            # A cube is two products, each rounded.
            distance = ulps(dtype, 4) if exponent != 3 else "ulp 2"
            table.add("pow.Tensor_Scalar", Array(dtype, convert(expected, wide(dtype))), distance, self=x, exponent=exponent)
    for dtype in ("uint8", "int16", "int32", "int64"):
        x = Array(dtype, [0, 1, 2, 3, 5])
        for exponent in (0, 1, 2, 3, 4):
            table.add("pow.Tensor_Scalar", Array(dtype, np.power(x.values, exponent)), self=x, exponent=exponent)
        table.add("pow.Tensor_Scalar", Array("float32", np.power(x.values.astype(np.float64), 1.5)), "ulp 4", self=x, exponent=1.5)


def comparisons(table):
    functions = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
    for name, function in functions.items():
        for a, b in pairs(name, ORDER, -1, 1):
            dtype = result_type(a, b)
            with np.errstate(all="ignore"):
                table.add(name + ".Tensor", Array("bool", function(operand(a, dtype), operand(b, dtype))), self=a, other=b)
        for dtype in ORDER:
            x = Array(dtype, [0, 1, 2, 3])
            for other in (1, 1.5, True):
                common = result_type(x, other)
                table.add(name + ".Scalar", Array("bool", function(operand(x, common), operand(other, common))), self=x, other=other)
    for name, function in {"logical_and": np.logical_and, "logical_or": np.logical_or}.items():
        for a, b in pairs(name, ORDER, -1, 1):
            table.add(name, Array("bool", function(a.values != 0, b.values != 0)), self=a, other=b)


def selections(table):
    for dtype in ORDER:
        for a, b in list(broadcast_pairs("where", dtype))[: 6 if dtype == "float32" else 2]:
            shape = np.broadcast_shapes(a.shape, b.shape)
            condition = draw("condition", "bool", shape)
            table.add("where.self", Array(dtype, np.where(condition.values, a.values, b.values)), condition=condition, self=a, other=b)
    condition = Array("bool", [[1], [0]])
    a, b = draw("where", "int32", (3,)), draw("where", "float32", ())
    table.add("where.self", Array("float32", np.where(condition.values, a.values, b.values)), condition=condition, self=a, other=b)
    for dtype in FLOATS + ["int32"]:
        grad, x = draw("threshold", dtype, (3, 4)), draw("threshold x", dtype, (3, 4))
        for threshold in (0, 1):
            expected = np.where(x.values <= threshold, 0, grad.values)
            table.add("threshold_backward", Array(dtype, expected), grad_output=grad, self=x, threshold=threshold)


def conversions(table):
    for source in ORDER:
        values = [0, 1, 2, 3, 100] if source in ("bool", "uint8") else [0, 1, -1, 2, -100, 127]
        if source in FLOATS:
            values = values + [0.5, 2.75, 99.9]
        x = Array(source, values)
        for target in ORDER:
            y = x
            if target == "uint8" and source not in ("bool", "uint8"):
                y = Array(source, np.abs(x.values))  # out of range is not defined
            expected = Array(target, convert(y.values, target))
            table.add("to.dtype", expected, self=y, dtype=target)
            table.add("_to_copy", expected, self=y, dtype=target)
    for target in ("float16", "bfloat16", "float32", "bool"):
        x = Array("float64", SPECIAL + [70000.0, 1e39, 1e-8, 1 + 2.0**-11, 1 + 2.0**-8, 1 / 3])
        table.add("to.dtype", Array(target, convert(x.values, target)), self=x, dtype=target)
    table.add("to.dtype", Array("float32", [1, 2]), self=Array("float32", [1, 2]), dtype="float32", copy=True)
    for operator in ("clone", "contiguous"):
        for dtype in ORDER:
            x = draw(operator, dtype, (2, 3))
            table.add(operator, x, self=x)
        x = draw(operator, "float32", (2, 3, 4))
        table.add(operator, x, self=x.strided([1, 0, 2]))
        table.add(operator, Array("float32", SPECIAL), self=Array("float32", SPECIAL))


def overwriting(table):
    for dtype in ORDER:
        x = draw("fill", dtype, (2, 3))
        for value in (1, 2.5):
            table.add("fill.Scalar", Array(dtype, np.full((2, 3), convert(value, dtype))), self=x, value=value)
        table.add("fill.Tensor", Array(dtype, np.full((2, 3), convert(1, dtype))), self=x, value=Array("int64", 1))
        table.add("zero", Array(dtype, np.zeros((2, 3))), self=x)
        src = draw("copy", "float32", (3,), 0, 4)
        table.add("copy", Array(dtype, np.broadcast_to(convert(src.values, dtype), (2, 3))), self=x, src=src)


def write(table):
    for family in (unary_functions, exact_unary, arithmetic, powers, comparisons, selections, conversions, overwriting):
        family(table)
