"""Element types as the value tables name them, and arithmetic as the rows define it.

An `Array` is a NumPy array with a dtype of ours. bfloat16, which NumPy lacks, is kept as float32 with rounded values.
Halves are computed in float32 and rounded once at the end of an operator.
"""

import numpy as np

ORDER = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
# Numbers of mantissa bits behind the point.
FRACTION = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
# The smallest normal exponent.
LEAST = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}


def numpy_type(dtype):
    return np.dtype("float32" if dtype == "bfloat16" else dtype)


def category(dtype):
    return 0 if dtype == "bool" else 2 if dtype in FLOATS else 1


def wide(dtype):
    """What a dtype is computed in."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def to_bfloat16(values):
    """Rounds to nearest even; float64 goes through float32, as our conversions from a computed value do."""
    values = np.asarray(values, np.float32)
    bits = np.ascontiguousarray(values).view(np.uint32).astype(np.uint64)
    rounded = (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(values), np.float32(np.nan), rounded).astype(np.float32).reshape(values.shape)


def convert(values, dtype):
    """Values as elements of a dtype: truncation to integers, wrap-around between them, != 0 to bool."""
    values = np.asarray(values)
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            return to_bfloat16(values)
        if dtype == "bool":
            return values != 0
        return values.astype(numpy_type(dtype))


class Array:
    def __init__(self, dtype, values, strides=None):
        self.dtype = dtype
        self.values = convert(values, dtype)
        self.strides = strides  # in elements; none: contiguous

    @property
    def shape(self):
        return self.values.shape

    def wide(self):
        return self.values.astype(numpy_type(wide(self.dtype)))

    def strided(self, order):
        """The same elements, laid out with dimension order[0] innermost and a gap after it."""
        strides, step = [0] * len(self.shape), 1
        for position, dim in enumerate(order):
            strides[dim] = step
            step *= max(1, self.shape[dim])
            if position == 0:
                step += 1
        return Array(self.dtype, self.values, strides)


def promote(a, b):
    """Of two dtypes of one level."""
    if a == b:
        return a
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if category(a) == 2:
        return max(a, b, key=ORDER.index)
    if "uint8" in (a, b):
        other = b if a == "uint8" else a
        return "int16" if other == "int8" else other
    return max(a, b, key=ORDER.index)


def number_type(value):
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"


def result_type(*operands):
    """Tensors with dimensions decide, then 0-d tensors, then numbers; a lower level counts by its category only."""
    levels = [None, None, None]
    for operand in operands:
        if isinstance(operand, Array):
            level, dtype = (0 if operand.shape else 1), operand.dtype
        else:
            level, dtype = 2, number_type(operand)
        levels[level] = dtype if levels[level] is None else promote(levels[level], dtype)
    result = levels[0]
    for lower in levels[1:]:
        if lower is not None and (result is None or category(lower) > category(result)):
            result = lower
    return result


def operand(value, dtype):
    """A lane of a computation in `dtype`."""
    return convert(value.wide() if isinstance(value, Array) else value, wide(dtype))


def spacing(values, dtype):
    """The distance of neighbouring numbers around each value."""
    magnitude = np.abs(np.asarray(values, np.float64))
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.where((magnitude == 0) | ~np.isfinite(magnitude), 1, magnitude)))
    exponent = np.where(magnitude == 0, LEAST[dtype], np.maximum(exponent, LEAST[dtype]))
    return np.exp2(exponent - FRACTION[dtype])
