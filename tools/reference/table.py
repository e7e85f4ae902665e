"""Writing cases.

    sum.dim_IntList
      self = float32[2,3] 1 2 3 4 5 6
      dim = [1]
      -> float32[2] 6 15
      within 1.2e-06 3e-06

A case is an operator, its arguments by name (what is missing has its default), the result, and how close one must come:
`exact`; `ulp N`, numbers between result and expectation; `within`, a bound for each element; or `shape`, values are
free.
Several results, or a list of them, are one `->` with its closeness each.
A tensor is its dtype, sizes, {strides} unless contiguous, and its elements in row-major order.
"""

import numpy as np

from elements import Array, spacing


def text_of_number(value):
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if np.isnan(value):
        return "nan"
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    # The shortest text that reads back as the same element.
    text = repr(value.item()) if value.dtype == np.float64 else np.format_float_scientific(value, trim="-",
                                                                                           exp_digits=1)
    plain = np.format_float_positional(value, trim="-")
    text = plain if len(plain) <= len(text) else text
    return text.replace("e+", "e")


def text_of_tensor(array):
    sizes = ",".join(str(size) for size in array.shape)
    strides = "" if array.strides is None else "{" + ",".join(str(stride) for stride in array.strides) + "}"
    values = " ".join(text_of_number(value) for value in array.values.reshape(-1))
    return f"{array.dtype}[{sizes}]{strides} {values}".rstrip()


def text_of(value):
    if isinstance(value, Array):
        return text_of_tensor(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (list, tuple)):
        if any(isinstance(each, Array) for each in value):
            return " | ".join("None" if each is None else text_of_tensor(each) for each in value)
        return "[" + ",".join(str(each) for each in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return str(value)


class Table:
    def __init__(self):
        self.cases = []  # (operator, text)

    def add(self, operator, result, within="exact", /, **arguments):
        lines = [operator] + [f"  {name.rstrip('_')} = {text_of(value)}" for name, value in arguments.items()]
        results = result if isinstance(result, (list, tuple)) else [result]
        distances = within if isinstance(within, (list, tuple)) else [within] * len(results)
        for each, distance in zip(results, distances):
            lines.append(f"  -> {text_of_tensor(each)}")
            if not isinstance(distance, str):
                bounds = np.broadcast_to(np.asarray(distance, np.float64), each.shape).reshape(-1)
                distance = "within " + " ".join(f"{bound:.1e}".replace("e-0", "e-").replace("e+0", "e")
                                                for bound in bounds)
            lines.append("  " + distance.rstrip())
        self.cases.append((operator, "\n".join(lines)))

    def add_sum(self, operator, exact, magnitude, count, dtype, /, **arguments):
        """A sum of `count` terms of that total magnitude: within count * eps of it, and half a step for rounding."""
        result = Array(dtype, np.asarray(exact, np.float64) if dtype != "float64" else exact)
        if dtype not in ("float16", "bfloat16", "float32", "float64"):
            return self.add(operator, result, **arguments)
        epsilon = 2.0 ** (-52 if dtype == "float64" else -23)
        bound = np.asarray(magnitude, np.float64) * epsilon * (count + 2) * 1.1
        if dtype in ("float16", "bfloat16"):
            bound = bound + spacing(result.values, dtype)
        self.add(operator, result, np.where(np.isfinite(bound), bound, 0), **arguments)

    def text(self):
        return "# Written by tools/reference; do not edit.\n" + "\n\n".join(text for _, text in self.cases) + "\n"
