"""The backend of ``torch.compile``: FX graphs as Halftone's, without a file in between."""

from .backend import backend, register
from .explain import Explanation, explain
from .exported import graph_from_exported
from .options import BackendOptions
from .program import FallbackError
from .records import GraphRecord, collect, counters, reset_counters

__all__ = [
    "BackendOptions",
    "Explanation",
    "FallbackError",
    "GraphRecord",
    "backend",
    "collect",
    "counters",
    "explain",
    "graph_from_exported",
    "register",
    "reset_counters",
]
