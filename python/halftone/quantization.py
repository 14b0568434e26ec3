"""quantize_ and what tells what it costs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import torch

from halftone import _C
from halftone._configs import Config, to_quant_config
from halftone._errors import make_error
from halftone._model import GraphModule, own_samples, to_graph
from halftone._samples import to_samples
from halftone.nn import QuantizedEmbedding, QuantizedLinear

QuantizeReport = _C.QuantizeReport
FilterFn = Callable[[Any, str], bool]

_QUANTIZED = (QuantizedLinear, QuantizedEmbedding)
# Its owner (nn.MultiheadAttention) reads the weight itself and never calls it; torchao leaves it too.
_READ_BY_OWNER = torch.nn.modules.linear.NonDynamicallyQuantizableLinear


def quantize_(
    model: torch.nn.Module | GraphModule,
    config: Config,
    filter_fn: FilterFn | None = None,
    device: Any = None,
    *,
    embeddings: bool = False,
    include: str = "",
    exclude: str = "",
    overrides: Mapping[str, Config] | None = None,
    dry_run: bool = False,
) -> QuantizeReport:
    """Makes the linear layers of a model low-bit, in place; tells layer by layer what it did and why not.

    `config`: a name of `schemes()` or a config such as `Int4WeightOnlyConfig(group_size=64)`. `filter_fn(module, name)`:
    only layers for which it is true (of a GraphModule it gets a LayerInfo). `device`: as torchao's; only the CPU.
    `include` and `exclude` are regular expressions that match a layer's whole name, `overrides` maps such expressions
    to configs for single layers. `embeddings=True` takes nn.Embedding too, where the config has a kernel for it.

    The layers of a Python module become `halftone.nn.QuantizedLinear`: torch.compile and torch.export keep them
    quantized. On an error the model is as it was.

    >>> import halftone, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    >>> halftone.quantize_(model, "int8dq", filter_fn=lambda module, name: name != "2")
    QuantizeReport(1 quantized, 1 kept, 18720 -> 6688 bytes)
    """
    if device is not None and torch.device(device).type != "cpu":
        raise make_error("unsupported", f"device is {device}: Halftone runs on the CPU")
    quant_config = to_quant_config(config)
    by_pattern = [(pattern, to_quant_config(choice)) for pattern, choice in (overrides or {}).items()]
    if isinstance(model, GraphModule):
        layer_filter = None if filter_fn is None else lambda layer: filter_fn(layer, layer.name)
        return _C.quantize_(
            model, quant_config, filter=layer_filter, embeddings=embeddings, include=include, exclude=exclude,
            overrides=by_pattern, dry_run=dry_run,
        )  # fmt: skip
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is of type {type(model).__name__}: give a torch.nn.Module or a halftone.GraphModule")
    model = getattr(model, "_orig_mod", model)  # of torch.compile: dynamo sees that the layers are others
    plan = _Plan(model, quant_config, filter_fn, embeddings, include, exclude, by_pattern)
    report, replacements = plan.make()
    if not dry_run:
        _replace(model, replacements)
    return report


class _Plan:
    """Which layers of a Python module become what. Everything that can fail comes before the first change."""

    def __init__(
        self,
        model: torch.nn.Module,
        config: _C.QuantConfig,
        filter_fn: FilterFn | None,
        embeddings: bool,
        include: str,
        exclude: str,
        overrides: list[tuple[str, _C.QuantConfig]],
    ) -> None:
        self.model, self.config, self.filter_fn, self.embeddings = model, config, filter_fn, embeddings
        self.patterns = {"include": include, "exclude": exclude}
        self.overrides = overrides
        self.report = QuantizeReport()
        self.replacements: dict[torch.nn.Module, torch.nn.Module] = {}
        self.weights: dict[tuple[int, str], dict[str, Any]] = {}  # tied weights are quantized once

    def make(self) -> tuple[QuantizeReport, dict[torch.nn.Module, torch.nn.Module]]:
        layers = [(name, module) for name, module in self.model.named_modules() if _kind(module)]
        self._check_patterns([name for name, _ in layers])
        already = any(isinstance(module, _QUANTIZED) for _, module in layers)
        for name, module in layers:
            self._take(name, module)
        if not self.replacements and not already:
            raise make_error("invalid argument", f"nothing to quantize in {type(self.model).__name__}: {self._why()}")
        self.report.bytes_before = _bytes(self.model, {})
        self.report.bytes_after = _bytes(self.model, self.replacements)
        return self.report, self.replacements

    def _take(self, name: str, module: torch.nn.Module) -> None:
        config, reason = self._decide(name, module)
        if isinstance(module, _QUANTIZED):
            self._take_again(name, module, config)
            return
        weight = module.weight
        n, k = weight.shape
        size = weight.numel() * weight.element_size()
        kind = _kind(module)
        if config is None:
            self.report.add_layer(name, kind, n, k, None, reason, size, size)
            return
        quantized = self._quantized(weight, config, name)
        make = QuantizedEmbedding if kind == "embedding" else QuantizedLinear
        self.replacements[module] = make(module, config, quantized)
        self.report.add_layer(name, kind, n, k, config, "", size, quantized["bytes"])

    def _take_again(self, name: str, module: Any, config: _C.QuantConfig | None) -> None:
        if config is not None and config != module.config:
            raise make_error("invalid argument", f"{name} is quantized already, with {module.config} and not {config}")
        (n, k), size = module.sizes, sum(part.nbytes for part in module.parts().values())
        self.report.add_layer(name, _kind(module), n, k, module.config, "", size, size, already=True)

    def _quantized(self, weight: torch.Tensor, config: _C.QuantConfig, name: str) -> dict[str, Any]:
        key = (id(weight), config.key())
        if key not in self.weights:
            self.weights[key] = _C.quantize_weight(weight.detach(), config, name)
        return self.weights[key]

    def _decide(self, name: str, module: torch.nn.Module) -> tuple[_C.QuantConfig | None, str]:
        """The config of a layer, or None and why it stays as it is."""
        config = next((choice for pattern, choice in self.overrides if re.fullmatch(pattern, name)), None)
        if config is None:
            reason = self._excluded(name, module)
            if reason:
                return None, reason
            config = self.config
        if config.is_noquant():
            return None, "noquant"
        reason = "" if isinstance(module, _QUANTIZED) else _refusal(module, config)
        return (None, reason) if reason else (config, "")

    def _excluded(self, name: str, module: torch.nn.Module) -> str:
        include, exclude = self.patterns["include"], self.patterns["exclude"]
        if include and not re.fullmatch(include, name):
            return "not included"
        if exclude and re.fullmatch(exclude, name):
            return "excluded"
        if _kind(module) == "embedding" and not self.embeddings:
            return "an embedding: embeddings=True takes it"
        if self.filter_fn is not None and not self.filter_fn(module, name):
            return "filter_fn"
        return ""

    def _check_patterns(self, names: list[str]) -> None:
        given = [*self.patterns.items(), *(("overrides", pattern) for pattern, _ in self.overrides)]
        for option, pattern in given:
            if pattern and not any(re.fullmatch(pattern, name) for name in names):
                raise make_error("invalid argument", f'{option}: no layer is called "{pattern}"; layers: {", ".join(names[:8])}')

    def _why(self) -> str:
        text = self.report.to_json()
        if '"name"' not in text:
            return "it has no torch.nn.Linear or torch.nn.Embedding"
        return "see the reasons:\n" + self.report.to_text()


def _kind(module: torch.nn.Module) -> str:
    if isinstance(module, (torch.nn.Linear, QuantizedLinear)):
        return "linear"
    return "embedding" if isinstance(module, (torch.nn.Embedding, QuantizedEmbedding)) else ""


def _refusal(module: torch.nn.Module, config: _C.QuantConfig) -> str:
    if isinstance(module, _READ_BY_OWNER):
        return "its owner reads the weight itself: export the model and quantize its graph"
    if type(module.weight.data) is not torch.Tensor:
        return f"its weight is a {type(module.weight.data).__name__}"
    if _has_hooks(module):
        return "it has hooks or parametrizations, which another layer would lose"
    if isinstance(module, torch.nn.Embedding):
        if not _C.has_embedding(config):
            return "the config has no kernel for embeddings"
        if module.max_norm is not None:
            return "max_norm changes its weight"
    return _C.refuse_weight(config, *module.weight.shape)


def _has_hooks(module: torch.nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or hasattr(module, "parametrizations"))


def _bytes(model: torch.nn.Module, replacements: dict[torch.nn.Module, torch.nn.Module]) -> int:
    """Of all parameters and buffers, tied ones once, as if the layers were replaced."""
    tensors: dict[int, int] = {}
    for module in model.modules():
        layer = replacements.get(module, module)
        for tensor in (*layer.parameters(recurse=False), *layer.buffers(recurse=False)):
            tensors[id(tensor)] = tensor.numel() * tensor.element_size()
    return sum(tensors.values())


def _replace(model: torch.nn.Module, replacements: dict[torch.nn.Module, torch.nn.Module]) -> None:
    if model in replacements:
        raise make_error("unsupported", f"the model is a {type(model).__name__} itself, which cannot become another in place: put it into a module")
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):
            if child in replacements:
                parent._modules[name] = replacements[child]


def diagnose(model: Any, samples: Any = None, config: Config = "int8dq", *, embeddings: bool = False) -> dict[str, Any]:
    """What a config costs, layer by layer: errors of the weight, of the layer's output and of the model's result.

    The model is left as it is; a Python module is exported for the samples. Layers stand in the order of the harm that
    each does alone.

    >>> import halftone, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    >>> diagnosis = halftone.diagnose(model, [torch.randn(4, 64)], "int8wo")
    >>> sorted(layer["name"] for layer in diagnosis["layers"])
    ['0', '2']
    """
    graph = to_graph(model, samples)
    calls = to_samples(samples) or own_samples(graph)
    return _C.diagnose_graph(graph, to_quant_config(config), calls, embeddings=embeddings)


