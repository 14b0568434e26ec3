"""What PyTorch's torchao benchmarks call: setup_baseline, torchao_optimize_ctx; and Halftone's own bench."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import torch

from halftone import _C
from halftone._errors import make_error
from halftone.quantization import quantize_
from halftone.tuning import autoquant

_SCHEMES = {"int8dynamic": "int8dq", "int8weightonly": "int8wo", "int4weightonly": "int4wo"}
_NAMES = (*_SCHEMES, "autoquant", "noquant")


def setup_baseline(preset: str = "000") -> dict[str, str]:
    """What the benchmarks set before they measure: dynamo's part of it; Halftone's options are returned, by name.

    As upstream, `torch._dynamo.config.automatic_dynamic_shapes` becomes False and `recompile_limit` 10000. Inductor's
    settings are left alone: Halftone does not use it, and its own options are values, not settings of the process.

    >>> import halftone
    >>> halftone.setup_baseline("001")["recompile_limit"]
    '10000'
    """
    options = {name: value for name, value, _ in _C.baseline_options(preset)}
    import torch._dynamo.config as dynamo

    dynamo.automatic_dynamic_shapes = False
    dynamo.recompile_limit = int(options["recompile_limit"])
    return options


def torchao_optimize_ctx(quantization: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Wraps a benchmark's `model_iter_fn(module, example_inputs)`: the first call quantizes the module in place.

    `quantization`: "int8dynamic", "int8weightonly", "int4weightonly", "autoquant" or "noquant". A module that has the
    mark `_quantized` is left as it is. Upstream drops what `model_iter_fn` returns; this returns it.

    >>> import halftone, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 8))
    >>> run = halftone.torchao_optimize_ctx("int8weightonly")(lambda module, inputs: module(*inputs))
    >>> run(model, (torch.ones(1, 64),)).shape, type(model[0]).__name__
    (torch.Size([1, 8]), 'QuantizedLinear')
    """
    if quantization not in _NAMES:
        raise make_error("invalid argument", f'quantization is "{quantization}"; it is one of {", ".join(_NAMES)}')

    def inner(model_iter_fn: Callable[..., Any]) -> Callable[..., Any]:
        def _torchao_apply(module: torch.nn.Module, example_inputs: Any) -> Any:
            if getattr(module, "_quantized", None) is None:
                _quantize(module, quantization, example_inputs)
                module._quantized = True  # type: ignore[assignment]
            return model_iter_fn(module, example_inputs)

        return _torchao_apply

    return inner


def _quantize(module: torch.nn.Module, quantization: str, example_inputs: Any) -> None:
    if quantization in _SCHEMES:
        quantize_(module, _SCHEMES[quantization])
    elif quantization == "autoquant":
        example = example_inputs if isinstance(example_inputs, dict) else tuple(example_inputs)
        try:
            autoquant(module, example, error_on_unseen=False)
        except _C.Error as error:
            if "NotAutoquantizable" not in str(error):
                raise
            text = f"NotAutoquantizable: found no autoquantizable layers in model {type(module)}, stopping autoquantized run"
            raise make_error("invalid argument", text) from error


def bench(
    suite: str = "builtin",
    *,
    schemes: Sequence[str] = ("noquant",),
    seconds: float = 4,
    performance: bool = True,
    accuracy: bool = True,
    models: Sequence[str] | None = None,
    progress: Callable[[int, int, str], Any] | None = None,
) -> list[dict[str, Any]]:
    """Runs a suite in this process; a row for each model and scheme. The command `halftone bench` isolates each row.

    `suite`: "builtin", a folder of .pt2 files, or one file. `models`: only these names.

    >>> import halftone
    >>> rows = halftone.bench(models=["mlp_mixer"], schemes=["int8wo"], performance=False)
    >>> rows[0]["accuracy"]
    'pass'
    """
    names = _C.select_bench_models(suite)
    unknown = [name for name in models or () if name not in names]
    if unknown:
        raise make_error("not found", f"models: the suite has no {unknown[0]}; it has {', '.join(names[:12])}")
    base = json.loads(_C.default_bench_job())
    jobs = [
        json.dumps(base | {"model": name, "scheme": scheme, "seconds": seconds, "performance": performance, "accuracy": accuracy})
        for name in (models or names)
        for scheme in schemes
    ]
    return json.loads(_C.run_bench_suite(jobs, progress))["rows"]
