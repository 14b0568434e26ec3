"""Halftone: makes PyTorch models small and fast on CPUs."""

import torch as _torch  # noqa: F401  before _C, which needs torch's libraries in the process

from halftone import _C
from halftone._C import Error

__version__ = _C.__version__
__all__ = ["Error", "__version__"]
