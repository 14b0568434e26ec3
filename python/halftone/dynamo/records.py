"""What became of each graph: counted for programs, logged for users, collected for ``explain``."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import logging
import threading
from collections.abc import Iterator
from typing import Any

log = logging.getLogger("halftone.dynamo")

#: Since the process began: ``graphs``, ``compiled``, ``eager``, ``interpreted``, ``variants``, ``eager_calls``.
counters: collections.Counter[str] = collections.Counter()

_collectors: list[list[GraphRecord]] = []
_lock = threading.Lock()


@dataclasses.dataclass
class GraphRecord:
    """One graph that dynamo or AotAutograd gave to the backend."""

    #: ``"inference"``, ``"forward"`` or ``"backward"``.
    kind: str
    #: ``"pre-dispatch"`` or ``"aot"``: how ATen operators were made of it.
    route: str = "pre-dispatch"
    #: Nodes of Halftone's graph.
    nodes: int = 0
    #: Why it runs as eager; empty if it is compiled.
    eager_reason: str = ""
    #: Why it is compiled but runs node by node in the interpreter; empty if it does not.
    interpreted: str = ""
    #: What the plan of the first call leaves to ATen, and why.
    left_to_aten: list[str] = dataclasses.field(default_factory=list)
    #: Steps of that plan, as dicts.
    steps: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    #: How often it was compiled: once for each set of weights.
    variants: int = 0
    #: Calls that ran as eager although the graph is compiled: an argument that it writes to shared memory with another.
    eager_calls: int = 0

    def fall_back(self, reason: str) -> None:
        """Notes and says that the graph runs as eager."""
        if not self.eager_reason:
            with _lock:
                counters["eager"] += 1
                if self.variants:
                    counters["compiled"] -= 1
        self.eager_reason = reason
        log.warning("a graph runs as eager (%s): %s", self.kind, reason)

    def eager_call(self) -> None:
        """Counts a call that runs as eager; says so the first time, where the graph itself is compiled."""
        with _lock:
            counters["eager_calls"] += 1
            self.eager_calls += 1
        if self.eager_calls == 1 and not self.eager_reason:
            log.warning(
                "a call runs as eager (%s): an argument that the graph writes to shares memory with another argument",
                self.kind,
            )

    def compiled(self, nodes: int, report: dict[str, Any]) -> None:
        """Notes the plan of the first call."""
        self.variants += 1
        with _lock:
            counters["variants"] += 1
            if self.variants == 1:
                counters["compiled"] += 1
                counters["interpreted"] += bool(report["interpreted"])
        if self.variants > 1:
            return
        self.nodes = nodes
        self.interpreted = report["interpreted"]
        self.left_to_aten = list(report["left_to_aten"])
        self.steps = list(report["steps"])


def new_record(kind: str, route: str = "pre-dispatch") -> GraphRecord:
    """A record that is counted, and seen by those who collect."""
    record = GraphRecord(kind, route)
    with _lock:
        counters["graphs"] += 1
        for collector in _collectors:
            collector.append(record)
    return record


@contextlib.contextmanager
def collect() -> Iterator[list[GraphRecord]]:
    """The graphs that are given to the backend meanwhile, by any thread.

    >>> with collect() as graphs:
    ...     pass
    >>> graphs
    []
    """
    graphs: list[GraphRecord] = []
    with _lock:
        _collectors.append(graphs)
    try:
        yield graphs
    finally:
        with _lock:
            # By identity: two empty lists are equal.
            _collectors[:] = [each for each in _collectors if each is not graphs]


def reset_counters() -> None:
    """All counters at 0."""
    with _lock:
        counters.clear()
