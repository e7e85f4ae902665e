"""Into parts: native calls that can run together are one, PyTorch's calls come between them."""
from __future__ import annotations

import operator
from dataclasses import dataclass, field

import torch
from torch.fx import Graph, Node

from tenon._convert import Conversion


@dataclass
class Level:
    """A native part, and the foreign calls that come after it."""

    native: list[Node] = field(default_factory=list)
    foreign: list[Node] = field(default_factory=list)


def partition(graph: Graph, conversion: Conversion) -> list[Level]:
    """A native call is in the first part that comes after every foreign call that it needs. Foreign calls with effects
    (random numbers, assertions) keep their order."""
    level: dict[Node, int] = {}  # of calls, and of the numbers that are computed from their results
    levels: list[Level] = []
    last_effect = 0
    for node in graph.nodes:
        native, foreign = node in conversion.calls, node in conversion.foreign
        at = 0
        for source in node.all_input_nodes:
            behind = source in conversion.foreign and not foreign
            at = max(at, level.get(source, 0) + (1 if behind else 0))
        if foreign and has_effect(node):
            at = last_effect = max(at, last_effect)
        level[node] = at
        if native or foreign:
            while len(levels) <= at:
                levels.append(Level())
            (levels[at].native if native else levels[at].foreign).append(node)
    return levels


def has_effect(node: Node) -> bool:
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return torch.Tag.nondeterministic_seeded in target.tags or target._schema.is_mutable or node.is_impure()
    return target is not operator.getitem
