"""A converted graph as a Python function: native parts, PyTorch's operators between them, in one straight line.

The function is written as source, which the report shows. It takes its arguments in a list and empties it, so that
they die as they are used up. A part that fails at a call is run as PyTorch's operators instead: the program has no
effects inside of a part, so nothing is done twice.
"""
from __future__ import annotations

import math
import operator
import re
import time
import warnings

import torch
from torch.fx import Graph, GraphModule, Node
from torch.utils._sympy.printers import PythonPrinter

from tenon import _core
from tenon._convert import Conversion, is_size
from tenon._partition import Level, has_effect, partition
from tenon._report import Foreign, GraphRecord
from tenon._symbols import expression_of, plain

_exchange: _core.Exchange | None = None


def exchange() -> _core.Exchange:
    global _exchange
    if _exchange is None:
        _exchange = _core.Exchange(torch.Tensor.__dlpack_c_exchange_api__)
    return _exchange


class Unavailable(Exception):
    """A number that a part needs and nobody has."""


class Runner:
    """Writes the function."""

    def __init__(self, module: GraphModule, conversion: Conversion, record: GraphRecord, strict: bool):
        self.module = module
        self.graph: Graph = module.graph
        self.conversion = conversion
        self.record = record
        self.strict = strict
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        # What expressions of sizes are written with, and a clock.
        self.scope: dict[str, object] = {"math": math, "torch": torch, "clock": time.perf_counter_ns}
        self.printer = PythonPrinter()
        self.known: set[str] = set()  # symbols that have a variable by now
        self.output: Node = next(node for node in self.graph.nodes if node.op == "output")
        self.constants = 0
        self.eager_parts: list[list[Node]] = []

    def write(self):
        levels = partition(self.graph, self.conversion)
        needed = self._needed(levels)
        for level in levels:
            level.native = [node for node in level.native if node in needed]
            level.foreign = [node for node in level.foreign if node in needed]
        self._write_arguments()
        for at, level in enumerate(levels):
            if level.native:
                self._write_part(at, levels)
            for node in level.foreign:
                self._write_foreign(node)
        self._write_results()
        self._free_early()
        source = "def run(args):\n" + "".join(f"    {line}\n" for line in self.lines)
        self.record.source = source
        exec(compile(source, "<tenon>", "exec"), self.scope)
        run = self.scope["run"]
        run._boxed_call = True
        return run

    def _needed(self, levels: list[Level]) -> set[Node]:
        """Nodes whose result somebody looks at, or that have an effect."""
        needed: set[Node] = set()
        for node in reversed(self.graph.nodes):
            used = node.op == "output" or any(user in needed for user in node.users)
            if used or (node in self.conversion.foreign and has_effect(node)):
                needed.add(node)
        return needed

    # Names.

    def _name(self, node: Node) -> str:
        if node not in self.names:
            self.names[node] = f"v{len(self.names)}"
        return self.names[node]

    def _constant(self, value) -> str:
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        name = f"k{self.constants}"
        self.constants += 1
        self.scope[name] = value
        return name

    def _expression(self, number) -> str:
        expr = expression_of(number)
        if expr is None:
            return self._constant(plain(number))
        missing = [symbol.name for symbol in expr.free_symbols if symbol.name not in self.known]
        if missing:
            raise Unavailable(f"nothing tells the value of {', '.join(missing)}")
        return self.printer.doprint(expr)

    def _learn(self, node: Node) -> None:
        """Variables for the symbols that a value shows."""
        value, name = node.meta.get("val"), self.names.get(node)
        if name is None:
            return
        for expr, text in _shown(value, name):
            symbols = list(expr.free_symbols)
            if len(symbols) != 1 or symbols[0].name in self.known:
                continue
            solved = _solved(expr, symbols[0], text)
            if solved is not None:
                self.lines.append(f"{symbols[0].name} = {solved}")
                self.known.add(symbols[0].name)

    def _argument(self, argument) -> str:
        if isinstance(argument, Node):
            if argument not in self.names or (is_size(argument) and expression_of(argument.meta["val"]) is not None):
                return self._expression(argument.meta["val"])
            return self._name(argument)
        if isinstance(argument, (list, tuple)):
            items = ", ".join(self._argument(each) for each in argument)
            return f"[{items}]" if isinstance(argument, list) else f"({items}{',' if len(argument) == 1 else ''})"
        if isinstance(argument, slice):
            parts = (self._argument(each) for each in (argument.start, argument.stop, argument.step))
            return f"slice({', '.join(parts)})"
        if isinstance(argument, dict):
            return "{" + ", ".join(f"{key!r}: {self._argument(each)}" for key, each in argument.items()) + "}"
        if isinstance(argument, (torch.SymInt, torch.SymFloat)):
            return self._expression(argument)
        return self._constant(argument)

    # Lines.

    def _write_arguments(self) -> None:
        placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        if placeholders:
            self.lines.append(f"{', '.join(self._name(node) for node in placeholders)}, = args")
        self.lines.append("args.clear()")
        for node in placeholders:
            self._learn(node)
        for node in self.graph.nodes:
            if node.op == "get_attr":
                self.scope[self._name(node)] = operator.attrgetter(node.target)(self.module)

    def _write_part(self, at: int, levels: list[Level]) -> None:
        nodes = levels[at].native
        inside = set(nodes)
        inputs: dict[Node, object] = {}
        for node in nodes:
            if node.target is operator.getitem:
                continue
            for source in node.all_input_nodes:
                if source not in inside and not is_size(source):
                    inputs[source] = self.conversion.values.get(source) or self.conversion.imported[source]
        outputs = [
            node
            for node in nodes
            if not isinstance(self.conversion.values[node], list) and any(user not in inside for user in node.users)
        ]
        if not outputs:
            return
        calls = sorted({self.conversion.calls[node] for node in nodes})
        results = ", ".join(self._name(node) for node in outputs)
        names = [self._name(node) for node in inputs]
        eager = f"e{at}"
        self.scope[eager] = self._eager(nodes, list(inputs), outputs)
        try:
            part = _core.Part(
                self.conversion.tracer,
                calls,
                list(inputs.values()),
                [self.conversion.values[node] for node in outputs],
                exchange(),
                torch._C._dynamo.guards._reinterpret_tensor,
            )
            numbers = self._passed(part)
        except (_core.Error, _core.InternalError, Unavailable) as failure:
            if self.strict:
                raise
            self._note(failure)
            self.lines.append(f"{results}, = e{at}({', '.join([*names, *self._known_list()])})")
        else:
            self.scope[f"p{at}"] = part
            self.record.add_part(part)
            self.record.native += len(calls)
            self.lines.append("try:")
            self.lines.append(f"    {results}, = p{at}({', '.join([*names, *numbers])})")
            self.lines.append("except Exception as failure:")
            self.scope["failed"] = self._failed
            self.lines.append("    failed(failure)")
            self.lines.append(f"    {results}, = e{at}({', '.join([*names, *self._known_list()])})")
        for node in outputs:
            self._learn(node)

    def _passed(self, part: _core.Part) -> list[str]:
        numbers = [self.conversion.symbols[at] for at in part.numbers]
        missing = [name for name in numbers if name not in self.known]
        if missing:
            raise Unavailable(f"nothing tells the value of {', '.join(missing)}")
        return numbers

    def _known_list(self) -> list[str]:
        return sorted(self.known)

    def _eager(self, nodes: list[Node], inputs: list[Node], outputs: list[Node]):
        """The same calls by PyTorch's operators. Written when first needed."""
        known = self._known_list()
        written = None

        def run(*args):
            nonlocal written
            if written is None:
                inner = Runner(self.module, self.conversion, self.record, self.strict)
                inner.known = set(known)
                for node in inputs:
                    inner._name(node)
                head = ", ".join([*(inner._name(node) for node in inputs), *known])
                for node in nodes:
                    inner._write_call(node)
                inner.lines.append(f"return ({', '.join(inner._name(node) for node in outputs)},)")
                source = f"def run({head}):\n" + "".join(f"    {line}\n" for line in inner.lines)
                exec(compile(source, "<tenon>", "exec"), inner.scope)
                written = inner.scope["run"]
            return written(*args)

        return run

    def _note(self, failure: Exception) -> None:
        why = f"{type(failure).__name__}: {failure}"
        if why not in self.record.failures:
            self.record.failures.append(why)

    def _failed(self, failure: Exception) -> None:
        if self.strict:
            raise failure
        self._note(failure)

    def _call_text(self, node: Node) -> str:
        args = [self._argument(argument) for argument in node.args]
        args += [f"{name}={self._argument(argument)}" for name, argument in node.kwargs.items()]
        if node.op == "call_function":
            return f"{self._constant(node.target)}({', '.join(args)})"
        if node.op == "call_method":
            return f"{args[0]}.{node.target}({', '.join(args[1:])})"
        return f"{self._constant(self.module.get_submodule(node.target))}({', '.join(args)})"

    def _write_call(self, node: Node) -> None:
        self.lines.append(f"{self._name(node)} = {self._call_text(node)}")

    def _write_foreign(self, node: Node) -> None:
        if node.target is operator.getitem:
            self._write_call(node)
        else:
            name = node.target.name() if isinstance(node.target, torch._ops.OpOverload) else str(node.target)
            call = Foreign(name, self.conversion.foreign[node])
            self.record.foreign.append(call)
            counts = f"f{len(self.record.foreign)}"
            self.scope[counts] = call
            self.lines.append("began = clock()")
            self._write_call(node)
            self.lines.append(f"{counts}.calls += 1; {counts}.nanoseconds += clock() - began")
        self._learn(node)

    def _write_results(self) -> None:
        results = self.output.args[0]
        results = results if isinstance(results, (list, tuple)) else [results]
        self.lines.append(f"return [{', '.join(self._argument(each) for each in results)}]")

    def _free_early(self) -> None:
        """A variable goes after the last line that mentions it."""
        last: dict[str, int] = {}
        for at, line in enumerate(self.lines):
            for name in re.findall(r"\bv\d+\b", line):
                last[name] = at
        dying: dict[int, list[str]] = {}
        values = set(self.names.values()) - set(self.scope)
        for name, at in last.items():
            if name in values and not self.lines[at].startswith("return"):
                dying.setdefault(at, []).append(name)
        lines = []
        for at, line in enumerate(self.lines):
            lines.append(line)
            if at in dying:
                lines.append(f"del {', '.join(dying[at])}")
        self.lines = lines


def _shown(value, name: str):
    """The symbolic numbers that a value tells, and how to ask for them."""
    if isinstance(value, torch.Tensor):
        for dim, size in enumerate(value.shape):
            if (expr := expression_of(size)) is not None:
                yield expr, f"{name}.shape[{dim}]"
        if value.layout is torch.strided:
            for dim, stride in enumerate(value.stride()):
                if (expr := expression_of(stride)) is not None and expr.is_Symbol:
                    yield expr, f"{name}.stride({dim})"
    elif (expr := expression_of(value)) is not None:
        yield expr, name


def _solved(expr, symbol, text: str) -> str | None:
    """The symbol, from the value of a multiple of it plus a number."""
    if expr == symbol:
        return text
    if not symbol.is_integer:
        return None
    slope = expr.coeff(symbol)
    rest = expr - slope * symbol
    if slope.is_Integer and slope != 0 and rest.is_Integer:
        return f"({text} - {int(rest)}) // {int(slope)}"
    return None


def warn_about_version() -> None:
    if not torch.__version__.startswith("2.13."):
        warnings.warn(f"tenon's backend is tested with PyTorch 2.13; this is {torch.__version__}", stacklevel=2)
