#!/usr/bin/env python3
"""Writes BackendConfigs of torch.ao as JSON, in the names that Halftone knows: python_config.py FOLDER native x86 …

A class or function goes by its public name ("torch.nn.Conv2d", "torch.nn.functional.relu", "operator.add"), a method of
tensors by "Tensor.<name>", a closure around a fused module by "sequential(<fused module>)".
"""
import importlib
import inspect
import json
import pathlib
import sys

from torch.ao.quantization.utils import MatchAllNode
import torch.ao.quantization.quantize_fx  # noqa: F401  (the configs need its side effects)

# The first one that has an object names it.
PLACES = ["torch.nn", "torch.nn.functional", "torch", "operator", "torch.ao.nn.intrinsic", "torch.ao.nn.qat", "torch.ao.nn.intrinsic.qat",
          "torch.ao.nn.quantized.reference", "torch.ao.nn.qat.dynamic", "torch.ao.nn.quantized", "torch.ao.quantization",
          "torch.ao.quantization.fuser_method_mappings"]
# Here private names are all there is.
PRIVATE = ["torch.ao.quantization.backend_config.onednn"]


def public_name(thing):
    if isinstance(thing, str):
        return thing if "." in thing else f"Tensor.{thing}"
    if thing is MatchAllNode:
        return "*"
    for place in PLACES + PRIVATE:
        for name, value in vars(importlib.import_module(place)).items():
            if value is thing and (place in PRIVATE or not name.startswith("_")):
                return f"{place}.{name}"
    closed_over = inspect.getclosurevars(thing).nonlocals if inspect.isfunction(thing) else {}
    if "sequential" in closed_over:
        return f"sequential({public_name(closed_over['sequential'])})"
    raise SystemExit(f"no public name for {thing!r}")


def pattern(value):
    return [pattern(part) for part in value] if isinstance(value, (tuple, list)) else public_name(value)


def dtype_config(config):
    result = {}
    for key, value in config.to_dict().items():
        if key == "bias_dtype":
            result[key] = str(value).removeprefix("torch.")
        elif key == "is_dynamic":
            result[key] = value
        else:
            given = {name: each for name, each in vars(value).items() if each is not None}
            given["dtype"] = str(value.dtype).removeprefix("torch.")
            result[key] = given if len(given) > 1 else given["dtype"]
    return result


def pattern_config(config):
    result = {}
    for key, value in config.to_dict().items():
        if key in ("pattern", "pattern_complex_format"):
            result[key] = pattern(value)
        elif key == "observation_type":
            result[key] = value.name
        elif key == "dtype_configs":
            result[key] = [dtype_config(each) for each in config.dtype_configs]
        elif key == "num_tensor_args_to_observation_type":
            result[key] = {str(count): each.name for count, each in value.items()}
        elif key == "input_type_to_index":
            result[key] = value
        else:
            result[key] = public_name(value)
    return result


def main():
    folder, *names = sys.argv[1:]
    for name in names:
        place = importlib.import_module(f"torch.ao.quantization.backend_config.{name}")
        config = getattr(place, f"get_{name}_backend_config")()
        content = {"name": config.name, "configs": [pattern_config(each) for each in config.configs]}
        pathlib.Path(folder, f"{name}.json").write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
