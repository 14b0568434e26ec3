"""Halftone: makes PyTorch models small and fast on CPUs.

>>> import halftone, torch
>>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
>>> report = halftone.quantize_(model, "int8dq")
>>> model(torch.ones(1, 64)).shape
torch.Size([1, 8])
"""

from __future__ import annotations

import pathlib as _pathlib
from typing import Any as _Any

from halftone import _versions

_versions.check_torch()  # before _C, whose message would be an undefined symbol

from halftone import _C, _log, _register  # noqa: E402
from halftone._C import Error, GraphModule, QuantConfig, QuantizeReport, Session  # noqa: E402
from halftone._configs import (  # noqa: E402
    Bf16WeightOnlyConfig,
    Float8DynamicActivationFloat8WeightConfig,
    Float8WeightOnlyConfig,
    Int4WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    NoQuantConfig,
    Scheme,
    scheme_name,
    schemes,
)
from halftone._model import compile_exported, export, from_pt2, load, open_model  # noqa: E402
from halftone.backend import (  # noqa: E402
    Backend,
    QuantBackend,
    QuantBackendConfig,
    TorchAOBackend,
    TorchAOBackendConfig,
    backend_types,
)
from halftone.backend_config import BackendConfig  # noqa: E402
from halftone.benchmarks import bench, setup_baseline, torchao_optimize_ctx  # noqa: E402
from halftone.generator import GeneratedText, Generator  # noqa: E402
from halftone.quantization import diagnose, quantize_  # noqa: E402
from halftone.tuning import (  # noqa: E402
    AutoquantPlan,
    StaticInt8Result,
    Tuned,
    TuneReport,
    autoquant,
    quantize_static,
    strategies,
    tune,
)

__version__: str = _C.__version__

#: For find_package(Halftone): cmake -DCMAKE_PREFIX_PATH="$(python -c 'import halftone; print(halftone.cmake_prefix_path)')"
cmake_prefix_path = str(_pathlib.Path(__file__).parent)

_log.install()

_LAZY = {"explain": "halftone.dynamo", "graph_from_exported": "halftone.dynamo"}  # imports dynamo, which takes a second

_register.register_backend()

__all__ = [
    "AutoquantPlan", "Backend", "BackendConfig", "Bf16WeightOnlyConfig", "Error", "Float8DynamicActivationFloat8WeightConfig",
    "Float8WeightOnlyConfig", "GeneratedText", "Generator", "GraphModule", "Int4WeightOnlyConfig",
    "Int8DynamicActivationInt8WeightConfig", "Int8WeightOnlyConfig", "IntxWeightOnlyConfig", "NoQuantConfig", "QuantBackend",
    "QuantBackendConfig", "QuantConfig", "QuantizeReport", "Scheme", "Session", "StaticInt8Result", "TorchAOBackend",
    "TorchAOBackendConfig", "TuneReport", "Tuned", "autoquant", "backend_types", "bench", "cmake_prefix_path", "compile_exported",
    "diagnose", "export", "from_pt2", "load", "open_model", "quantize_", "quantize_static", "scheme_name", "schemes",
    "setup_baseline", "strategies", "torchao_optimize_ctx", "tune",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'halftone' has no attribute {name!r}")
