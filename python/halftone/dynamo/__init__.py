"""The backend of ``torch.compile``: FX graphs as Halftone's, without a file in between."""

from .backend import backend, register
from .records import counters, reset_counters

__all__ = ["backend", "counters", "register", "reset_counters"]
