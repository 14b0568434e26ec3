"""What PyTorch says a call gives: inputs by name, flat outputs by number, their places in the nested result."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.export._tree_utils import reorder_kwargs
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from zoo import Call

PYTHON_NUMBERS = {bool: ("bool", torch.bool), int: ("int", torch.int64), float: ("float", torch.float64)}


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """A copy as a file holds it: contiguous, sharing its memory with nothing."""
    return tensor.detach().clone(memory_format=torch.contiguous_format).resolve_conj()


def as_files_hold(call: Call) -> Call:
    """The same call with the tensors a reader of the inputs file gets."""
    args, kwargs = pytree.tree_map_only(torch.Tensor, plain, (call.args, call.kwargs))
    return Call(args, kwargs)


def copied(call: Call) -> Call:
    """A copy that keeps strides and aliasing, for models that write to their inputs."""
    return Call(*copy.deepcopy((call.args, call.kwargs)))


def named_inputs(program: torch.export.ExportedProgram, call: Call) -> dict[str, torch.Tensor]:
    """The call's flat inputs by the names of the graph's placeholders. Constants of the graph have none."""
    specs = [spec.arg for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    leaves = pytree.tree_leaves((call.args, reorder_kwargs(call.kwargs, program.call_spec.in_spec)))
    assert len(specs) == len(leaves), f"{len(specs)} inputs in the graph, {len(leaves)} given"
    inputs = {}
    for spec, leaf in zip(specs, leaves):
        if isinstance(leaf, torch.Tensor):
            inputs[spec.name] = leaf
        elif not isinstance(spec, ConstantArgument):
            inputs[spec.name] = torch.tensor(leaf)
    return inputs


def flat_outputs(result) -> tuple[dict[str, torch.Tensor], list[dict[str, str]]]:
    """Outputs by number, and where each stands in `result`. None has a place but no tensor."""
    tensors, structure = {}, []
    for index, (path, leaf) in enumerate(pytree.tree_flatten_with_path(result)[0]):
        name = f"output_{index}"
        kind = "tensor"
        if leaf is None:
            kind = "none"
        elif isinstance(leaf, torch.Tensor):
            tensors[name] = plain(leaf)
        else:
            kind, dtype = PYTHON_NUMBERS[type(leaf)]
            tensors[name] = torch.tensor(leaf, dtype=dtype)
        structure.append({"name": name, "path": pytree.keystr(path), "kind": kind})
    return tensors, structure


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(plain(a).flatten().view(torch.uint8), plain(b).flatten().view(torch.uint8))


def run(model, call: Call, program: torch.export.ExportedProgram) -> tuple[dict[str, torch.Tensor], list[dict[str, str]]]:
    """All that a call gives: outputs, and under mutated_input_<name> the inputs it wrote to."""
    before = {name: plain(tensor) for name, tensor in named_inputs(program, call).items()}
    with torch.no_grad():
        tensors, structure = flat_outputs(model(*call.args, **call.kwargs))
    for name, tensor in named_inputs(program, call).items():
        if not same_bits(before[name], tensor):
            tensors[f"mutated_input_{name}"] = plain(tensor)
    return tensors, structure


def write_inputs(path: Path, program: torch.export.ExportedProgram, call: Call) -> None:
    save_file({name: plain(tensor) for name, tensor in named_inputs(program, call).items()}, path)


def write_outputs(path: Path, tensors: dict[str, torch.Tensor], structure: list[dict[str, str]]) -> None:
    save_file(tensors, path, metadata={"structure": json.dumps(structure)})
