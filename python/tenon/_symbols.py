"""PyTorch's symbolic numbers, which are SymPy expressions, in the words of our expressions."""
from __future__ import annotations

import sympy
import torch

# By the name of SymPy's or PyTorch's class: our expression of the operands' texts.
_FUNCTIONS = {
    "FloorDiv": "FloorDiv({0}, {1})",
    "CleanDiv": "FloorDiv({0}, {1})",
    "CeilDiv": "(-FloorDiv(-({0}), {1}))",
    "Mod": "Mod({0}, {1})",
    "PythonMod": "Mod({0}, {1})",
    "ModularIndexing": "Mod(FloorDiv({0}, {1}), {2})",
    "Identity": "{0}",
    "ToFloat": "ToReal({0})",
    "IntTrueDiv": "({0} / {1})",
    "FloatTrueDiv": "({0} / {1})",
    "OpaqueUnaryFn_sqrt": "Sqrt({0})",
}
_LISTS = {"Add": ("(", " + ", ")"), "Mul": ("(", "*", ")"), "Max": ("Max(", ", ", ")"), "Min": ("Min(", ", ", ")")}


class NotExpressible(Exception):
    """A number that our expressions have no words for."""


def to_text(expr: sympy.Expr, names: dict[str, str]) -> str:
    """`names`: ours, by PyTorch's name of a symbol."""
    if isinstance(expr, sympy.Integer):
        return str(int(expr)) if expr >= 0 else f"({int(expr)})"
    if isinstance(expr, sympy.Float):
        return repr(float(expr)) if expr >= 0 else f"({float(expr)!r})"
    if isinstance(expr, sympy.Symbol):
        if expr.name not in names:
            raise NotExpressible(f"the symbol {expr.name} has no value here")
        return names[expr.name]
    function = type(expr).__name__
    if function in ("Pow", "PowByNatural"):
        base, exponent = expr.args
        if isinstance(exponent, sympy.Integer) and 1 <= exponent <= 8:
            return "(" + "*".join([to_text(base, names)] * int(exponent)) + ")"
    elif function in _LISTS:
        first, between, last = _LISTS[function]
        return first + between.join(to_text(each, names) for each in expr.args) + last
    elif function in _FUNCTIONS:
        return _FUNCTIONS[function].format(*(to_text(each, names) for each in expr.args))
    raise NotExpressible(f"no words for {expr}")


def expression_of(number) -> sympy.Expr | None:
    """Of a symbolic number; None of a plain one, and of one that is known to be a constant."""
    if isinstance(number, (torch.SymInt, torch.SymFloat)):
        expr = number.node.expr
        return None if expr.is_number else expr
    return None


def plain(number):
    """The number of one that `expression_of` has no expression for."""
    if isinstance(number, torch.SymInt):
        return int(number.node.expr)
    if isinstance(number, torch.SymFloat):
        return float(number.node.expr)
    return number


def number_text(number, names: dict[str, str]) -> int | str:
    expr = expression_of(number)
    return plain(number) if expr is None else to_text(expr, names)
