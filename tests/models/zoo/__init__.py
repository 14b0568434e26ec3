"""The model zoo: plain PyTorch modules that Halftone must run as PyTorch does. Importing it registers every case."""

from . import (  # noqa: F401
    arguments,
    attention,
    basic,
    control_flow,
    dynamic,
    llama,
    modes,
    numbers,
    recurrent,
    state,
    structure,
    t5,
    vision,
)
from .case import ENTRIES, Call, Case, Entry, Refusal

__all__ = ["ENTRIES", "Call", "Case", "Entry", "Refusal"]
