"""Functions of one, two and three elements, comparisons and conversions."""

import math
import zlib

import numpy as np

from elements import Array, FLOATS, INTEGERS, ORDER, category, convert, numpy_type, operand, result_type, spacing, wide

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0]


def draw(operator, dtype, shape, low=-4.0, high=4.0):
    """Random elements, the same at every run."""
    random = np.random.RandomState(zlib.crc32(f"{operator} {dtype} {shape}".encode()))
    if dtype == "bool":
        return Array(dtype, random.randint(0, 2, shape))
    if dtype in INTEGERS:
        return Array(dtype, random.randint(0 if dtype == "uint8" else max(-100, int(low * 10)), max(2, int(high * 10)),
                                           shape))
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
    "tan": (np.tan, (-1.4, 1.4), [100.0, 1e-10, 0.7853982]),
    "asin": (np.arcsin, (-1, 1), [1.0, -1.0, 1.5, 1e-10]),
    "acos": (np.arccos, (-1, 1), [1.0, -1.0, 1.5, 1e-10]),
    "atan": (np.arctan, (-5, 5), [1e10, -1e10, 1e-10]),
    "sinh": (np.sinh, (-5, 5), [88.0, -88.0, 1e-8]),
    "cosh": (np.cosh, (-5, 5), [88.0, -88.0, 1e-8]),
    "asinh": (np.arcsinh, (-20, 20), [1e10, -1e10, 1e-8]),
    "acosh": (np.arccosh, (1, 20), [1.0, 0.5, 1e10]),
    "atanh": (np.arctanh, (-0.99, 0.99), [1.0, -1.0, 2.0, 1e-8]),
    "exp2": (np.exp2, (-10, 10), [126.0, -125.0, 130.0, 1e-8]),
    "expm1": (np.expm1, (-5, 5), [88.0, -100.0, 1e-8, -1e-8]),
    "log2": (np.log2, (0.01, 100), [-1.0, 1e-30, 8.0, 1.0]),
    "log10": (np.log10, (0.01, 100), [-1.0, 1e-30, 1000.0, 1.0]),
    "log1p": (np.log1p, (-0.9, 20), [-1.0, -2.0, 1e-8, 1e30]),
    "silu": (lambda x: x / (1 + np.exp(-x)), (-10, 10), [60.0, 1e-8]),
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
        table.add("isinf", Array("bool", np.zeros(9)), self=x)
        table.add("isfinite", Array("bool", np.ones(9)), self=x)
        if dtype != "bool":
            y = draw("square", dtype, (2, 5))
            with np.errstate(all="ignore"):
                table.add("square", Array(dtype, y.wide() * y.wide()), self=y)
        if dtype not in FLOATS:
            table.add("bitwise_not", Array(dtype, np.invert(x.values)), self=x)
    for dtype in FLOATS:
        special = Array(dtype, SPECIAL + [1.0, -2.0])
        table.add("isinf", Array("bool", np.isinf(special.values)), self=special)
        table.add("isfinite", Array("bool", np.isfinite(special.values)), self=special)
        with np.errstate(all="ignore"):
            table.add("square", Array(dtype, special.wide() * special.wide()), self=special)
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
            if dtype == "bool" or (name == "sub" and "bool" in (a.dtype, b.dtype)):  # bools are not subtracted
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
    table.add("div.Scalar", run("div", np.divide, "float32", Array("float32", SPECIAL), 0),
              self=Array("float32", SPECIAL), other=0)


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
                table.add("pow.Tensor_Tensor", Array(dtype, np.power(a.values, exponent.values)), self=a,
                          exponent=exponent)
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
            table.add("pow.Tensor_Scalar", Array(dtype, convert(expected, wide(dtype))), distance, self=x,
                      exponent=exponent)
    for dtype in ("uint8", "int16", "int32", "int64"):
        x = Array(dtype, [0, 1, 2, 3, 5])
        for exponent in (0, 1, 2, 3, 4):
            table.add("pow.Tensor_Scalar", Array(dtype, np.power(x.values, exponent)), self=x, exponent=exponent)
        table.add("pow.Tensor_Scalar", Array("float32", np.power(x.values.astype(np.float64), 1.5)), "ulp 4", self=x,
                  exponent=1.5)


def comparisons(table):
    functions = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                 "ge": np.greater_equal}
    for name, function in functions.items():
        for a, b in pairs(name, ORDER, -1, 1):
            dtype = result_type(a, b)
            with np.errstate(all="ignore"):
                table.add(name + ".Tensor", Array("bool", function(operand(a, dtype), operand(b, dtype))), self=a,
                          other=b)
        for dtype in ORDER:
            x = Array(dtype, [0, 1, 2, 3])
            for other in (1, 1.5, True):
                common = result_type(x, other)
                table.add(name + ".Scalar", Array("bool", function(operand(x, common), operand(other, common))),
                          self=x, other=other)
    for name, function in {"logical_and": np.logical_and, "logical_or": np.logical_or}.items():
        for a, b in pairs(name, ORDER, -1, 1):
            table.add(name, Array("bool", function(a.values != 0, b.values != 0)), self=a, other=b)


def selections(table):
    for dtype in ORDER:
        for a, b in list(broadcast_pairs("where", dtype))[: 6 if dtype == "float32" else 2]:
            shape = np.broadcast_shapes(a.shape, b.shape)
            condition = draw("condition", "bool", shape)
            table.add("where.self", Array(dtype, np.where(condition.values, a.values, b.values)), condition=condition,
                      self=a, other=b)
    condition = Array("bool", [[1], [0]])
    a, b = draw("where", "int32", (3,)), draw("where", "float32", ())
    table.add("where.self", Array("float32", np.where(condition.values, a.values, b.values)), condition=condition,
              self=a, other=b)
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


def divisions(table):
    """Division with remainder, of numbers that are not zero, and of special ones for floats."""
    functions = {"floor_divide": (np.floor_divide, "floor_divide", "floor_divide.Scalar"),
                 "remainder": (np.remainder, "remainder.Tensor", "remainder.Scalar"),
                 "fmod": (np.fmod, "fmod.Tensor", "fmod.Scalar")}
    truncate = lambda x, y: np.trunc(np.divide(x, y)).astype(x.dtype)
    functions["_trunc_divide"] = (truncate, "_trunc_divide", None)

    def apart(y):
        return Array(y.dtype, np.where(y.values == 0, convert(3, y.dtype), y.values), y.strides)

    def expected(function, dtype, x, y):
        with np.errstate(all="ignore"):
            return Array(dtype, function(operand(x, dtype), operand(y, dtype)))

    for function, tensors, number in functions.values():
        for a, b in pairs(tensors, ORDER[1:]):
            dtype = result_type(a, b)
            if dtype not in FLOATS:
                b = apart(b)
            if tensors == "_trunc_divide" and 0 in b.values and dtype not in FLOATS:
                continue
            table.add(tensors, expected(function, dtype, a, b), self=a, other=b)
            if tensors == "_trunc_divide" and a.shape == (3, 5):
                table.add("div.Tensor_mode", expected(function, dtype, a, b), self=a, other=b, rounding_mode="trunc")
            if tensors == "floor_divide" and a.shape == (3, 5):
                table.add("div.Tensor_mode", expected(function, dtype, a, b), self=a, other=b, rounding_mode="floor")
        if number:
            for dtype in ORDER[1:]:
                for other in (2, 2.5, -3):
                    x = draw(number, dtype, (7,))
                    if dtype == "uint8" and other < 0:
                        continue
                    table.add(number, expected(function, result_type(x, other), x, other), self=x, other=other)
    table.add("floor_divide", Array("float64", [9.0, -10.0, 0.0]), self=Array("float64", [1.0, -1.0, 0.05]),
              other=Array("float64", 0.1))
    x, y = draw("div", "float32", (4,)), draw("div y", "float32", (4,), 0.5, 4)
    table.add("div.Tensor_mode", Array("float32", x.values / y.values), self=x, other=y, rounding_mode=None)
    for a, b in pairs("atan2", FLOATS):
        dtype = result_type(a, b)
        with np.errstate(all="ignore"):
            value = np.arctan2(operand(a, dtype).astype(np.float64), operand(b, dtype).astype(np.float64))
        table.add("atan2", Array(dtype, convert(value, wide(dtype))), ulps(dtype, 4), self=a, other=b)


def bits(table):
    integers = ["bool"] + INTEGERS
    functions = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
    for name, function in functions.items():
        for dtype in integers:
            for a, b in list(broadcast_pairs(name, dtype))[: 6 if dtype == "int64" else 2]:
                table.add(name + ".Tensor", Array(dtype, function(a.values, b.values)), self=a, other=b)
            x = draw(name, dtype, (5,))
            for other in (True,) if dtype == "bool" else (6, 1):
                table.add(name + ".Scalar", Array(dtype, function(x.values, convert(other, dtype))), self=x,
                          other=other)
        a, b = draw(name, "uint8", (2, 3)), draw(name, "int32", (3,))
        table.add(name + ".Tensor", Array("int32", function(a.values.astype(np.int32), b.values)), self=a, other=b)
    for a, b in pairs("logical_xor", ORDER, -1, 1):
        table.add("logical_xor", Array("bool", np.logical_xor(a.values != 0, b.values != 0)), self=a, other=b)


def bounds(table):
    def limit(x, low, high, dtype):
        values = operand(x, dtype)
        if low is not None:
            values = np.maximum(values, operand(low, dtype))
        return Array(dtype, values if high is None else np.minimum(values, operand(high, dtype)))

    for dtype in ORDER[1:]:
        x = draw("clamp", dtype, (3, 5))
        for low, high in ((1, 3), (None, 2), (0, None), (3, 1)):
            table.add("clamp", limit(x, low, high, dtype), self=x, min=low, max=high)
        low, high = draw("clamp low", dtype, (5,), -2, 1), draw("clamp high", dtype, (3, 1), 0, 3)
        table.add("clamp.Tensor", limit(x, low, high, dtype), self=x, min=low, max=high)
        table.add("clamp.Tensor", limit(x, low, None, dtype), self=x, min=low)
        table.add("clamp.Tensor", limit(x, None, high, dtype), self=x.strided([0, 1]), max=high)
        table.add("clamp_min", limit(x, 1, None, dtype), self=x, min=1)
        table.add("clamp_max", limit(x, None, 1, dtype), self=x, max=1)
        value = Array(dtype, 7)
        for mask in (draw("masked_fill", "bool", (3, 5)), draw("masked_fill", "bool", (5,)),
                     draw("masked_fill", "bool", (3, 1))):
            filled = Array(dtype, np.where(mask.values, value.values, x.values))
            table.add("masked_fill.Scalar", filled, self=x, mask=mask, value=7)
            table.add("masked_fill.Tensor", filled, self=x, mask=mask, value=value)
    x = Array("bool", [1, 1, 0, 0])
    table.add("masked_fill.Scalar", Array("bool", [1, 0, 0, 0]), self=x, mask=Array("bool", [0, 1, 0, 1]), value=False)
    table.add("clamp", Array("float32", np.clip(np.arange(5.0), 0.5, 2.5)), self=Array("int32", np.arange(5)), min=0.5,
              max=2.5)
    for dtype in FLOATS:
        x = Array(dtype, SPECIAL + [1.0, -2.0])
        table.add("clamp", limit(x, -1, 1, dtype), self=x, min=-1, max=1)
        nan = Array(dtype, np.nan)
        table.add("clamp.Tensor", Array(dtype, [np.nan] * 7), self=x, min=nan)
        table.add("hardtanh", limit(x, -1, 1, dtype), self=x)
        y = draw("hardtanh", dtype, (3, 4), -9, 9)
        table.add("hardtanh", limit(y, -2, 3, dtype), self=y, min_val=-2, max_val=3)
        table.add("relu6", limit(y, 0, 6, dtype), self=y)


def combinations(table):
    for dtype in FLOATS:
        for a, b in list(broadcast_pairs("lerp", dtype))[: 6 if dtype == "float32" else 2]:
            x, y = a.wide().astype(np.float64), b.wide().astype(np.float64)
            scale = np.abs(x) + np.abs(y)
            step = 2.0 ** -(50 if dtype == "float64" else 21)
            for weight in (0.25, 0.75, 1.5):
                bound = spacing_of(x + weight * (y - x), dtype) + scale * step
                table.add("lerp.Scalar", Array(dtype, x + weight * (y - x)), bound, self=a, end=b, weight=weight)
            weight = draw("lerp weight", dtype, np.broadcast_shapes(a.shape, b.shape), 0, 1)
            value = x + weight.values.astype(np.float64) * (y - x)
            table.add("lerp.Tensor", Array(dtype, value), spacing_of(value, dtype) + scale * step, self=a, end=b,
                      weight=weight)
    for dtype in ORDER[1:]:
        for a, b in list(broadcast_pairs("addcmul", dtype, 0.5, 4))[: 6 if dtype == "float32" else 2]:
            x = draw("addcmul x", dtype, np.broadcast_shapes(a.shape, b.shape))
            for value in (1, 2):
                factor = convert(value, wide(dtype))
                result = x.wide() + factor * a.wide() * b.wide()
                more = {} if value == 1 else {"value": value}
                table.add("addcmul", Array(dtype, result), self=x, tensor1=a, tensor2=b, **more)
                if dtype in FLOATS:
                    result = x.wide() + factor * a.wide() / b.wide()
                    table.add("addcdiv", Array(dtype, result), self=x, tensor1=a, tensor2=b, **more)


def spacing_of(values, dtype):
    return spacing(values, dtype) if dtype in ("float16", "bfloat16") else 0


def activations(table):
    erf = np.vectorize(math.erf, otypes=[float])
    functions = {
        "gelu": ({}, lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))),
        "gelu tanh": ({"approximate": "tanh"},
                      lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        "leaky_relu": ({}, lambda x: np.where(x > 0, x, x * 0.01)),
        "leaky_relu 2": ({"negative_slope": 0.25}, lambda x: np.where(x > 0, x, x * 0.25)),
        "elu": ({}, lambda x: np.where(x > 0, x, np.expm1(x))),
        "elu 2": ({"alpha": 0.5, "scale": 2.0}, lambda x: np.where(x > 0, 2 * x, np.expm1(x))),
        "softplus": ({}, lambda x: np.where(x > 20, x, np.log1p(np.exp(x)))),
        "softplus 2": ({"beta": 2.0, "threshold": 6.0}, lambda x: np.where(2 * x > 6, x, np.log1p(np.exp(2 * x)) / 2)),
        "hardsigmoid": ({}, lambda x: np.clip(x + 3, 0, 6) / 6),
        "hardswish": ({}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
        "mish": ({}, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
        "hardshrink": ({}, lambda x: np.where(np.abs(x) <= 0.5, 0, x)),
        "hardshrink 2": ({"lambd": 1.5}, lambda x: np.where(np.abs(x) <= 1.5, 0, x)),
        "softshrink": ({}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
        "softshrink 2": ({"lambd": 1.5}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 1.5, 0)),
        "threshold": ({"threshold": 0.25, "value": 2.5}, lambda x: np.where(x <= 0.25, 2.5, x)),
        "log_sigmoid": ({}, lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))),
        "selu": ({}, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
        "celu": ({}, lambda x: np.where(x > 0, x, np.expm1(x))),
        "celu 2": ({"alpha": 2.0}, lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    }
    for name, (arguments, function) in functions.items():
        operator = name.split()[0]
        for dtype in FLOATS:
            for x in (draw(name, dtype, (3, 5)), Array(dtype, [np.nan, 0.0, -0.0, 1e-6, 15.0, 30.0, -15.0]),
                      Array(dtype, np.zeros((0, 2)))):
                with np.errstate(all="ignore"):
                    expected = function(x.values.astype(np.float64))
                    result = Array(dtype, convert(expected, wide(dtype)))
                # Sums of parts that nearly cancel are as close as the parts are large.
                bound = np.abs(x.values.astype(np.float64)) * 2.0 ** -(50 if dtype == "float64"
                                                                       else 21) + spacing_of(expected, dtype)
                bound = bound + np.abs(np.nan_to_num(expected)) * 2.0 ** -(49 if dtype == "float64" else 20)
                table.add(operator, result, np.where(np.isfinite(bound), bound, 0), self=x, **arguments)
        x = draw(name, "float32", (3, 4))
        expected = function(x.values.astype(np.float64))
        table.add(operator, Array("float32", expected), np.abs(x.values) * 2.0**-20, self=x.strided([0, 1]),
                  **arguments)
    for dtype in FLOATS:
        step = 2.0 ** -(48 if dtype == "float64" else 19)
        x, weight = draw("prelu", dtype, (2, 3, 4)), draw("prelu weight", dtype, (3,))
        for w in (weight, Array(dtype, [0.25]), Array(dtype, 0.25)):
            v = w.values.astype(np.float64).reshape(-1)[:, None]
            expected = np.where(x.values > 0, x.values, x.values.astype(np.float64) * v)
            table.add("prelu", Array(dtype, expected), np.abs(expected) * step + spacing_of(expected, dtype),
                      self=x.strided([1, 0, 2]), weight=w)
        for shape, dim in (((4,), -1), ((2, 6), 1), ((4, 3), 0)):
            x = draw("glu", dtype, shape)
            first, second = np.split(x.values.astype(np.float64), 2, axis=dim)
            expected = first / (1 + np.exp(-second))
            # The gate is rounded before it is used.
            table.add("glu", Array(dtype, expected), np.abs(expected) * step + 2 * spacing_of(expected, dtype)
                      + (np.abs(first) * 2.0 ** -(11 if dtype == "float16" else 8)
                         if dtype in ("float16", "bfloat16") else 0), self=x, dim=dim)


def write(table):
    for family in (unary_functions, exact_unary, arithmetic, powers, comparisons, selections, conversions, overwriting,
                   divisions, bits, bounds, combinations, activations):
        family(table)
