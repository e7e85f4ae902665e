"""From PyTorch's graph to ours: which calls we can do, and why not the others.

A graph of ATen calls, as PyTorch's ahead-of-time autograd leaves it, is described to a `Tracer` call by call. The
tracer runs each on tensors without data and compares what comes out with what PyTorch says of it. A call that it
refuses stays PyTorch's (`foreign`). Nodes that only compute sizes vanish: their expressions are in the metadata.
"""
from __future__ import annotations

import operator
from dataclasses import dataclass, field

import torch
from torch.fx import Graph, Node

from tenon import _core
from tenon._symbols import NotExpressible, expression_of, number_text, plain, to_text

_DTYPES = {
    getattr(torch, name): name
    for name in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
}


# Operators that are ours by another name, and their arguments by other names.
_RENAMED = {
    "aten::lift_fresh_copy": ("aten::clone", {}),
    "aten::true_divide.Tensor": ("aten::div.Tensor", {}),
    "prims::convert_element_type": ("aten::_to_copy", {"a": "self"}),
}


@dataclass
class Conversion:
    """What is known of every node of a graph."""

    tracer: _core.Tracer
    names: dict[str, str] = field(default_factory=dict)  # our name of a symbol, by PyTorch's
    symbols: list[str] = field(default_factory=list)  # PyTorch's names, in our order
    values: dict[Node, object] = field(default_factory=dict)  # a Reference, or a list of them; nodes that are ours
    calls: dict[Node, int] = field(default_factory=dict)  # position of a native call
    foreign: dict[Node, str] = field(default_factory=dict)  # why PyTorch does it
    imported: dict[Node, object] = field(default_factory=dict)  # a Reference: what native calls take from outside


class Refused(Exception):
    """Why a call is PyTorch's."""


def _refusal_of_tensor(tensor: torch.Tensor) -> str | None:
    if tensor.dtype not in _DTYPES:
        return f"there are no tensors of {str(tensor.dtype).removeprefix('torch.')} here"
    if tensor.device.type != "cpu":
        return f"a tensor on {tensor.device}"
    if tensor.layout is not torch.strided:
        return f"a tensor of layout {tensor.layout}"
    if tensor.is_conj() or tensor.is_neg():
        return "a tensor with the conjugate or the negative bit"
    if any(expression_of(stride) is None and plain(stride) < 0 for stride in tensor.stride()):
        return "a negative stride"
    return None


class Converter:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.result = Conversion(_core.Tracer())

    def convert(self) -> Conversion:
        self._declare_symbols()
        for node in self.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            if is_size(node):
                continue
            if node.op == "call_function" and node.target is operator.getitem and node.args[0] in self.result.values:
                self._take_item(node)
                continue
            try:
                self._call(node)
            except (Refused, NotExpressible) as refusal:
                self.result.foreign[node] = str(refusal)
        return self.result

    def _declare_symbols(self) -> None:
        seen: dict[str, object] = {}
        shape_env = None
        for node in self.graph.nodes:
            for number in _numbers_of(node.meta.get("val")):
                expr = expression_of(number)
                if expr is not None:
                    shape_env = number.node.shape_env
                    for symbol in expr.free_symbols:
                        seen.setdefault(symbol.name, symbol)
        for name, symbol in seen.items():
            if shape_env is None:
                break
            if not symbol.is_integer:
                hint = shape_env.backed_var_to_val.get(symbol, 0.5)
                ours = self.result.tracer.add_symbol("real", float(hint), None, None)
            else:
                least, most = _bounds(shape_env, symbol)
                hint = shape_env.backed_var_to_val.get(symbol)
                if hint is None:  # it comes from data: any value that is likely
                    hint = max(least if least is not None else 0, min(most if most is not None else 8, 8))
                kind = "size" if least is not None and least >= 2 else "integer"
                ours = self.result.tracer.add_symbol(kind, int(hint), least, most)
            self.result.names[name] = ours
            self.result.symbols.append(name)

    def _type_of(self, tensor: torch.Tensor) -> tuple:
        refusal = _refusal_of_tensor(tensor)
        if refusal:
            raise Refused(refusal)
        names = self.result.names
        return (
            _DTYPES[tensor.dtype],
            [number_text(size, names) for size in tensor.shape],
            [number_text(stride, names) for stride in tensor.stride()],
        )

    def _reference(self, node: Node):
        """A tensor as an argument: one of ours, or one that comes from outside."""
        if node in self.result.values:
            return self.result.values[node]
        if node not in self.result.imported:
            value = node.meta.get("val")
            if not isinstance(value, torch.Tensor):
                raise Refused(f"an argument is {type(value).__name__}")
            self.result.imported[node] = self.result.tracer.add_input(self._type_of(value))
        return self.result.imported[node]

    def _literal(self, argument):
        if isinstance(argument, Node):
            if is_size(argument):
                return self._number(argument.meta["val"])
            return self._reference(argument)
        if isinstance(argument, (list, tuple)):
            return [self._literal(each) for each in argument]
        if isinstance(argument, torch.dtype):
            return str(argument).removeprefix("torch.")
        if isinstance(argument, (torch.device, torch.layout, torch.memory_format)):
            return str(argument).removeprefix("torch.")
        if isinstance(argument, (torch.SymInt, torch.SymFloat)):
            return self._number(argument)
        if argument is None or isinstance(argument, (bool, int, float, str)):
            return argument
        raise Refused(f"an argument is {type(argument).__name__}")

    def _number(self, number):
        expr = expression_of(number)
        return plain(number) if expr is None else _core.Symbolic(to_text(expr, self.result.names))

    def _call(self, node: Node) -> None:
        target = node.target
        if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
            raise Refused("not an operator")
        if target.name().startswith("aten::_scaled_dot_product_"):
            raise Refused("attention in one kernel is PyTorch's")
        if torch.Tag.nondeterministic_seeded in target.tags:
            raise Refused("random numbers are PyTorch's")
        if target._schema.is_mutable:
            raise Refused("it writes to its arguments")
        value = node.meta.get("val")
        several = isinstance(value, (list, tuple))
        types = []
        for each in value if several else [value]:
            if each is not None and not isinstance(each, torch.Tensor):
                raise Refused(f"it gives {type(each).__name__}")
            types.append(None if each is None else self._type_of(each))
        self._refuse_absolute_offsets(node)
        schema = target._schema.arguments
        arguments = [(schema[at].name, self._literal(argument)) for at, argument in enumerate(node.args)]
        arguments += [(name, self._literal(argument)) for name, argument in node.kwargs.items()]
        name, renamed = _RENAMED.get(target.name(), (target.name(), {}))
        arguments = [(renamed.get(argument, argument), literal) for argument, literal in arguments]
        if name == "aten::sort.stable":  # ours always is
            name, arguments = "aten::sort", [each for each in arguments if each[0] != "stable"]
        why, call, results = self.result.tracer.call(name, arguments, types)
        if why is not None:
            raise Refused(why)
        self.result.calls[node] = call
        self.result.values[node] = results if several else results[0]

    def _refuse_absolute_offsets(self, node: Node) -> None:
        """Our inputs begin at their first element: positions in PyTorch's storage mean something else there."""
        if not node.target.name().startswith("aten::as_strided"):
            return
        offset = node.kwargs.get("storage_offset", node.args[3] if len(node.args) > 3 else None)
        if offset is None:
            return
        for each in [*self.graph.nodes]:
            value = each.meta.get("val")
            if (each.op == "placeholder" or each in self.result.imported) and isinstance(value, torch.Tensor):
                start = value.storage_offset()
                if expression_of(start) is not None or plain(start) != 0:
                    raise Refused("a position in storage, where inputs begin inside of theirs")

    def _take_item(self, node: Node) -> None:
        self.result.values[node] = self.result.values[node.args[0]][node.args[1]]
        self.result.calls[node] = self.result.calls[node.args[0]]


def _numbers_of(value):
    """Every size and number in a node's metadata."""
    if isinstance(value, torch.Tensor):
        yield from value.shape
        if value.layout is torch.strided:
            yield from value.stride()
    elif isinstance(value, (torch.SymInt, torch.SymFloat)):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _numbers_of(each)


def _bounds(shape_env, symbol) -> tuple[int | None, int | None]:
    found = shape_env.var_to_range.get(symbol)
    if found is None:
        return None, None
    ends = [int(end) if end.is_Integer and abs(end) < 2**62 else None for end in (found.lower, found.upper)]
    return ends[0], ends[1]


def is_size(node: Node) -> bool:
    """Whether a node only computes a number that the metadata tell. One that reads data does not."""
    value = node.meta.get("val")
    if not isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat)):
        return False
    if isinstance(node.target, torch._ops.OpOverload) and node.target.namespace == "aten":
        return node.target._schema.name in ("aten::sym_size", "aten::sym_stride", "aten::sym_numel",
                                            "aten::sym_storage_offset")
    return "unbacked_bindings" not in node.meta


def convert(graph: Graph) -> Conversion:
    return Converter(graph).convert()
