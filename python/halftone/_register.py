"""Makes ``torch.compile(model, backend="halftone")`` work after ``import halftone``."""

from __future__ import annotations

import importlib.metadata
import sys


def register_backend() -> None:
    """Nothing to do where the wheel is installed: dynamo finds its entry point, and loads us at the first use.

    In a build's folder there is none; there the backend is registered now, which imports dynamo.

    >>> register_backend()
    """
    installed = importlib.metadata.entry_points(group="torch_dynamo_backends", name="halftone")
    if installed and "torch._dynamo" not in sys.modules:
        return
    from halftone.dynamo import register

    register()
