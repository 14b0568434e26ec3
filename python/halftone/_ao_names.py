"""Names for the classes, functions and dtypes in torch.ao's configs, and back.

A class or function goes by its public name ("torch.nn.Conv2d", "operator.add"), a method of tensors by "Tensor.<name>",
a closure around a fused module by "sequential(<fused module>)".
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from halftone import _C

# The first one that has an object names it.
_PLACES = (
    "torch.nn", "torch.nn.functional", "torch", "operator", "torch.ao.nn.intrinsic", "torch.ao.nn.qat", "torch.ao.nn.intrinsic.qat",
    "torch.ao.nn.quantized.reference", "torch.ao.nn.qat.dynamic", "torch.ao.nn.quantized", "torch.ao.quantization",
    "torch.ao.quantization.fuser_method_mappings",
)  # fmt: skip
_PRIVATE_PLACES = ("torch.ao.quantization.backend_config.onednn",)  # private names are all there is
_KINDS = {
    "pattern": "function", "root_module": "module type", "qat_module": "module type", "reference_quantized_module_for_root": "module type",
    "fused_module": "module type", "fuser_method": "fuser method", "root_node_getter": "root-node getter",
    "extra_inputs_getter": "extra-inputs getter",
}  # fmt: skip
_PATTERNS = ("pattern", "pattern_complex_format")
_own: dict[str, Any] = {}  # the user's classes and functions, by the names they got here


@functools.cache
def _torch_ao() -> Any:
    importlib.import_module("torch.ao.quantization.quantize_fx")  # the configs need what it registers
    return importlib.import_module("torch.ao.quantization.backend_config")


def config_from_torch(config: Mapping[str, Any]) -> dict[str, Any]:
    """The dict of torch.ao's `to_dict()`, with names; one with names stays as it is."""
    return {"name": config["name"], "configs": [_pattern_config(each) for each in config["configs"]]}


def config_to_torch(config: Mapping[str, Any]) -> Any:
    """torch.ao's BackendConfig of a dict with names."""
    ao = _torch_ao()
    result = ao.BackendConfig(config["name"])
    # Not set_backend_pattern_configs: it replaces an equal pattern, and so do ours.
    return result.set_backend_pattern_configs([_to_pattern_config(each) for each in config["configs"]])


def _pattern_config(config: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in config.items():
        if key in _PATTERNS:
            result[key] = _pattern(value)
        elif key == "observation_type":
            result[key] = getattr(value, "name", value)
        elif key == "dtype_configs":
            result[key] = [_dtype_config(each) for each in value]
        elif key == "num_tensor_args_to_observation_type":
            result[key] = {str(count): getattr(each, "name", each) for count, each in value.items()}
        elif key in _KINDS:
            result[key] = _name(value, _KINDS[key])
        else:
            result[key] = value
    return result


def _pattern(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_pattern(part) for part in value]
    return value if isinstance(value, dict) else _name(value, "module type" if inspect.isclass(value) else "function")


def _dtype_config(config: Any) -> dict[str, Any]:
    given = config if isinstance(config, Mapping) else config.to_dict()
    return {key: _dtype(value) for key, value in given.items()}


def _dtype(value: Any) -> Any:
    """Of a dtype its name; of a dtype with constraints a dict, or the name alone where there are none."""
    if isinstance(value, (bool, str, Mapping)) or value is None:
        return value
    if not hasattr(value, "dtype"):
        return str(value).removeprefix("torch.")
    given = {name: each for name, each in vars(value).items() if each is not None}
    given["dtype"] = str(value.dtype).removeprefix("torch.")
    return given if len(given) > 1 else given["dtype"]


def _name(thing: Any, kind: str) -> str:
    if isinstance(thing, str):
        return thing if "." in thing or "(" in thing or ":" in thing or thing == "*" else f"Tensor.{thing}"
    if thing is _match_all():
        return "*"
    found = _public_name(thing)
    if found is not None:
        return found
    closed_over = inspect.getclosurevars(thing).nonlocals if inspect.isfunction(thing) else {}
    if "sequential" in closed_over:
        return f"sequential({_name(closed_over['sequential'], 'module type')})"
    own = f"{thing.__module__}.{thing.__qualname__}"
    _C.register_backend_config_name(kind, own)
    _own[own] = thing
    return own


def _match_all() -> Any:
    return importlib.import_module("torch.ao.quantization.utils").MatchAllNode


def _public_name(thing: Any) -> str | None:
    _torch_ao()
    for place in _PLACES + _PRIVATE_PLACES:
        for name, value in vars(importlib.import_module(place)).items():
            if value is thing and (place in _PRIVATE_PLACES or not name.startswith("_")):
                return f"{place}.{name}"
    return None


def _thing(name: str) -> Any:
    """The opposite of `_name`."""
    if name == "*":
        return _match_all()
    if name in _own:
        return _own[name]
    if name.startswith("Tensor."):
        return name.removeprefix("Tensor.")
    if name.startswith("sequential("):
        fused = _thing(name.removeprefix("sequential(").removesuffix(")"))
        mappings = importlib.import_module("torch.ao.quantization.fuser_method_mappings")
        return mappings._sequential_wrapper2(fused)
    place, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(place), last)
    except (ImportError, AttributeError, ValueError):
        raise ValueError(f'torch.ao has nothing called "{name}"') from None


def _to_pattern(value: Any) -> Any:
    if isinstance(value, dict):
        raise ValueError("a pattern uses a result twice, which torch.ao's patterns cannot say")
    return tuple(_to_pattern(part) for part in value) if isinstance(value, list) else _thing(value)


def _to_pattern_config(config: Mapping[str, Any]) -> Any:
    import torch

    ao = _torch_ao()
    result: dict[str, Any] = {}
    for key, value in config.items():
        if key in _PATTERNS:
            result[key] = _to_pattern(value)
        elif key == "observation_type":
            result[key] = ao.ObservationType[value]
        elif key == "dtype_configs":
            result[key] = [ao.DTypeConfig.from_dict(_to_dtypes(each, torch)) for each in value]
        elif key == "num_tensor_args_to_observation_type":
            result[key] = {int(count): ao.ObservationType[each] for count, each in value.items()}
        else:
            result[key] = _thing(value) if key in _KINDS else value
    return ao.BackendPatternConfig.from_dict(result)


def _to_dtypes(config: Mapping[str, Any], torch: Any) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            with_constraints = {name: each for name, each in value.items() if name != "dtype"}
            result[key] = _torch_ao().DTypeWithConstraints(dtype=getattr(torch, value["dtype"]), **with_constraints)
        else:
            result[key] = getattr(torch, value) if isinstance(value, str) else value
    return result
