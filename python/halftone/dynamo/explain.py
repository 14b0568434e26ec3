"""What became of a model: ``halftone.explain(model, *inputs)``."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from .backend import backend
from .records import GraphRecord, collect


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Graphs of one call, and what each of them leaves to PyTorch."""

    graphs: tuple[GraphRecord, ...]
    #: Why dynamo cut the model into several graphs: reason → how often.
    graph_breaks: dict[str, int]

    @property
    def nodes(self) -> int:
        """Nodes of all compiled graphs."""
        return sum(graph.nodes for graph in self.graphs)

    @property
    def eager(self) -> tuple[GraphRecord, ...]:
        """Graphs that run as eager."""
        return tuple(graph for graph in self.graphs if graph.eager_reason)

    @property
    def left_to_aten(self) -> list[str]:
        """What, where and why, of all graphs."""
        return [text for graph in self.graphs for text in graph.left_to_aten]

    @property
    def native_share(self) -> float:
        """Steps that run in Halftone's kernels, of all steps of compiled graphs; graphs that are interpreted count as 0."""
        steps = [step for graph in self.graphs for step in graph.steps]
        lost = sum(graph.nodes for graph in self.graphs if graph.interpreted)
        native = sum(step["kernel"] != "aten" for step in steps)
        return native / (len(steps) + lost) if steps or lost else 1.0

    def __str__(self) -> str:
        breaks = sum(self.graph_breaks.values())
        counts = ", ".join((_count(len(self.graphs), "graph"), _count(breaks, "graph break"), _count(self.nodes, "node")))
        lines = [f"{counts}; {self.native_share:.0%} of the steps in Halftone's kernels"]
        lines += [f"  break: {reason}" + (f" ({n} times)" if n > 1 else "") for reason, n in self.graph_breaks.items()]
        for index, graph in enumerate(self.graphs, 1):
            lines.append(f"graph {index} ({graph.kind}, {graph.route}): {_summary(graph)}")
            left = collections.Counter(graph.left_to_aten)
            lines += [f"  to ATen: {text}" + (f" ({n} times)" if n > 1 else "") for text, n in left.items()]
        return "\n".join(lines)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _summary(graph: GraphRecord) -> str:
    if graph.eager_reason:
        return f"runs as eager: {graph.eager_reason}"
    if not graph.variants:
        return "was not called"
    if graph.interpreted:
        return f"{_count(graph.nodes, 'node')}, interpreted: {graph.interpreted}"
    return f"{_count(graph.nodes, 'node')}, {_count(len(graph.steps), 'step')}"


def explain(
    model: Callable[..., Any], *args: Any, options: dict[str, Any] | None = None, dynamic: bool | None = None, **kwargs: Any
) -> Explanation:
    """Compiles ``model`` anew, calls it once with these inputs, and says what became of it.

    The model is called for real: buffers that it writes are written. ``torch.compile``'s caches of other backends stay.

    >>> import torch, halftone
    >>> report = halftone.explain(torch.nn.Linear(4, 4).requires_grad_(False), torch.ones(1, 4))
    >>> len(report.graphs), len(report.eager)
    (1, 0)
    """
    breaks = torch._dynamo.utils.counters["graph_break"]
    before = dict(breaks)

    # A function of its own: dynamo keeps graphs by the identity of the backend, and known ones would not be made again.
    def fresh(gm: Any, example_inputs: Any, **given: Any) -> Callable[..., Any]:
        return backend(gm, example_inputs, options=options, **given)

    with collect() as graphs:
        torch.compile(model, backend=fresh, dynamic=dynamic)(*args, **kwargs)
    found = {_first_line(reason): count - before.get(reason, 0) for reason, count in breaks.items()}
    return Explanation(tuple(graphs), {reason: count for reason, count in found.items() if count > 0})


def _first_line(reason: str) -> str:
    return next((line.strip() for line in reason.splitlines() if line.strip()), reason)
