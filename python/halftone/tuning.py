"""tune, autoquant and quantize_static."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from halftone import _C
from halftone._errors import make_error
from halftone._model import PathLike, own_samples, to_graph
from halftone._samples import to_samples
from halftone.backend import Backend
from halftone.backend_config import BackendConfig
from halftone.quantization import quantize_

AutoquantPlan = _C.AutoquantPlan
StaticInt8Result = _C.StaticInt8Result
TuneReport = _C.TuneReport
Progress = Callable[[int, int, str], Any]


class Tuned:
    """What `tune` found: call it, print its report, save it."""

    def __init__(self, backend: Backend, report: TuneReport) -> None:
        self.backend = backend
        self.report = report

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the chosen backend, without gradients."""
        return self.backend.infer(*args, **kwargs)

    @property
    def results(self) -> list[dict[str, Any]]:
        """Every candidate, with measurements, verdict and reason."""
        return json.loads(self.report.to_json())["candidates"]

    def save(self, path: PathLike, *, packed: bool = False) -> None:
        """The model as it was chosen, with the report, as one .ht file for `halftone.load`."""
        self.backend.save(path, packed=packed)

    def __repr__(self) -> str:
        return f"<tuned: {self.report.chosen}, {self.backend!r}>"


def tune(
    model: Any,
    samples: Any = None,
    strategy: str = "throughput",
    *,
    held_out: Any = None,
    backends: Sequence[str] = (),
    schemes: Sequence[str] = (),
    budget_ms: float | None = None,
    minimum: float | None = None,
    candidate: str = "",
    min_cosine: float = 0.99,
    metric: Callable[[Any, Any], float] | None = None,
    metric_name: str = "",
    time_limit: float = 60,
    cache_dir: PathLike | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
) -> Any:
    """Tries every way to run a model, measures each beside eager, keeps what is right and takes the best.

    `strategy`: "throughput", "latency", "first", "one" (with `candidate`), "latency-budget" and "size" (with
    `budget_ms`), "accuracy" and "metric" (with `minimum`). `backends` and `schemes` choose among the candidates.
    `metric(expected, got)`: your own, larger is better. A Python module is exported for the samples and stays as it is.
    `dry_run=True` returns a text that says what would be tried.

    >>> import halftone, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    >>> best = halftone.tune(model, [torch.randn(4, 64)], schemes=["int8dq"], time_limit=10)
    >>> best.backend.state, best(torch.randn(4, 64)).shape
    ('ACTIVE', torch.Size([4, 8]))
    """
    graph = to_graph(model, samples)
    options = {
        "backends": list(backends), "schemes": list(schemes), "budget_ms": budget_ms, "minimum": minimum, "candidate": candidate,
        "min_cosine": min_cosine, "metric": metric, "metric_name": metric_name, "time_limit": time_limit,
        "cache_dir": os.fspath(cache_dir or ""), "progress": progress,
    }  # fmt: skip
    calls, checks = to_samples(samples), to_samples(held_out)
    if dry_run:
        return _C.plan_tuning(graph, calls, checks, strategy, options)
    backend, report = _C.tune_graph(graph, calls, checks, strategy, options)
    return Tuned(Backend._of(backend), report)


def strategies() -> list[str]:
    """The names that `tune` takes.

    >>> import halftone
    >>> "latency" in halftone.strategies()
    True
    """
    return _C.strategy_names()


def autoquant(
    model: Any,
    example_input: Any = None,
    *,
    schemes: Sequence[str] = (),
    min_cosine: float = 0.995,
    min_layer_cosine: float = 0.98,
    time_limit: float = 60,
    error_on_unseen: bool = True,
    final_comparison: bool = True,
    include: str = "",
    exclude: str = "",
    cache_dir: PathLike | None = None,
    progress: Progress | None = None,
    set_inductor_config: bool = False,
) -> Any:
    """Measures every layer in every scheme on this machine, and makes each low-bit in the fastest that stays right.

    In place; returns the model, whose `autoquant_plan` says for each layer what was taken and why. `example_input`: one
    call or a list of calls. Without it, a Python module is quantized by its first call, as torchao does it.
    `set_inductor_config` is torchao's, and does nothing here.

    >>> import halftone, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    >>> model = halftone.autoquant(model, [torch.randn(4, 64)], schemes=["int8wo"], final_comparison=False)
    >>> [name for name, scheme, reason in model.autoquant_plan.layers]
    ['0', '2']
    """
    options = {
        "schemes": list(schemes), "min_cosine": min_cosine, "min_layer_cosine": min_layer_cosine, "time_limit": time_limit,
        "error_on_unseen": error_on_unseen, "final_comparison": final_comparison, "include": include, "exclude": exclude,
        "cache_dir": os.fspath(cache_dir or ""), "progress": progress,
    }  # fmt: skip
    module = getattr(model, "_orig_mod", model)
    if isinstance(module, torch.nn.Module):
        if example_input is None:
            _wait_for_first_call(module, options)
        else:
            _autoquant_module(module, to_samples(example_input), options)
        return model
    graph = to_graph(module, example_input)
    plan = _C.plan_autoquant(graph, to_samples(example_input), options)
    if plan.quantizes():
        _C.apply_plan(graph, plan)
    graph.autoquant_plan = plan
    return graph


def _autoquant_module(module: torch.nn.Module, calls: list[Any], options: dict[str, Any]) -> None:
    plan = _C.plan_autoquant(to_graph(module, calls), calls, options)
    overrides = {pattern: config for pattern, config in plan.overrides()}
    if overrides:
        # Layers that only the graph has (an attention's projections) stay: their owners read their weights.
        names = [name for name, _ in module.named_modules()]
        there = {pattern: config for pattern, config in overrides.items() if any(re.fullmatch(pattern, name) for name in names)}
        quantize_(module, "noquant", embeddings=True, overrides=there)
    object.__setattr__(module, "autoquant_plan", plan)


def _wait_for_first_call(module: torch.nn.Module, options: dict[str, Any]) -> None:
    def first_call(_: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        hook.remove()
        _autoquant_module(module, [(args, kwargs)], options)

    hook = module.register_forward_pre_hook(first_call, with_kwargs=True)


def quantize_static(
    model: Any,
    samples: Any = None,
    *,
    backend_config: BackendConfig | Any = "x86",
    qconfig_mapping: Mapping[str, Any] | None = None,
    activation_bits: int = 7,
    weight_bits: int = 8,
    statistics: str = "",
    require_all: bool = False,
    progress: Progress | None = None,
) -> StaticInt8Result:
    """Static int8 after calibrating with the samples: for convolutional networks. The model is left as it is.

    `backend_config`: "x86", "native", "reference", a `BackendConfig`, or torch.ao's own. `qconfig_mapping`: the dict of
    Halftone's form; without it the x86 defaults in these widths. `result.module` is what runs and can be saved.

    >>> import halftone, torch
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
    >>> result = halftone.quantize_static(model, [torch.randn(1, 3, 8, 8) for _ in range(4)])
    >>> result.module(torch.randn(1, 3, 8, 8)).shape
    torch.Size([1, 8, 6, 6])
    """
    graph = to_graph(model, samples)
    calls = to_samples(samples) or own_samples(graph)
    config = _to_backend_config(backend_config)
    options = {
        "activation_bits": activation_bits, "weight_bits": weight_bits, "statistics": statistics, "require_all": require_all,
        "progress": progress,
    }  # fmt: skip
    mapping = "" if qconfig_mapping is None else json.dumps(dict(qconfig_mapping))
    return _C.quantize_static(graph, calls, config.to_json(), mapping, options)


def _to_backend_config(config: Any) -> BackendConfig:
    if isinstance(config, BackendConfig):
        return config
    if isinstance(config, str):
        return BackendConfig.builtin(config)
    if isinstance(config, Mapping):
        return BackendConfig.from_dict(config)
    if hasattr(config, "to_dict"):
        return BackendConfig.from_torch(config)
    raise make_error("invalid argument", f"backend_config is of type {type(config).__name__}: give a name, a dict or a BackendConfig")
