"""What became of the graphs that PyTorch gave us: how much is ours, what PyTorch computes, and why."""
from __future__ import annotations

import collections
import threading
import weakref
from dataclasses import dataclass, field


@dataclass
class Foreign:
    """A call that PyTorch's operator does."""

    op: str
    why: str
    calls: int = 0
    nanoseconds: int = 0


@dataclass
class GraphRecord:
    """One graph that was compiled."""

    kind: str  # "forward", "backward", "inference"
    native: int = 0  # calls that are ours
    part_count: int = 0
    foreign: list[Foreign] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # why a part ran as PyTorch's operators, once for each reason
    source: str = ""  # the Python function that runs it
    milliseconds: float = 0.0  # spent compiling
    _parts: list = field(default_factory=list)  # weak: a report keeps nothing compiled alive

    def add_part(self, part) -> None:
        self.part_count += 1
        self._parts.append(weakref.ref(part))

    @property
    def parts(self) -> list:
        """The compiled parts that are still in use."""
        return [part for each in self._parts if (part := each()) is not None]


class TorchReport:
    """The last 10000 graphs since the start, or since `reset_torch_report()`. `str()` is a table for people."""

    def __init__(self, graphs: list[GraphRecord]):
        self.graphs = graphs

    @property
    def native(self) -> int:
        return sum(graph.native for graph in self.graphs)

    @property
    def foreign(self) -> list[Foreign]:
        return [call for graph in self.graphs for call in graph.foreign]

    @property
    def failures(self) -> list[str]:
        return [why for graph in self.graphs for why in graph.failures]

    def __str__(self) -> str:
        milliseconds = sum(graph.milliseconds for graph in self.graphs)
        parts = sum(graph.part_count for graph in self.graphs)
        lines = [
            f"{len(self.graphs)} graphs in {milliseconds:.0f} ms: {self.native} calls in {parts} compiled parts, "
            f"{len(self.foreign)} calls of PyTorch's operators"
        ]
        rows: dict[tuple[str, str], list[int]] = {}
        for call in self.foreign:
            row = rows.setdefault((call.op, call.why), [0, 0, 0])
            row[0] += 1
            row[1] += call.calls
            row[2] += call.nanoseconds
        for (op, why), (places, calls, nanoseconds) in sorted(rows.items(), key=lambda item: -item[1][2]):
            lines.append(f"  {op}: {places} places, {calls} calls, {nanoseconds / 1e6:.1f} ms: {why}")
        for why in self.failures:
            lines.append(f"  failed: {why}")
        return "\n".join(lines)


_lock = threading.Lock()
_graphs: collections.deque[GraphRecord] = collections.deque(maxlen=10000)


def add_graph(record: GraphRecord) -> None:
    with _lock:
        _graphs.append(record)


def torch_report() -> TorchReport:
    """What `torch.compile(backend="tenon")` made of PyTorch's graphs."""
    with _lock:
        return TorchReport(list(_graphs))


def reset_torch_report() -> None:
    """Forgets the graphs so far."""
    with _lock:
        _graphs.clear()
